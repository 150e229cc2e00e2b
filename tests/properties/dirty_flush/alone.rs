// SPDX-License-Identifier: GPL-2.0

//! C's loop itself, which the batch is compared with: what becomes of one folio, and what is
//! counted, by 7.3's source.

use super::*;
use mm_shim::reclaim::report::Stat;

const NR: u32 = 4;
const PAGES: u64 = NR as u64;

/// What is counted of a folio, and of nothing else.
const SCANNED: Stat = Stat {
    nr_scanned: PAGES,
    nr_reclaimed: 0,
    nr_activate: 0,
    nr_unmap_fail: 0,
    nr_lazyfree_fail: 0,
    nr_ref_keep: 0,
    nr_writeback: 0,
    nr_immediate: 0,
    nr_dirty: 0,
    vmscan_write: 0,
};

const ACTIVATED: Stat = Stat {
    nr_activate: PAGES,
    ..SCANNED
};

const WRITTEN: Stat = Stat {
    vmscan_write: PAGES,
    ..SCANNED
};

/// Reclaims the one folio of a machine, unbatched.
fn shrink(machine: &Machine) -> (Fate, Stat, usize) {
    let report = List::new(machine, [0]).shrink_unbatched();
    (report.fates[&0], report.stat, report.flushes)
}

fn assert_ends(spec: Spec, fate: Fate, stat: Stat) {
    let machine = Machine::new(NR_CPUS, std::slice::from_ref(&spec));
    let got = shrink(&machine);
    assert_eq!((got.0, got.1), (fate, stat), "{spec:?}");
}

fn flagged(flag: Flag) -> Spec {
    Spec {
        flags: vec![flag],
        ..dirty(NR)
    }
}

fn written_by(write: Write) -> Spec {
    Spec { write, ..dirty(NR) }
}

#[test]
fn what_is_reclaimed() {
    let reclaimed = |stat| Stat {
        nr_reclaimed: PAGES,
        ..stat
    };
    assert_ends(dirty(NR), Fate::Reclaimed, reclaimed(WRITTEN));
    assert_ends(clean(NR), Fate::Reclaimed, reclaimed(SCANNED));
    assert_ends(unmapped(NR), Fate::Reclaimed, reclaimed(WRITTEN));
    let split = Spec {
        mapping: Mapping::Shmem,
        ..written_by(Write::Split)
    };
    assert_ends(split, Fate::Reclaimed, reclaimed(WRITTEN));
}

#[test]
fn what_is_not_even_unmapped() {
    let stat = Stat {
        nr_writeback: PAGES,
        ..ACTIVATED
    };
    assert_ends(flagged(Flag::Writeback), Fate::Activated, stat);
    // Flushers do not write what is anonymous, or of shmem: it is not counted as dirty.
    for (mapping, nr_dirty) in [(Mapping::Shmem, 0), (Mapping::File, PAGES)] {
        let spec = Spec {
            mapping,
            ..flagged(Flag::Writeback)
        };
        assert_ends(spec, Fate::Activated, Stat { nr_dirty, ..stat });
    }
    assert_ends(flagged(Flag::Mlocked), Fate::Kept, SCANNED);
    assert_ends(flagged(Flag::Unevictable), Fate::Activated, ACTIVATED);
    let stat = Stat {
        nr_ref_keep: PAGES,
        ..SCANNED
    };
    assert_ends(flagged(Flag::Referenced), Fate::Kept, stat);
    let stat = Stat {
        nr_unmap_fail: PAGES,
        ..ACTIVATED
    };
    assert_ends(flagged(Flag::Stuck), Fate::Activated, stat);
    assert_ends(flagged(Flag::Poisoned), Fate::Kept, Stat::default());
    let page = Spec {
        nr: 1,
        ..flagged(Flag::Poisoned)
    };
    assert_ends(page, Fate::Dropped, Stat::default());
    let locked = Spec {
        locked: true,
        ..dirty(NR)
    };
    assert_ends(locked, Fate::Kept, Stat::default());
}

#[test]
fn what_is_not_written() {
    assert_ends(written_by(Write::Refused), Fate::Activated, ACTIVATED);
    assert_ends(written_by(Write::Failed), Fate::Kept, WRITTEN);
    assert_ends(written_by(Write::Begun), Fate::Kept, WRITTEN);
    let of_a_file = Spec {
        mapping: Mapping::File,
        ..dirty(NR)
    };
    let stat = Stat {
        nr_immediate: PAGES,
        ..ACTIVATED
    };
    assert_ends(of_a_file, Fate::Activated, stat);
}

/// Whether it is dirty before it is unmapped, or becomes so by its PTE.
#[test]
fn what_is_left_to_flushers() {
    for known in [true, false] {
        let spec = Spec {
            mapping: Mapping::File,
            dirty: known,
            ..dirty(NR)
        };
        let machine = Machine::new(NR_CPUS, &[spec]);
        let nr_dirty = if known { PAGES } else { 0 };
        let stat = Stat {
            nr_immediate: PAGES,
            nr_dirty,
            ..ACTIVATED
        };
        let flushes = usize::from(!known);
        assert_eq!(shrink(&machine), (Fate::Activated, stat, flushes));
        assert_eq!(machine.mapped(0), known);
        assert!(machine.folio(0).core.is_dirty());
    }
}

fn lazyfree(flags: &[Flag]) -> Spec {
    Spec {
        pte: Some(WRITE),
        dirty: false,
        flags: [&[Flag::Lazyfree], flags].concat(),
        ..dirty(NR)
    }
}

/// It goes nowhere. One that is dirty, which it is not even asked about, is nobody's.
#[test]
fn what_is_discarded() {
    let discarded = Stat {
        nr_reclaimed: PAGES,
        ..SCANNED
    };
    assert_ends(lazyfree(&[]), Fate::Reclaimed, discarded);
    let unmapped = |dirty| Spec {
        pte: None,
        translated: false,
        dirty,
        ..lazyfree(&[])
    };
    assert_ends(unmapped(false), Fate::Reclaimed, discarded);
    let left = Stat {
        nr_immediate: PAGES,
        ..ACTIVATED
    };
    assert_ends(unmapped(true), Fate::Activated, left);
}

/// By a PTE or by whoever had a reference: it is as any anonymous folio, and in use. One that somebody
/// has is as it was.
#[test]
fn what_is_not_discarded() {
    let failed = Stat {
        nr_unmap_fail: PAGES,
        ..ACTIVATED
    };
    let written_to = Stat {
        nr_lazyfree_fail: PAGES,
        ..failed
    };
    let by_its_pte = Spec {
        pte: Some(WRITE | DIRTY),
        ..lazyfree(&[])
    };
    let by_others = |flags| Spec {
        dirty: true,
        ..lazyfree(flags)
    };
    let ends = [
        (by_its_pte, written_to),
        (by_others(&[]), written_to),
        (by_others(&[Flag::Held]), written_to),
        (lazyfree(&[Flag::Held]), failed),
        (lazyfree(&[Flag::Stuck]), failed),
    ];
    for (spec, stat) in ends {
        let machine = Machine::new(NR_CPUS, std::slice::from_ref(&spec));
        let (fate, got, _) = shrink(&machine);
        assert_eq!((fate, got), (Fate::Activated, stat), "{spec:?}");
        let is_swapbacked = machine.folio(0).core.is_swapbacked();
        assert_eq!(is_swapbacked, stat == written_to, "{spec:?}");
        assert!(machine.mapped(0) && machine.pin_and_write(0).is_some());
    }
}

/// Memory failure discards it in any case.
#[test]
fn what_is_discarded_as_it_is_poisoned() {
    let poisoned = Spec {
        nr: 1,
        pte: Some(WRITE | DIRTY),
        ..lazyfree(&[Flag::Poisoned])
    };
    let machine = Machine::new(NR_CPUS, &[poisoned]);
    assert_eq!(shrink(&machine), (Fate::Dropped, Stat::default(), 0));
    assert!(!machine.mapped(0) && machine.folio(0).is_freed());
}

#[test]
fn what_somebody_has() {
    let machine = Machine::new(NR_CPUS, &[dirty(NR)]);
    machine.folio(0).core.get(1);
    assert_eq!(shrink(&machine), (Fate::Kept, SCANNED, 1));

    let machine = Machine::new(NR_CPUS, &[dirty(NR)]);
    let _pin = machine.pin_and_write(0).expect("it is mapped");
    let (fate, stat, _) = shrink(&machine);
    assert_eq!((fate, stat.nr_activate), (Fate::Activated, PAGES));
}

/// What is mlocked gives its slot back, if nobody names it and it is not being written.
#[test]
fn the_slot_of_what_is_mlocked() {
    let mlocked = |flags: &[Flag]| Spec {
        pte: None,
        translated: false,
        dirty: false,
        flags: flags.to_vec(),
        ..dirty(NR)
    };
    let machine = Machine::new(NR_CPUS, &[mlocked(&[Flag::Mlocked])]);
    assert_eq!(shrink(&machine).0, Fate::Kept);
    assert_eq!(machine.folio(0).mapping(), None);
    assert!(machine.folio(0).core.is_dirty());

    let machine = Machine::new(NR_CPUS, &[mlocked(&[Flag::Mlocked, Flag::Writeback])]);
    assert_eq!(shrink(&machine).0, Fate::Kept);
    assert_eq!(machine.folio(0).mapping(), Some(Mapping::Swap));
}

fn of_shmem(flags: &[Flag]) -> Machine {
    let spec = Spec {
        nr: NR,
        pte: Some(WRITE),
        flags: flags.to_vec(),
        ..Spec::page_of(Mapping::Shmem)
    };
    Machine::new(NR_CPUS, &[spec])
}

#[test]
fn what_is_truncated_is_unmapped() {
    let machine = of_shmem(&[]);
    machine.truncate(0);
    assert!(!machine.mapped(0));
    assert_eq!(machine.folio(0).core.ref_count(), 1);
}

/// The mappings' references and the page cache's are left, and the one of whoever isolated it not.
#[test]
fn what_is_activated_is_not_isolated_any_more() {
    let machine = of_shmem(&[Flag::Stuck]);
    assert_eq!(shrink(&machine).0, Fate::Activated);
    assert_eq!(machine.folio(0).core.ref_count(), 2 * NR as i32);
}

#[test]
fn what_is_truncated_is_clean() {
    let machine = Machine::new(
        NR_CPUS,
        &[Spec {
            mapping: Mapping::Shmem,
            ..unmapped(NR)
        }],
    );
    machine.truncate(0);
    assert!(!machine.folio(0).core.is_dirty());
}
