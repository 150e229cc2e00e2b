// SPDX-License-Identifier: GPL-2.0

//! Each lock of the shim is held for as long as the kernel's: where it went earlier, two would be
//! in each other's way.

use crate::paths::dirty_flush::one;
use mm_batch::file_unmap::unmap_file_run;
use mm_shim::{
    fault::{
        do_swap_page,
        FolioLock, //
    },
    folio::Folio,
    model::{
        check,
        Bound, //
    },
    pte::{
        pte,
        swp_pte,
        SWP_EXCLUSIVE, //
    },
    reclaim::Machine,
    swap::Slots,
    sync::{
        thread,
        Arc, //
    },
    unmap::{
        Layout,
        Mm, //
    }, //
};

/// The counters are the table's, and counted under its lock.
#[test]
fn locks_two_folios_of_one_table() {
    check(Bound::Exhaustive, &["both"], |outcomes| {
        let folios = [8, 9].map(|pfn| {
            let folio = Folio::new(pfn, 1);
            folio.map(1);
            folio
        });
        let ours = Arc::new((Mm::new(Layout::file(2), &[pte(8, 0), pte(9, 0)]), folios));
        let theirs = ours.clone();
        let unmap = |(mm, folios): &(Mm, [Folio; 2]), at: usize| {
            mm.walk(&folios[at], at, |walk| unmap_file_run(walk, true));
        };
        let other = thread::spawn(move || unmap(&theirs, 1));
        unmap(&ours, 0);
        other.join().expect("the other thread panicked");
        assert_eq!(ours.0.rss().pages, 0);
        outcomes.saw("both");
    });
}

/// A fault that began before a zap does not map what the zap has taken.
#[test]
fn locks_fault_and_zap_of_one_entry() {
    let ends = ["the fault came first", "the zap came first"];
    check(Bound::Preemptions(3), &ends, move |outcomes| {
        let machine = Arc::new(Machine::new(1, &one()));
        assert!(machine.folio(0).trylock());
        machine.try_to_unmap(0, &Default::default());
        machine.folio(0).unlock();
        let theirs = machine.clone();
        let other = thread::spawn(move || theirs.fault(0, true));
        machine.zap(0);
        let faulted = other.join().expect("the fault panicked");
        assert!(!machine.mapped(0), "mapped behind a zap");
        outcomes.saw(ends[usize::from(!faulted)]);
    });
}

#[test]
fn locks_a_fault_waits_for_the_folio() {
    let ends = ["the lock came first", "the fault came first"];
    check(Bound::Exhaustive, &ends, move |outcomes| {
        let folio = Folio::in_swap_cache(8, 1, Slots::new(64, &[1], None));
        let mm = Mm::new(Layout::anonymous(1), &[swp_pte(64, SWP_EXCLUSIVE)]);
        let ours = Arc::new((mm, folio, FolioLock::default()));
        let theirs = ours.clone();
        let other = thread::spawn(move || do_swap_page(&theirs.0, &theirs.1, &theirs.2, 0, false));
        let locked = ours.2.lock();
        let before = ours.1.mapcount();
        thread::yield_now();
        assert_eq!(ours.1.mapcount(), before, "mapped while locked");
        drop(locked);
        assert!(other.join().expect("the fault panicked"));
        outcomes.saw(ends[usize::from(before != 0)]);
    });
}

#[test]
fn locks_the_last_count_of_a_slot_is_had_once() {
    check(Bound::Exhaustive, &["one"], |outcomes| {
        let slots = Arc::new(Slots::new(64, &[0], Some(1)));
        let theirs = slots.clone();
        let other = thread::spawn(move || theirs.dup(0..1));
        let ours = slots.dup(0..1);
        assert_ne!(ours, other.join().expect("the other thread panicked"));
        assert_eq!(slots.counts(), [1]);
        outcomes.saw("one");
    });
}
