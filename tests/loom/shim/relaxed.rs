// SPDX-License-Identifier: GPL-2.0

//! What only looks orders nothing, either, nor does what a port does without a barrier of its own:
//! whoever needs one has to say so.

use super::weak::{
    pin,
    stale,
    stale_in, //
};
use crate::litmus::{
    buffering,
    BOTH,
    NEITHER,
    ONE, //
};
use mm_batch::unmap::PteRun;
use mm_shim::{
    folio::Folio,
    pte::{
        pte,
        Table,
        DIRTY,
        WRITE, //
    },
    reclaim::{
        Flag,
        Machine,
        Mapping,
        Spec, //
    },
    smp::{
        smp_mb,
        smp_rmb, //
    },
    unmap::{
        Layout,
        Mm, //
    }, //
};

#[test]
fn relaxed_ptep_get() {
    stale(
        |shim| {
            shim.folio.mark_dirty();
            smp_mb();
            shim.table.get_and_clear(0);
        },
        |shim| {
            let second = shim.table.ptep_get(0) == 0;
            (second, shim.folio.is_dirty())
        },
    );
}

#[test]
fn relaxed_set_pte() {
    stale(
        |shim| {
            shim.table.get_and_clear(0);
            smp_mb();
            shim.folio.mark_dirty();
            shim.table.set(0, pte(8, WRITE));
        },
        |shim| {
            let second = shim.table.ptep_get(0) == pte(8, WRITE);
            smp_rmb();
            (second, shim.folio.is_dirty())
        },
    );
}

/// Others may run between a PTE's clearing and a barrier behind it.
#[test]
fn clearing_a_pte_and_a_barrier_are_two_steps() {
    stale(
        |shim| {
            shim.folio.mark_dirty();
            shim.table.get_and_clear(0);
            smp_mb();
        },
        |shim| {
            let second = shim.table.ptep_get(0) == 0;
            smp_mb();
            (second, shim.folio.is_dirty())
        },
    );
}

#[test]
fn relaxed_mapcount() {
    stale(
        |shim| {
            shim.folio.mark_dirty();
            smp_mb();
            shim.folio.remove_rmap(1);
        },
        |shim| {
            let second = shim.folio.mapcount() == 0;
            (second, shim.folio.is_dirty())
        },
    );
}

#[test]
fn relaxed_is_exclusive() {
    stale(
        |shim| {
            shim.folio.mark_dirty();
            smp_mb();
            shim.folio.anon.clear_exclusive(0);
        },
        |shim| {
            let second = !shim.folio.anon.is_exclusive(0);
            (second, shim.folio.is_dirty())
        },
    );
}

#[test]
fn relaxed_maybe_dma_pinned() {
    stale(
        |shim| {
            shim.folio.mark_dirty();
            pin(shim);
        },
        |shim| {
            let second = shim.folio.anon.maybe_dma_pinned();
            (second, shim.folio.is_dirty())
        },
    );
}

/// The lock around the two counts is no barrier to what comes behind it.
#[test]
fn relaxed_extra_refs() {
    stale(
        |shim| {
            shim.folio.mark_dirty();
            shim.folio.put_refs(1);
        },
        |shim| {
            let second = shim.folio.extra_refs() == 0;
            (second, shim.folio.is_dirty())
        },
    );
}

/// The dirty bit that the hardware sets.
#[test]
fn relaxed_hardware_write() {
    stale_in(
        || (Folio::new(8, 1), Table::new(&[pte(8, WRITE)])),
        |(folio, table)| {
            folio.mark_dirty();
            table.hardware_write(0);
        },
        |(folio, table)| {
            let second = table.ptep_get(0) & DIRTY != 0;
            smp_rmb();
            (second, folio.is_dirty())
        },
    );
}

/// The MMU's look at a PTE orders nothing that comes behind it.
#[test]
fn relaxed_hardware_read() {
    stale_in(
        || (Folio::new(8, 1), Table::new(&[0])),
        |(folio, table)| {
            folio.mark_dirty();
            smp_mb();
            table.set(0, pte(8, WRITE));
        },
        |(folio, table)| {
            let second = table.hardware_read(0).is_some();
            (second, folio.is_dirty())
        },
    );
}

/// Nor does clearing a PTE before what follows, up to the drop of the reference. (mm has a barrier
/// there if the page is exclusive; nothing here leans on it.)
#[test]
fn relaxed_try_to_unmap() {
    stale_in(
        || {
            let spec = Spec {
                pte: Some(WRITE | DIRTY),
                dirty: false,
                locked: true,
                ..Spec::page_of(Mapping::Shmem)
            };
            Machine::new(1, &[spec])
        },
        |machine| machine.try_to_unmap(0, &Default::default()),
        |machine| {
            let second = machine.folio(0).core.is_dirty();
            smp_rmb();
            (second, machine.table.ptep_get(0) == 0)
        },
    );
}

/// A mapping of an isolated folio is taken away without an order.
#[test]
fn relaxed_zap_of_isolated() {
    stale_isolated(
        |machine| {
            machine.folio(0).core.mark_dirty();
            machine.zap(0);
        },
        |machine| {
            let second = !machine.mapped(0);
            smp_rmb();
            (second, machine.folio(0).core.is_dirty())
        },
    );
}

/// One clears a PTE and looks, as `look` does, whether another has a reference; that one takes it
/// and looks at the PTE. That neither sees the other must occur.
fn neither(look: fn(&(Folio, Mm)) -> bool) {
    buffering(
        || {
            let folio = Folio::new(8, 1);
            folio.map(1);
            (folio, Mm::new(Layout::anonymous(1), &[pte(8, 0)]))
        },
        look,
        |(folio, mm)| {
            assert!(folio.try_get());
            mm.table.ptep_get(0) == 0
        },
        &[ONE, BOTH, NEITHER],
    );
}

#[test]
fn clearing_a_run_and_putting_off_its_flush_is_no_barrier() {
    neither(|(folio, mm)| {
        let (extra, _) = mm.walk(folio, 0, |walk| {
            let run = PteRun::longest(walk).clear();
            let extra = folio.ref_count() - 1;
            run.commit();
            extra
        });
        extra > 1
    });
}

#[test]
fn the_lock_of_the_counts_is_no_barrier() {
    neither(|(folio, mm)| {
        mm.table.get_and_clear(0);
        folio.extra_refs() > 1
    });
}

/// The same of a folio that reclaim has isolated.
fn stale_isolated(change: fn(&Machine), look: fn(&Machine) -> (bool, bool)) {
    let machine = || {
        let spec = Spec {
            pte: Some(WRITE),
            dirty: false,
            ..Spec::page_of(Mapping::Swap)
        };
        Machine::new(1, &[spec])
    };
    stale_in(machine, change, look);
}

#[test]
fn relaxed_set_flag() {
    stale_isolated(
        |machine| {
            machine.folio(0).core.mark_dirty();
            machine.folio(0).set(Flag::Poisoned);
        },
        |machine| {
            let second = machine.folio(0).test(Flag::Poisoned);
            smp_rmb();
            (second, machine.folio(0).core.is_dirty())
        },
    );
}

#[test]
fn relaxed_test_flag() {
    stale_isolated(
        |machine| {
            machine.folio(0).core.mark_dirty();
            smp_mb();
            machine.folio(0).set(Flag::Poisoned);
        },
        |machine| {
            let second = machine.folio(0).test(Flag::Poisoned);
            (second, machine.folio(0).core.is_dirty())
        },
    );
}

/// And what it says may be old.
#[test]
fn stale_flag() {
    stale_isolated(
        |machine| {
            machine.folio(0).set(Flag::Poisoned);
            smp_mb();
            machine.folio(0).core.mark_dirty();
        },
        |machine| {
            let second = machine.folio(0).core.is_dirty();
            (second, machine.folio(0).test(Flag::Poisoned))
        },
    );
}

#[test]
fn stale_folio_mapped() {
    stale_isolated(
        |machine| {
            assert!(machine.folio(0).trylock());
            machine.try_to_unmap(0, &Default::default());
            smp_mb();
            machine.folio(0).set(Flag::Poisoned);
        },
        |machine| {
            let second = machine.folio(0).test(Flag::Poisoned);
            (second, !machine.mapped(0))
        },
    );
}

#[test]
fn relaxed_folio_mapped() {
    stale_isolated(
        |machine| {
            machine.folio(0).set(Flag::Poisoned);
            smp_mb();
            assert!(machine.folio(0).trylock());
            machine.try_to_unmap(0, &Default::default());
        },
        |machine| {
            let second = !machine.mapped(0);
            (second, machine.folio(0).test(Flag::Poisoned))
        },
    );
}

#[test]
fn relaxed_content() {
    stale_isolated(
        |machine| {
            machine.folio(0).set(Flag::Poisoned);
            machine.folio(0).write();
        },
        |machine| {
            let second = machine.folio(0).content() == 1;
            smp_rmb();
            (second, machine.folio(0).test(Flag::Poisoned))
        },
    );
}

#[test]
fn stale_content() {
    stale_isolated(
        |machine| {
            machine.folio(0).write();
            smp_mb();
            machine.folio(0).set(Flag::Poisoned);
        },
        |machine| {
            let second = machine.folio(0).test(Flag::Poisoned);
            (second, machine.folio(0).content() == 1)
        },
    );
}

/// Both set something, and then look for what the other sets: one behind a barrier, `here` behind
/// something else. That neither sees the other must occur.
fn neither_isolated(machine: fn() -> Machine, here: fn(&Machine) -> bool) {
    buffering(
        machine,
        here,
        |machine| {
            machine.folio(0).set(Flag::Poisoned);
            smp_mb();
            machine.folio(0).core.is_dirty()
        },
        &[ONE, BOTH, NEITHER],
    );
}

fn isolated(locked: bool) -> Machine {
    let spec = Spec {
        dirty: false,
        locked,
        ..Spec::page_of(Mapping::Swap)
    };
    Machine::new(1, &[spec])
}

#[test]
fn locking_is_no_full_barrier() {
    neither_isolated(
        || isolated(false),
        |machine| {
            machine.folio(0).core.mark_dirty();
            assert!(machine.folio(0).trylock());
            machine.folio(0).test(Flag::Poisoned)
        },
    );
}

#[test]
fn unlocking_is_no_full_barrier() {
    neither_isolated(
        || isolated(true),
        |machine| {
            machine.folio(0).core.mark_dirty();
            machine.folio(0).unlock();
            machine.folio(0).test(Flag::Poisoned)
        },
    );
}
