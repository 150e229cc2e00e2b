// SPDX-License-Identifier: GPL-2.0

//! `file_unmap`: any table of PTEs, against oracles that look at one PTE at a time.

use crate::ptes::{
    case,
    restored,
    unmapped,
    without_cont,
    Case,
    GROUP,
    NR,
    RESTORABLE, //
};
use mm_batch::{
    file_unmap::{
        unmap_file_run,
        unmap_lazyfree_run, //
    },
    pte::Respect,
    pte_run::{
        folio_pte_batch,
        PteSpan,
        RunLength, //
    }, //
};
use mm_shim::{
    folio::Folio,
    order::{
        Event,
        Flag, //
    },
    pte::{
        pte,
        CONT,
        DIRTY,
        PRESENT,
        UFFD_WP,
        UFFD_WP_MARKER,
        YOUNG, //
    },
    swap::Slots,
    unmap::{
        Layout,
        Mm, //
    }, //
};
use proptest::prelude::*;

fn respect() -> impl Strategy<Value = Respect> {
    any::<(bool, bool)>().prop_map(|(write, soft_dirty)| Respect { write, soft_dirty })
}

/// The length of a run that was unmapped, or that was kept.
fn length(result: Result<RunLength, RunLength>) -> Result<usize, usize> {
    let length = |nr: RunLength| nr.get() as usize;
    result.map(length).map_err(length)
}

/// What is done to a run of a file, each thing once.
fn done_to_a_file(nr: u32, dirty: bool) -> Vec<Event> {
    let mut done = vec![Event::Cleared(nr)];
    done.extend(dirty.then_some(Event::MarkedDirty));
    done.push(Event::LeftBehind(nr));
    done.extend(unmapped(nr));
    done
}

/// The same of a lazyfree one.
fn done_to_lazyfree(nr: u32, pte_dirty: bool, droppable: bool, stays: bool) -> Vec<Event> {
    let mut done = vec![Event::Cleared(nr)];
    done.extend(pte_dirty.then_some(Event::MarkedDirty));
    done.push(Event::Asked(Flag::Swapcache, false));
    done.extend([Event::Ordered, Event::RefsCounted, Event::ReadOrdered]);
    done.push(Event::Asked(Flag::Dirty, pte_dirty));
    done.extend(pte_dirty.then_some(Event::Asked(Flag::Droppable, droppable)));
    if stays {
        done.extend(restored(nr));
        done.extend((pte_dirty && !droppable).then_some(Event::MadeSwapbacked));
    } else {
        done.push(Event::LeftBehind(nr));
        done.extend(unmapped(nr));
    }
    done
}

/// Unmaps the folio from its VMA as the rmap walk does: run by run, each as long as can be.
fn unmap_all(case: &Case, mm: &Mm, folio: &Folio, mixed: bool) {
    let respect = if mixed {
        Respect::default()
    } else {
        RESTORABLE
    };
    for at in case.mapped() {
        if mm.table.ptep_get(at) & PRESENT == 0 {
            continue;
        }
        let nr = case.run(at, respect);
        let dirty = case.words[at..at + nr].iter().any(|word| word & DIRTY != 0);
        let (run, done) = mm.walk(folio, at, |walk| unmap_file_run(walk, mixed));
        assert_eq!(run.get() as usize, nr);
        assert_eq!(done, done_to_a_file(nr as u32, dirty));
    }
}

/// What a file folio's PTEs are afterwards, by 7.3's rule for one PTE.
fn one_by_one(case: &Case) -> Vec<u64> {
    let marked = |word: u64| case.layout.uffd_wp && word & UFFD_WP != 0;
    let after = |i: usize| match case.words[i] {
        word if !case.layout.vma.contains(&i) || !case.maps(i) => word & !CONT,
        word if marked(word) => UFFD_WP_MARKER,
        _ => 0,
    };
    (0..NR).map(after).collect()
}

proptest! {
    #![proptest_config(crate::cases(4096))]

    /// For any set of bits to respect.
    #[test]
    fn a_run_is_as_long_as_one_by_one(case in case(false), respect in respect()) {
        let mm = Mm::new(case.layout.clone(), &case.words);
        let folio = case.folio();
        let nr = case.run(case.at, respect);
        let (got, _) = mm.walk(&folio, case.at, |walk| {
            folio_pte_batch(&PteSpan::new(&walk), respect).get() as usize
        });
        prop_assert_eq!(got, nr);
    }

    /// A file folio is gone from its VMA, whatever it looked like, and nothing else is touched.
    #[test]
    fn a_file_folio_is_unmapped_as_one_by_one(
        case in case(false),
        mixed: bool,
    ) {
        let mm = Mm::new(case.layout.clone(), &case.words);
        let folio = case.folio();
        let (mapped, before) = (case.mapped().count(), mm.rss());
        unmap_all(&case, &mm, &folio, mixed);
        prop_assert_eq!(without_cont(mm.table.words()), one_by_one(&case));
        // Of a group that a run begins or ends in, nothing is contiguous any more.
        let words = mm.table.words();
        let left = |i: usize| words.iter().skip(i / GROUP * GROUP).take(GROUP).any(|word| word & CONT != 0);
        prop_assert!(!case.mapped().any(left));
        prop_assert_eq!((folio.mapcount(), folio.ref_count()), (0, 1));
        prop_assert_eq!(mm.rss().pages, before.pages - mapped as i64);
        prop_assert_eq!(mm.rss().hiwater, before.pages);
        let dirty = case.mapped().any(|i| case.words[i] & DIRTY != 0);
        prop_assert_eq!((folio.is_dirty(), folio.is_swapbacked()), (dirty, false));
    }

    /// If it is not mixed, a run is C's: its write and soft-dirty bits are alike.
    #[test]
    fn runs_that_are_not_mixed_are_those_of_c(case in case(false)) {
        let mm = Mm::new(case.layout.clone(), &case.words);
        let folio = case.folio();
        let (got, _) = mm.walk(&folio, case.at, |walk| unmap_file_run(walk, false));
        prop_assert_eq!(got.get() as usize, case.run(case.at, RESTORABLE));
    }

    /// If it is, a run is as long as it may be.
    #[test]
    fn mixed_runs_are_longest(case in case(false)) {
        let mm = Mm::new(case.layout.clone(), &case.words);
        let folio = case.folio();
        let (got, _) = mm.walk(&folio, case.at, |walk| unmap_file_run(walk, true));
        prop_assert_eq!(got.get() as usize, case.run(case.at, Respect::default()));
    }

    /// What holds a lazyfree folio back leaves it mapped, bit by bit but for young and dirty, which
    /// become those of the run; what does not, discards it, but for markers in a VMA of a file.
    #[test]
    fn a_lazyfree_folio_is_discarded_or_as_it_was(
        case in case(true),
        held in prop::bool::weighted(0.3),
        dirty: bool,
        droppable: bool,
        of_file: bool,
    ) {
        let mut case = case;
        case.layout.droppable = droppable;
        case.layout.of_file = of_file;
        let marked = of_file && case.layout.uffd_wp;
        if !dirty {
            case.words.iter_mut().for_each(|word| *word &= !DIRTY);
        }
        let mm = Mm::new(case.layout.clone(), &case.words);
        let folio = case.folio();
        folio.get(i32::from(held));
        let nr = case.run(case.at, RESTORABLE);
        let run = case.at..case.at + nr;
        let union = case.words[run.clone()].iter().fold(0, |all, word| all | word) & (YOUNG | DIRTY);
        let (before, mapped) = (mm.rss(), case.mapped().count());
        let (got, done) = mm.walk(&folio, case.at, |walk| unmap_lazyfree_run(walk));
        let redirtied = union & DIRTY != 0 && !droppable;
        let stays = redirtied || held;
        let expected = done_to_lazyfree(nr as u32, union & DIRTY != 0, droppable, stays);
        prop_assert_eq!(done, expected);
        let expected: Vec<u64> = without_cont(case.words.clone())
            .into_iter()
            .enumerate()
            .map(|(i, word)| match (run.contains(&i), stays) {
                (false, _) => word,
                (true, true) => word | union,
                (true, false) if marked && word & UFFD_WP != 0 => UFFD_WP_MARKER,
                (true, false) => 0,
            })
            .collect();
        prop_assert_eq!(without_cont(mm.table.words()), expected);
        prop_assert_eq!(length(got), if stays { Err(nr) } else { Ok(nr) });
        let gone = if stays { 0 } else { nr };
        prop_assert_eq!(folio.mapcount(), (mapped - gone) as i32);
        prop_assert_eq!(folio.ref_count(), 1 + i32::from(held) + (mapped - gone) as i32);
        prop_assert_eq!(mm.rss().pages, before.pages - gone as i64);
        prop_assert_eq!(folio.is_swapbacked(), redirtied);
        prop_assert_eq!(folio.is_dirty(), union & DIRTY != 0);
    }
}

/// More mappings than references: somebody is in between the two, and it is left alone.
#[test]
fn a_folio_with_fewer_references_than_mappings_is_kept() {
    let folio = Folio::new(8, 2);
    folio.map(2);
    folio.put_refs(1);
    let mm = Mm::new(Layout::anonymous(2), &[pte(8, 0), pte(9, 0)]);
    let (got, _) = mm.walk(&folio, 0, |walk| unmap_lazyfree_run(walk));
    assert_eq!(length(got), Err(2));
}

proptest! {
    #![proptest_config(crate::cases(64))]

    /// One that is in the swap cache all the same is complained of, and kept, as by C.
    #[test]
    fn a_lazyfree_folio_in_the_swap_cache_is_kept(case in case(true)) {
        let mm = Mm::new(case.layout.clone(), &case.words);
        let mut folio = case.folio();
        folio.swap = Some(Slots::new(0, &vec![0; folio.nr], None));
        let nr = case.run(case.at, RESTORABLE);
        let (got, done) = mm.walk(&folio, case.at, |walk| unmap_lazyfree_run(walk));
        prop_assert_eq!(length(got), Err(nr));
        prop_assert!(done.ends_with(
            &[&[Event::Asked(Flag::Swapcache, true), Event::Warned], &restored(nr as u32)[..]].concat()
        ));
        prop_assert_eq!((folio.mapcount(), folio.is_swapbacked()), (case.mapped().count() as i32, false));
    }
}
