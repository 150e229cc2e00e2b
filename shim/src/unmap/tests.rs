// SPDX-License-Identifier: GPL-2.0

//! What breaks a rule of the page tables is noticed.

use super::*;
use crate::{
    pte::pte,
    sync::explore, //
};
use mm_batch::{
    pte_run::{
        folio_pte_batch,
        PteSpan, //
    },
    unmap::{
        MixedRun,
        PteRun, //
    }, //
};

const PFN: usize = 8;

/// The folio's four pages, mapped by four PTEs with these bits.
fn mapped(layout: Layout, bits: [u64; 4]) -> (Mm, Folio) {
    let folio = Folio::new(PFN, 4);
    folio.map(4);
    let words: Vec<_> = (PFN..)
        .zip(bits)
        .map(|(pfn, bits)| pte(pfn, bits))
        .collect();
    (Mm::new(layout, &words), folio)
}

/// The run of all four.
fn whole(walk: &Walk<'_>) -> RunLength {
    folio_pte_batch(&PteSpan::new(walk), Respect::NOTHING)
}

fn file() -> (Mm, Folio) {
    mapped(Layout::file(4), [0; 4])
}

#[test]
fn merging_a_dirty_bit_makes_nothing_soft_dirty() {
    explore(|| {
        let (mm, folio) = mapped(Layout::file(4), [0, DIRTY, YOUNG, 0]);
        mm.walk(&folio, 0, |walk| {
            let cleared = PteRun::longest(walk).clear();
            let merged = cleared.part().first().raw();
            assert_eq!(merged, pte(PFN, DIRTY | YOUNG));
        });
    });
}

#[test]
#[should_panic(expected = "PTE 3 is beyond the VMA")]
fn a_pte_beyond_the_vma_is_noticed() {
    explore(|| {
        let mut layout = Layout::file(4);
        layout.vma = 0..3;
        let (mm, folio) = mapped(layout, [0; 4]);
        mm.walk(&folio, 0, |walk| walk.place(3));
    });
}

#[test]
#[should_panic(expected = "PTE 2 is beyond the page table")]
fn a_pte_beyond_the_table_is_noticed() {
    explore(|| {
        let mut layout = Layout::file(4);
        layout.table = 2;
        let (mm, folio) = mapped(layout, [0; 4]);
        mm.walk(&folio, 0, |walk| walk.place(2));
    });
}

#[test]
#[should_panic(expected = "a walk stops at what maps nothing")]
fn a_walk_at_nothing_is_noticed() {
    explore(|| {
        let (mm, folio) = file();
        mm.table.get_and_clear(1);
        mm.walk(&folio, 1, |_| ());
    });
}

#[test]
#[should_panic(expected = "PTE 1 was not present")]
fn a_pte_that_is_cleared_twice_is_noticed() {
    explore(|| {
        let (mm, folio) = file();
        mm.walk(&folio, 0, |walk| {
            let nr = whole(&walk);
            mm.table.get_and_clear(1);
            // SAFETY: A PTE of a model maps no memory.
            unsafe { walk.clear_flush_ptes(nr) };
        });
    });
}

#[test]
#[should_panic(expected = "PTE 1 is not none")]
fn a_marker_over_a_pte_is_noticed() {
    explore(|| {
        let mut layout = Layout::file(4);
        layout.uffd_wp = true;
        let (mm, folio) = mapped(layout, [UFFD_WP; 4]);
        mm.walk(&folio, 0, |walk| {
            let cleared = PteRun::longest(walk).clear();
            mm.table.set(1, UFFD_WP_MARKER);
            cleared.commit()
        });
    });
}

#[test]
#[should_panic(expected = "the page table lock goes while a run is Cleared(4)")]
fn a_run_that_is_forgotten_is_noticed() {
    explore(|| {
        let (mm, folio) = file();
        mm.walk(&folio, 0, |walk| {
            std::mem::forget(PteRun::longest(walk).clear());
        });
    });
}

#[test]
fn a_mixed_run_is_unmapped() {
    explore(|| {
        let (mm, folio) = mapped(Layout::file(4), [0, WRITE, SOFT_DIRTY, DIRTY]);
        let (run, _) = mm.walk(&folio, 0, |walk| MixedRun::longest(walk).unmap());
        assert_eq!(run.get(), 4);
        assert_eq!(mm.table.words(), [0; 4]);
        assert!(folio.is_dirty());
    });
}
