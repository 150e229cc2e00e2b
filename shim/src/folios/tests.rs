// SPDX-License-Identifier: GPL-2.0

//! What the model of a stop objects to.

use super::*;
use crate::{
    pte::{
        pte,
        DIRTY,
        WRITE, //
    },
    sync::explore,
    unmap::Layout, //
};
use mm_batch::folios::FoundFolios;

/// Two folios of one page, in the swap cache, the first exclusive.
fn folios() -> [Folio; 2] {
    [0, 1].map(|i| {
        let folio = Folio::in_swap_cache(8 + i, 1, Slots::new(64 + i, &[0], None));
        folio.map(1);
        folio
    })
}

fn both() -> FolioSet {
    FolioSet::new(0b11).expect("it has bits")
}

/// Does something to both, with a page table that maps both.
fn at_a_stop(does: impl Fn(&mut Stop<'_>) + Send + Sync + 'static) {
    explore(move || {
        let folios = folios();
        folios[0].anon.set_exclusive(0);
        let mm = Mm::new(Layout::anonymous(2), &[pte(8, WRITE), pte(9, 0)]);
        Together::new(&folios).stop(&mm, 0, |mut stop| does(&mut stop));
    });
}

#[test]
#[should_panic(expected = "folio 0 is Mapped")]
fn what_was_not_found_is_not_cleared() {
    // SAFETY: They were not, which is to be noticed.
    at_a_stop(|stop| unsafe { stop.clear_flush(both()) });
}

#[test]
#[should_panic(expected = "folio 0 is left Cleared")]
fn what_is_left_cleared_is_noticed() {
    at_a_stop(|stop| {
        stop.find();
        // SAFETY: They were found just now.
        unsafe { stop.clear_flush(both()) };
    });
}

#[test]
#[should_panic(expected = "folio 0 is left Counted")]
fn counts_that_are_left_are_noticed() {
    at_a_stop(|stop| {
        stop.find();
        // SAFETY: They were found just now.
        unsafe { stop.dup_swap(both()) };
    });
}

#[test]
#[should_panic(expected = "folio 0 is Cleared { counted: false }")]
fn entries_that_are_not_counted_are_noticed() {
    at_a_stop(|stop| {
        stop.find();
        // SAFETY: They are not counted, which is to be noticed.
        unsafe {
            stop.clear_flush(both());
            stop.prepare_for_swap_entries(both());
        }
    });
}

#[test]
#[should_panic(expected = "page 0 is exclusive, and swapped out")]
fn an_exclusive_page_of_a_batch_that_is_swapped_out_is_noticed() {
    at_a_stop(|stop| {
        stop.find();
        // SAFETY: A page is exclusive, which is to be noticed.
        unsafe {
            stop.dup_swap(both());
            stop.clear_flush(both());
            stop.prepare_for_swap_entries(both());
            stop.set_swp_ptes(both());
        }
    });
}

/// What may vanish by types, and must not by policy, vanishes.
#[test]
fn what_can_be_unmapped_is_found() {
    let found = |words: [u64; 4], change: fn(&[Folio; 2], &Mm)| {
        let folios = folios();
        let layout = Layout {
            table: 4,
            ..Layout::anonymous(3)
        };
        let mm = Mm::new(layout, &words);
        change(&folios, &mm);
        Together::new(&folios).stop(&mm, 0, |mut stop| {
            FoundFolios::find(&mut stop).map(|found| found.clear().set().bits())
        })
    };
    explore(move || {
        let (a, b) = (pte(8, WRITE), pte(9, WRITE));
        assert_eq!(found([a, b, 0, 0], |_, _| ()), Some(0b11));
        assert_eq!(found([a, 0, b, 0], |_, _| ()), Some(0b11));
        assert_eq!(found([a, 0, 0, b], |_, _| ()), Some(0b01), "another VMA's");
        assert_eq!(found([a, b | YOUNG, 0, 0], |_, _| ()), Some(0b01));
        assert_eq!(found([a | YOUNG, b, 0, 0], |_, _| ()), None);
        assert_eq!(
            found([a, b, 0, 0], |folios, _| folios[1].clear_swapbacked()),
            Some(0b01)
        );
        assert_eq!(found([a, b, 0, 0], |_, mm| mm.set_mlocked()), None);
    });
}

/// A fork gives the child what C gives it of a mapping that is not shared: read-only, old, and dirty
/// where the parent's PTE is.
#[test]
fn a_fork_shares_a_page() {
    explore(|| {
        let folios = folios();
        folios[0].anon.set_exclusive(0);
        let [parent, child] = [[pte(8, WRITE | DIRTY | YOUNG), pte(9, YOUNG)], [0, 0]]
            .map(|words| Mm::new(Layout::anonymous(2), &words));
        others::fork(&parent, &child, &folios);
        assert_eq!(parent.table.ptep_get(0), pte(8, DIRTY | YOUNG));
        assert_eq!(child.table.ptep_get(0), pte(8, DIRTY));
        assert_eq!(child.table.ptep_get(1), pte(9, 0));
        assert!(!folios[0].anon.is_exclusive(0));
    });
}
