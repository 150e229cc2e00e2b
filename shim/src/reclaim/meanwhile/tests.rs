// SPDX-License-Identifier: GPL-2.0

//! What others do flushes for what C flushes for, and for nothing else; and a store to what they have
//! taken away is noticed.

use super::{
    super::Spec,
    *, //
};
use crate::{
    sync::explore,
    tlb::Deferred, //
};

/// A page that a CPU may write to.
fn of(mapping: Mapping) -> Spec {
    Spec {
        pte: Some(WRITE | DIRTY | YOUNG),
        translated: true,
        dirty: false,
        ..Spec::page_of(mapping)
    }
}

fn mapped() -> Spec {
    of(Mapping::Swap)
}

fn machine(spec: Spec) -> Machine {
    Machine::new(1, &[spec.clone(), spec])
}

#[test]
#[should_panic(expected = "a write to folio 0 is lost")]
fn a_write_behind_a_zap_is_noticed() {
    explore(|| {
        let machine = machine(mapped());
        machine.folio(0).write();
        machine.zap(0);
        machine.assert_nothing_lost(0);
        machine.folio(0).write();
        machine.assert_nothing_lost(0);
    });
}

#[test]
#[should_panic(expected = "a write to folio 0 is lost")]
fn a_write_behind_truncation_is_noticed() {
    explore(|| {
        let machine = machine(of(Mapping::File));
        assert!(machine.truncate(0));
        machine.assert_nothing_lost(0);
        machine.folio(0).write();
        machine.folio(0).core.mark_dirty();
        machine.assert_nothing_lost(0);
    });
}

/// What a page had when it was moved is not given up.
#[test]
#[should_panic(expected = "a write to folio 0 is lost")]
fn a_write_in_front_of_a_move_is_noticed() {
    explore(|| {
        let (machine, deferred) = (machine(mapped()), Deferred::default());
        machine.folio(0).write();
        machine.try_to_unmap(0, &deferred);
        assert!(machine.uffd_move(0));
        machine.assert_nothing_lost(0);
        machine.folio(0).core.test_clear_dirty();
        machine.assert_nothing_lost(0);
    });
}

#[test]
#[should_panic(expected = "a write to folio 0 is lost")]
fn a_write_behind_a_move_is_noticed() {
    explore(|| {
        let (machine, deferred) = (machine(mapped()), Deferred::default());
        machine.try_to_unmap(0, &deferred);
        assert!(machine.uffd_move(0) && machine.folio(0).mapping().is_some());
        machine.folio(0).write();
        machine.assert_nothing_lost(0);
    });
}

/// Who has a pin may write for as long as he has it.
#[test]
fn a_pin_outlives_the_mapping() {
    explore(|| {
        let machine = machine(mapped());
        machine.zap(0);
        machine.folio(0).write_pinned();
        machine.assert_nothing_lost(0);
    });
}

/// A folio whose PTE went, and of which a CPU has a translation still, that nobody has noted.
fn left_translated(mapping: Mapping) -> Machine {
    let machine = machine(of(mapping));
    machine.table.get_and_clear(0);
    machine.folio(0).add_rmap(-1);
    machine.put(0, 1);
    machine.folio(0).core.mark_dirty();
    machine
}

/// These flush for what they find mapped, and nothing else: what is left is for who unmapped it.
#[test]
fn who_finds_nothing_mapped_flushes_nothing() {
    let find: [fn(&Machine); 5] = [
        |machine| machine.zap(0),
        |machine| assert!(machine.punch_hole(0, || ())),
        |machine| assert!(machine.truncate(0)),
        |machine| machine.clean(0),
        |machine| assert!(machine.fault_around(0)),
    ];
    for find in find {
        explore(move || {
            for mapping in [Mapping::Shmem, Mapping::File] {
                let machine = left_translated(mapping);
                find(&machine);
                assert!(machine.cpus.translate(8), "it flushed");
            }
        });
    }
}

/// These lock the page table as well, but C has no flush there for what others put off.
#[test]
fn who_maps_or_cleans_leaves_what_was_put_off() {
    let leaves = |mapping, does: fn(&Machine)| {
        explore(move || {
            let (machine, deferred) = (machine(of(mapping)), Deferred::default());
            machine.try_to_unmap(0, &deferred);
            does(&machine);
            assert!(machine.cpus.translate(8), "it flushed");
        });
    };
    leaves(Mapping::Swap, |machine| assert!(machine.fault(0, true)));
    leaves(Mapping::Swap, |machine| assert!(machine.swapoff(0)));
    leaves(Mapping::Shmem, |machine| machine.clean(0));
    leaves(Mapping::File, |machine| machine.clean(0));
}

#[test]
fn who_cleans_one_page_leaves_what_was_put_off_for_another() {
    explore(|| {
        let machine = Machine::new(1, &[of(Mapping::File), mapped()]);
        let deferred = Deferred::default();
        machine.try_to_unmap(1, &deferred);
        machine.clean(0);
        assert!(!machine.cpus.translate(8) && machine.cpus.translate(9));
    });
}

/// Its slot is named at the other address.
#[test]
fn what_was_moved_stays_in_the_swap_cache() {
    explore(|| {
        let (machine, deferred) = (machine(mapped()), Deferred::default());
        machine.try_to_unmap(0, &deferred);
        assert!(machine.uffd_move(0) && machine.folio(0).trylock());
        machine.free_swap(0);
        assert_eq!(machine.folio(0).mapping(), Some(Mapping::Swap));
    });
}

/// By address, so not for another page.
#[test]
fn who_finds_one_page_mapped_flushes_for_that() {
    let find: [fn(&Machine); 3] = [
        |machine| machine.zap(0),
        |machine| assert!(machine.punch_hole(0, || ())),
        |machine| machine.clean(0),
    ];
    for find in find {
        explore(move || {
            let machine = machine(of(Mapping::File));
            find(&machine);
            assert!(!machine.cpus.translate(8) && machine.cpus.translate(9));
        });
    }
}

/// Whoever put it off, and whatever the PTE is.
#[test]
fn who_locks_the_page_table_flushes_for_what_was_put_off() {
    let lock: [fn(&Machine); 4] = [
        |machine| machine.zap(0),
        |machine| machine.zap(1),
        |machine| assert!(machine.punch_hole(1, || ())),
        |machine| assert!(machine.uffd_move(0)),
    ];
    for lock in lock {
        explore(move || {
            let machine = Machine::new(1, &[mapped(), of(Mapping::Shmem)]);
            let deferred = Deferred::default();
            machine.try_to_unmap(0, &deferred);
            lock(&machine);
            assert!(!machine.cpus.translate(8));
        });
    }
}

/// The last of which may be that of the mapping.
#[test]
fn a_zap_flushes_before_it_drops_its_references() {
    for mapping in [Mapping::Swap, Mapping::File] {
        explore(move || {
            let machine = machine(of(mapping));
            machine.put(0, 2);
            machine.zap(0);
            assert!(machine.folio(0).is_freed());
        });
    }
}

/// A folio that is mapped while a hole is punched is unmapped again, with its flush.
#[test]
fn a_hole_unmaps_what_was_mapped_meanwhile() {
    explore(|| {
        let machine = machine(of(Mapping::Shmem));
        let again = || assert!(machine.fault_around(0) && machine.write(0, 0));
        assert!(machine.punch_hole(0, again));
        assert!(!machine.mapped(0) && !machine.write(0, 0));
        assert_eq!(machine.folio(0).core.ref_count(), 1);
        machine.assert_nothing_lost(0);
    });
}

/// What the kernel does not do either: this is the hole that a folio of shmem must not wait in.
#[test]
fn a_hole_flushes_for_nothing_that_is_not_mapped() {
    explore(|| {
        let (machine, deferred) = (machine(of(Mapping::Shmem)), Deferred::default());
        let again = || {
            assert!(machine.fault_around(0) && machine.write(0, 0));
            assert!(machine.folio(0).trylock());
            machine.try_to_unmap(0, &deferred);
            machine.folio(0).unlock();
        };
        assert!(machine.punch_hole(0, again));
        assert!(machine.cpus.translate(8), "it flushed");
    });
}

/// Its content is in the file, and the next write is noticed.
#[test]
fn a_flusher_takes_the_right_to_write() {
    explore(|| {
        let machine = machine(of(Mapping::File));
        assert!(machine.write(0, 0));
        machine.clean(0);
        assert!(!machine.folio(0).core.is_dirty() && machine.mapped(0));
        machine.assert_nothing_lost(0);
        assert!(!machine.write(0, 0), "it is not noticed");
        assert!(machine.fault(0, true) && machine.write(0, 0));
        assert!(machine.folio(0).core.is_dirty());
        machine.assert_nothing_lost(0);
    });
}

/// As mm maps them: by a file's read fault nobody can write; shmem's is as dirty as its folio.
#[test]
fn a_fault_of_a_file_maps_as_the_file_wants() {
    explore(|| {
        let map = |mapping, dirty, how: fn(&Machine) -> bool| {
            let spec = Spec {
                dirty,
                ..Spec::page_of(mapping)
            };
            let machine = machine(spec);
            assert!(how(&machine));
            machine.table.ptep_get(0) & (WRITE | DIRTY)
        };
        for how in [(|m| m.fault(0, false)) as fn(&Machine) -> bool, |m| {
            m.fault_around(0)
        }] {
            assert_eq!(map(Mapping::File, true, how), 0);
            assert_eq!(map(Mapping::Shmem, true, how), WRITE | DIRTY);
            assert_eq!(map(Mapping::Shmem, false, how), WRITE);
        }
        let write: fn(&Machine) -> bool = |machine| {
            let mapped = machine.fault(0, true);
            assert!(machine.folio(0).core.is_dirty());
            mapped
        };
        assert_eq!(map(Mapping::File, false, write), WRITE | DIRTY);
        assert_eq!(map(Mapping::Shmem, false, write), WRITE | DIRTY);
    });
}

/// An LRU list is left once.
#[test]
fn a_folio_is_isolated_once() {
    explore(|| {
        let spec = Spec {
            flags: vec![Flag::Lru],
            ..of(Mapping::Shmem)
        };
        let machine = machine(spec);
        assert_eq!(machine.folio(0).core.ref_count(), 2);
        assert!(machine.collapse_file(0) && !machine.mapped(0) && !machine.cpus.translate(8));
        assert_eq!(machine.folio(0).core.ref_count(), 1);
        assert!(machine.isolate(0) && !machine.isolate(0) && !machine.collapse_file(0));
        assert_eq!(machine.folio(0).core.ref_count(), 2);
    });
}

/// Mapped for reading only, and dirty, as its content is nowhere else.
#[test]
fn swapoff_maps_it_where_it_was() {
    explore(|| {
        let (machine, deferred) = (machine(mapped()), Deferred::default());
        machine.try_to_unmap(0, &deferred);
        machine.folio(0).core.test_clear_dirty();
        assert!(machine.swapoff(0) && machine.mapped(0) && !machine.swapoff(0));
        assert_eq!(machine.folio(0).mapping(), None);
        assert!(machine.folio(0).core.is_dirty());
        assert_eq!(machine.table.ptep_get(0) & (WRITE | DIRTY | YOUNG), 0);
    });
}
