// SPDX-License-Identifier: GPL-2.0

//! Whoever uses the port otherwise than it asks is noticed, and so is a folio that is freed too
//! early.

use super::{
    list::{
        List,
        Name, //
    },
    pageout::Looked,
    report::{
        Fate,
        Window, //
    },
    *, //
};
use crate::{
    pte::{
        WRITE,
        YOUNG, //
    },
    sync::explore, //
};
use mm_batch::reclaim::FolioList;

fn dirty() -> Spec {
    Spec::page_of(Mapping::Swap)
}

/// A page that a CPU may write to.
fn mapped() -> Spec {
    Spec {
        pte: Some(WRITE | DIRTY | YOUNG),
        translated: true,
        dirty: false,
        ..dirty()
    }
}

fn machine(spec: Spec) -> Machine {
    Machine::new(1, &[spec.clone(), spec])
}

/// Takes the first folio off a list, and unmaps it: it is dirty, and locked.
fn take_dirty(list: &List<'_>) {
    assert_eq!(list.take(), Some(0));
    assert_eq!(list.shrink_to_dirty(0), Looked::Dirty);
}

/// Does something with a list of two folios like this, of which the first is dirty, and locked.
fn given(spec: fn() -> Spec, then: fn(&Machine, List<'_>)) {
    explore(move || {
        let machine = machine(spec());
        let list = List::new(&machine, 0..2);
        take_dirty(&list);
        then(&machine, list);
    });
}

#[test]
#[should_panic(expected = "reclaim goes on while a folio is locked")]
fn a_folio_that_is_locked_while_reclaim_goes_on_is_noticed() {
    given(dirty, |_, list| {
        list.shrink_folios();
    });
}

#[test]
#[should_panic(expected = "two folios are locked")]
fn a_second_lock_is_noticed() {
    given(dirty, |_, list| assert!(list.trylock(1)));
}

#[test]
#[should_panic(expected = "unlocking a folio that is not locked")]
fn a_folio_of_the_list_that_is_unlocked_twice_is_noticed() {
    given(dirty, |_, list| {
        list.unlock(0);
        list.unlock(0);
    });
}

#[test]
#[should_panic(expected = "putting back a folio that is not off the list")]
fn a_folio_that_is_put_back_twice_is_noticed() {
    given(dirty, |_, list| {
        list.end_locked(0, Fate::Kept);
        list.end(0, Fate::Kept);
    });
}

#[test]
#[should_panic(expected = "a locked folio is put back")]
fn a_folio_that_is_put_back_locked_is_noticed() {
    given(dirty, |_, list| list.end(0, Fate::Kept));
}

#[test]
#[should_panic(expected = "a flush while a folio is locked")]
fn a_flush_with_a_lock_is_noticed() {
    given(dirty, |_, mut list| list.port().try_to_unmap_flush_dirty());
}

#[test]
#[should_panic(expected = "a folio was split while it waits")]
fn a_folio_that_is_split_while_it_waits_is_noticed() {
    explore(|| {
        let machine = machine(Spec { nr: 4, ..mapped() });
        List::new(&machine, 0..2)
            .meanwhile(|index, _| machine.folio(1 - index).set_nr(1))
            .shrink();
    });
}

#[test]
#[should_panic(expected = "waiting for writeback while a folio waits for a flush")]
fn a_folio_that_waits_for_the_writeback_of_another_is_noticed() {
    given(dirty, |_, list| {
        list.unlock(0);
        list.wait_for_writeback(1);
    });
}

#[test]
#[should_panic(expected = "waiting for writeback while a folio is locked")]
fn waiting_for_writeback_with_a_lock_is_noticed() {
    given(dirty, |_, list| list.wait_for_writeback(1));
}

#[test]
#[should_panic(expected = "folios are freed while a folio is locked")]
fn a_free_with_a_lock_is_noticed() {
    given(dirty, |_, list| list.free_batch());
}

#[test]
#[should_panic(expected = "the list ends while a folio is locked")]
fn a_list_that_ends_with_a_lock_is_noticed() {
    explore(|| {
        let machine = machine(dirty());
        let list = List::new(&machine, [0]);
        take_dirty(&list);
        list.finish();
    });
}

#[test]
#[should_panic(expected = "the list is not empty")]
fn a_list_that_ends_too_early_is_noticed() {
    given(dirty, |_, list| {
        list.end_locked(0, Fate::Kept);
        list.finish();
    });
}

#[test]
#[should_panic(expected = "folio 0 is lost")]
fn a_lost_folio_is_noticed() {
    explore(|| {
        let machine = machine(dirty());
        let list = List::new(&machine, [0]);
        take_dirty(&list);
        list.unlock(0);
        list.finish();
    });
}

#[test]
#[should_panic(expected = "folio 1 comes to the list twice")]
fn a_folio_that_comes_twice_is_noticed() {
    given(dirty, |_, list| list.add(1));
}

#[test]
#[should_panic(expected = "activating a folio that is not locked")]
fn an_unlocked_folio_that_is_activated_is_noticed() {
    given(dirty, |_, list| {
        list.unlock(0);
        list.activate(0);
    });
}

#[test]
#[should_panic(expected = "asking for the mapping of a folio that is not locked")]
fn a_mapping_that_may_go_is_noticed() {
    given(dirty, |_, mut list| {
        list.unlock(0);
        list.port().folio_mapping(&Name::of(0));
    });
}

#[test]
#[should_panic(expected = "locking a folio that is not off the list")]
fn a_folio_that_is_locked_on_the_list_is_noticed() {
    given(dirty, |_, mut list| {
        list.unlock(0);
        list.port().retry(&Name::of(1));
    });
}

#[test]
#[should_panic(expected = "pageout of a folio that is not off the list")]
fn pageout_of_a_folio_that_has_ended_is_noticed() {
    given(dirty, |_, mut list| {
        list.end_locked(0, Fate::Kept);
        #[allow(unsafe_code)]
        // SAFETY: It has ended, which is to be noticed.
        unsafe {
            list.port().pageout(Name::of(0), Mapping::Swap)
        };
    });
}

#[test]
#[should_panic(expected = "pageout of a folio that is not locked")]
fn pageout_of_an_unlocked_folio_is_noticed() {
    given(dirty, |_, list| {
        list.unlock(0);
        list.pageout(0, Mapping::Swap);
    });
}

#[test]
#[should_panic(expected = "pageout while a flush is owed")]
fn pageout_before_the_flush_is_noticed() {
    given(mapped, |_, list| list.pageout(0, Mapping::Swap));
}

#[test]
#[should_panic(expected = "pageout of a mapped folio")]
fn pageout_of_a_mapped_folio_is_noticed() {
    given(mapped, |machine, mut list| {
        list.unlock(0);
        list.port().try_to_unmap_flush_dirty();
        assert!(machine.fault(0, true) && list.trylock(0));
        list.pageout(0, Mapping::Swap);
    });
}

#[test]
#[should_panic(expected = "pageout of a folio of another mapping")]
fn pageout_by_another_mapping_is_noticed() {
    given(dirty, |_, list| list.pageout(0, Mapping::Shmem));
}

#[test]
#[should_panic(expected = "a folio with references is freed")]
fn a_free_with_references_is_noticed() {
    explore(|| machine(dirty()).free(0));
}

#[test]
#[should_panic(expected = "a locked folio is freed")]
fn a_free_of_a_locked_folio_is_noticed() {
    explore(|| {
        let machine = machine(dirty());
        assert!(machine.folio(0).trylock());
        machine.put(0, 2);
    });
}

#[test]
#[should_panic(expected = "a folio is freed to which a CPU has a translation")]
fn a_free_before_the_flush_is_noticed() {
    given(mapped, |machine, list| {
        list.unlock(0);
        machine.put(0, 2);
    });
}

#[test]
#[should_panic(expected = "a folio is freed twice")]
fn a_folio_that_is_freed_twice_is_noticed() {
    explore(|| {
        let machine = machine(dirty());
        machine.put(0, 2);
        machine.folio(0).unlock();
        machine.free(0);
    });
}

#[test]
#[should_panic(expected = "a mapping was removed twice")]
fn a_mapping_of_reclaim_removed_twice_is_noticed() {
    explore(|| machine(dirty()).folio(0).add_rmap(-1));
}

#[test]
#[should_panic(expected = "a write to folio 0 is lost")]
fn a_write_behind_pageout_is_noticed() {
    given(dirty, |machine, list| {
        list.pageout(0, Mapping::Swap);
        machine.folio(0).write();
        machine.assert_nothing_lost(0);
    });
}

#[test]
#[should_panic(expected = "a write to folio 0 is lost")]
fn a_write_to_what_is_clean_is_noticed() {
    explore(|| {
        let machine = machine(mapped());
        machine.folio(0).write();
        machine.assert_nothing_lost(0);
        machine.table.get_and_clear(0);
        machine.assert_nothing_lost(0);
    });
}

/// Neither one that is put back because of what it is, nor one that cannot be written.
#[test]
fn what_this_pass_has_unmapped_is_flushed_for_before_it_is_put_back() {
    explore(|| {
        for pinned in [false, true] {
            let machine = machine(Spec {
                mapping: if pinned { Mapping::Swap } else { Mapping::File },
                ..mapped()
            });
            let _pin = pinned.then(|| machine.pin_and_write(0));
            let list = List::new(&machine, [0]);
            list.shrink_folios();
            assert!(!machine.cpus.translate(8));
            list.finish();
        }
    });
}

/// Which would be a flush for each of a batch.
#[test]
fn what_this_pass_has_not_unmapped_is_not_flushed_for() {
    explore(|| {
        let referenced = Spec {
            flags: vec![Flag::Referenced],
            ..mapped()
        };
        let machine = Machine::new(1, &[mapped(), referenced]);
        let list = List::new(&machine, 0..2);
        take_dirty(&list);
        list.unlock(0);
        assert_eq!(list.take(), Some(1));
        assert_eq!(list.shrink_to_dirty(1), Looked::Ended);
        assert!(list.deferred.pending());
        list.end(0, Fate::Kept);
        list.finish();
    });
}

/// Who is too late finds that it is gone, or that somebody else was first.
#[test]
fn a_fault_maps_what_it_finds() {
    explore(|| {
        let machine = machine(mapped());
        let list = List::new(&machine, [0]);
        assert!(!machine.fault(0, true), "it is mapped");
        take_dirty(&list);
        assert!(!machine.fault(0, true), "it is locked");
        list.unlock(0);
        assert!(machine.fault(0, false) && machine.mapped(0));
        assert_eq!(machine.folio(0).core.ref_count(), 3);
        assert!(machine.pin_and_write(0).is_some());
        machine.zap(0);
        assert!(
            !machine.mapped(0) && !machine.fault(0, true),
            "it is unmapped"
        );
        list.end(0, Fate::Kept);
        list.finish();
    });
}

#[test]
fn a_slot_that_nobody_names_is_freed() {
    given(mapped, |machine, list| {
        machine.free_swap(0);
        assert_eq!(
            machine.folio(0).mapping(),
            Some(Mapping::Swap),
            "it is named"
        );
        list.unlock(0);
        machine.zap(0);
        assert_eq!(machine.folio(0).mapping(), None);
        assert_eq!(machine.folio(0).core.ref_count(), 1);
    });
}

/// A PTE that is there does not vouch for a write: its dirty bit does.
#[test]
#[should_panic(expected = "a write to folio 0 is lost")]
fn a_write_that_neither_folio_nor_pte_know_of_is_noticed() {
    explore(|| {
        let machine = machine(Spec {
            pte: Some(WRITE | YOUNG),
            ..mapped()
        });
        machine.folio(0).write();
        machine.assert_nothing_lost(0);
    });
}

#[test]
fn each_cpu_has_a_translation() {
    explore(|| {
        let machine = Machine::new(2, &[mapped()]);
        machine.table.get_and_clear(0);
        assert!(machine.write(0, 0) && machine.write(1, 0));
    });
}

/// Until the flush, it can be written to by a translation that is left.
#[test]
fn what_waits_is_not_flushed_for_yet() {
    explore(|| {
        let machine = machine(mapped());
        List::new(&machine, [0])
            .meanwhile(|_, window| {
                let translated = window != Window::Unlocked || machine.cpus.translate(8);
                assert!(translated, "it was flushed for");
            })
            .shrink();
    });
}
