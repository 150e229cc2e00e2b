// SPDX-License-Identifier: GPL-2.0

//! `anon_unmap`: any table of PTEs of an anonymous folio, against an oracle that looks at one page
//! at a time: what C leaves where nothing fails, and what was there before where something does.

use crate::ptes::{
    case,
    restored,
    unmapped,
    without_cont,
    Case,
    NR,
    RESTORABLE, //
};
use mm_batch::{
    anon_unmap::unmap_run,
    pte_run::RunLength,
    to_swap::Sharing,
    unmap::{
        ClearedRun,
        PteRun, //
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
        pte_pfn,
        swp_pte,
        Table,
        DIRTY,
        PRESENT,
        SOFT_DIRTY,
        SWP_EXCLUSIVE,
        SWP_SOFT_DIRTY,
        SWP_UFFD,
        UFFD_WP,
        WRITE,
        YOUNG, //
    },
    swap::Slots,
    unmap::{
        Layout,
        Mm,
        Walk, //
    }, //
};
use proptest::prelude::*;
use std::ops::Range;

const SLOT: usize = 0x40;

/// What may fail, and what differs from page to page.
#[derive(Clone, Debug)]
struct Swap {
    /// Of each page of the folio, if its PTE does not say so.
    exclusive: Vec<bool>,
    counts: Vec<u32>,
    most: Option<u32>,
    pinned: bool,
}

fn swap() -> impl Strategy<Value = Swap> {
    (
        // Sub-batches, rather than a die for each page.
        prop::collection::vec((any::<bool>(), 1usize..12), 1..12),
        prop::collection::vec(prop_oneof![5 => Just(0u32), 2 => 1u32..4], NR),
        prop_oneof![3 => Just(None), 1 => Just(Some(3)), 1 => Just(Some(1))],
        prop::bool::weighted(0.3),
    )
        .prop_map(|(batches, counts, most, pinned)| {
            let mut exclusive: Vec<_> = batches
                .into_iter()
                .flat_map(|(exclusive, nr)| std::iter::repeat_n(exclusive, nr))
                .collect();
            exclusive.resize(NR, true);
            Swap {
                exclusive,
                counts,
                most,
                pinned,
            }
        })
}

/// A folio in the swap cache, mapped as the case has it.
struct Anon<'c> {
    case: &'c Case,
    swap: &'c Swap,
    mm: Mm,
    folio: Folio,
}

/// All that may change.
#[derive(Debug, PartialEq, Eq)]
struct State {
    words: Vec<u64>,
    exclusive: Vec<bool>,
    counts: Vec<u32>,
    pages: i64,
    swapents: i64,
    hiwater: i64,
    mapcount: i32,
    refs: i32,
    dirty: bool,
}

impl<'c> Anon<'c> {
    fn new(case: &'c Case, swap: &'c Swap) -> Self {
        let (pfn, nr) = case.folio;
        let slots = Slots::new(SLOT, &swap.counts[..nr], swap.most);
        let folio = Folio::in_swap_cache(pfn, nr, slots);
        folio.map(case.mapped().count());
        for page in 0..nr {
            let writable = |&i: &usize| {
                case.maps(i) && pte_pfn(case.words[i]) == pfn + page && case.words[i] & WRITE != 0
            };
            // What may be written to is nobody else's.
            if swap.exclusive[page] || (0..NR).any(|i| writable(&i)) {
                folio.anon.set_exclusive(page);
            }
        }
        if swap.pinned {
            let table = Table::new(&[pte(pfn, WRITE)]);
            mm_shim::gup::pin_fast(&table, 0, &folio, true).expect("a page of it, writable");
        }
        let mm = Mm::new(case.layout.clone(), &case.words);
        Self {
            case,
            swap,
            mm,
            folio,
        }
    }

    fn state(&self) -> State {
        let rss = self.mm.rss();
        State {
            words: without_cont(self.mm.table.words()),
            exclusive: (0..self.folio.nr)
                .map(|page| self.folio.anon.is_exclusive(page))
                .collect(),
            counts: self.slots().counts(),
            pages: rss.pages,
            swapents: rss.swapents,
            hiwater: rss.hiwater,
            mapcount: self.folio.mapcount(),
            refs: self.folio.ref_count(),
            dirty: self.folio.is_dirty(),
        }
    }

    fn slots(&self) -> &Slots {
        self.folio.swap.as_ref().expect("it is in the swap cache")
    }

    fn unmap(&self, at: usize) -> (Result<RunLength, RunLength>, Vec<Event>) {
        self.mm.walk(&self.folio, at, |walk| unmap_run(walk))
    }

    fn page(&self, i: usize) -> usize {
        pte_pfn(self.case.words[i]) - self.folio.pfn
    }

    /// Whether something is in the way of this run, by the state before.
    fn fails(&self, run: &Range<usize>, before: &State) -> bool {
        let full = |i| {
            self.swap
                .most
                .is_some_and(|most| before.counts[self.page(i)] >= most)
        };
        let exclusive = |i| before.exclusive[self.page(i)];
        run.clone().any(full) || self.swap.pinned && run.clone().any(exclusive)
    }

    /// So many pages from PTE `at` on, of the run that ends at `end`, that are as exclusive as the
    /// first.
    fn sub_batch(&self, at: usize, end: usize, before: &State) -> (Sharing, u32) {
        let exclusive = |i: usize| before.exclusive[self.page(i)];
        let nr = (at..end)
            .take_while(|&i| exclusive(i) == exclusive(at))
            .count();
        let sharing = if exclusive(at) {
            Sharing::Exclusive
        } else {
            Sharing::MaybeShared
        };
        (sharing, nr as u32)
    }

    /// What is to be done to a run, each thing once, and to pages that are alike at once.
    fn done(&self, run: &Range<usize>, before: &State) -> Vec<Event> {
        let nr = run.len() as u32;
        let asked = |at: usize| {
            let (sharing, nr) = self.sub_batch(at, run.end, before);
            Event::SharingAsked {
                at: (at - run.start) as u32,
                of: (run.end - at) as u32,
                sharing,
                nr,
            }
        };
        let mut done = vec![Event::Cleared(nr)];
        let dirty = self.case.words[run.clone()]
            .iter()
            .any(|word| word & DIRTY != 0);
        done.extend(dirty.then_some(Event::MarkedDirty));
        done.push(Event::Asked(Flag::Swapcache, true));
        let full = |page| {
            self.swap
                .most
                .is_some_and(|most| before.counts[page] >= most)
        };
        if run.clone().any(|i| full(self.page(i))) {
            done.push(Event::NotDup(nr));
            done.extend(restored(nr));
            return done;
        }
        done.extend([Event::SwapDup(nr), asked(run.start)]);
        if run.clone().any(|i| before.exclusive[self.page(i)]) {
            done.extend([Event::Ordered, Event::PinTested(self.swap.pinned)]);
            if self.swap.pinned {
                done.push(Event::SwapPut(nr));
                done.extend(restored(nr));
                return done;
            }
        }
        done.push(Event::Prepared(nr));
        let mut at = run.start;
        while at < run.end {
            let (sharing, nr) = self.sub_batch(at, run.end, before);
            if at != run.start {
                done.push(asked(at));
            }
            if sharing == Sharing::Exclusive {
                done.extend([Event::Shared(nr), Event::OrderedBehind]);
            }
            done.push(Event::SwapPtes(nr, sharing));
            at += nr as usize;
        }
        done.extend(unmapped(nr));
        done
    }

    /// What is to be left of a run, one page after the other.
    fn after(&self, run: &Range<usize>, mut state: State) -> State {
        let words = &self.case.words;
        let union = words[run.clone()].iter().fold(0, |all, word| all | word);
        state.dirty |= union & DIRTY != 0;
        if self.fails(run, &state) {
            for word in &mut state.words[run.clone()] {
                *word |= union & (YOUNG | DIRTY);
            }
            return state;
        }
        state.hiwater = state.hiwater.max(state.pages);
        for i in run.clone() {
            let page = self.page(i);
            let bit = |there, bit| if there { bit } else { 0 };
            let bits = bit(state.exclusive[page], SWP_EXCLUSIVE)
                | bit(words[i] & SOFT_DIRTY != 0, SWP_SOFT_DIRTY)
                | bit(words[i] & UFFD_WP != 0, SWP_UFFD);
            state.words[i] = swp_pte(SLOT + page, bits);
            state.exclusive[page] = false;
            state.counts[page] += 1;
            state.pages -= 1;
            state.swapents += 1;
            state.mapcount -= 1;
            state.refs -= 1;
        }
        state
    }
}

/// In a VMA without a file, or in a private one of a file, where markers would be left.
fn any_vma() -> impl Strategy<Value = Case> {
    prop_oneof![3 => case(true), 1 => case(false)]
}

proptest! {
    #![proptest_config(crate::cases(2048))]

    /// A run is all swapped out, or all as it was but for young and dirty.
    #[test]
    fn a_run_is_swapped_out_as_one_by_one_or_not_at_all(case in any_vma(), swap in swap()) {
        let anon = Anon::new(&case, &swap);
        let nr = case.run(case.at, RESTORABLE);
        let run = case.at..case.at + nr;
        let fails = anon.fails(&run, &anon.state());
        let expected = anon.after(&run, anon.state());
        let to_do = anon.done(&run, &anon.state());
        let (got, done) = anon.unmap(case.at);
        let (Ok(got_nr) | Err(got_nr)) = got;
        prop_assert_eq!((got.is_err(), got_nr.get() as usize), (fails, nr));
        prop_assert_eq!(done, to_do);
        prop_assert_eq!(anon.state(), expected);
    }

    /// The whole folio, as the rmap walk does: until the first run that fails.
    #[test]
    fn a_folio_is_swapped_out_run_by_run(case in any_vma(), swap in swap()) {
        let anon = Anon::new(&case, &swap);
        let mut expected = anon.state();
        for at in case.mapped() {
            if anon.mm.table.ptep_get(at) & PRESENT == 0 {
                continue;
            }
            let run = at..at + case.run(at, RESTORABLE);
            let to_do = anon.done(&run, &expected);
            expected = anon.after(&run, expected);
            let (got, done) = anon.unmap(at);
            prop_assert_eq!(&anon.state(), &expected);
            prop_assert_eq!(done, to_do);
            if got.is_err() {
                break;
            }
        }
    }
}

/// Clears two PTEs of a folio whose first page is exclusive, and has `drop_it` drop what it makes of
/// the run: what was done behind the clearing.
fn dropped(drop_it: impl FnOnce(ClearedRun<Walk<'_>>)) -> Vec<Event> {
    let folio = Folio::in_swap_cache(8, 2, Slots::new(SLOT, &[0, 0], None));
    folio.map(2);
    folio.anon.set_exclusive(0);
    let words = [pte(8, WRITE), pte(9, WRITE)];
    let mm = Mm::new(Layout::anonymous(2), &words);
    let ((), done) = mm.walk(&folio, 0, |walk| drop_it(PteRun::longest(walk).clear()));
    assert_eq!(mm.table.words(), words);
    assert_eq!(folio.swap.expect("it has slots").counts(), [0, 0]);
    done[1..].to_vec()
}

/// A guard in a guard: each undoes itself, and then what it holds.
#[test]
fn what_is_dropped_is_undone_in_reverse() {
    let counted = [Event::Asked(Flag::Swapcache, true), Event::SwapDup(2)];
    let put = [&[Event::SwapPut(2)], &restored(2)[..]].concat();
    assert_eq!(dropped(|run| drop(run)), restored(2));
    let done = dropped(|run| drop(run.count_swap_entries().expect("there is room")));
    assert_eq!(done, [&counted[..], &put].concat());
    let done = dropped(|run| {
        let run = run.count_swap_entries().expect("there is room");
        drop(run.share().expect("none is pinned"));
    });
    assert!(
        done.starts_with(&counted) && done.ends_with(&put),
        "{done:?}"
    );
}

proptest! {
    #![proptest_config(crate::cases(64))]

    /// A folio that is not in the swap cache is complained of, and kept, as by C.
    #[test]
    fn a_folio_without_swap_is_kept(case in case(true)) {
        let folio = Folio::new(case.folio.0, case.folio.1);
        folio.map(case.mapped().count());
        folio.set_swapbacked();
        let mm = Mm::new(case.layout.clone(), &case.words);
        let nr = case.run(case.at, RESTORABLE);
        let (got, done) = mm.walk(&folio, case.at, |walk| unmap_run(walk));
        prop_assert_eq!(got.expect_err("it has no slots").get() as usize, nr);
        prop_assert!(done.ends_with(
            &[&[Event::Asked(Flag::Swapcache, false), Event::Warned], &restored(nr as u32)[..]].concat()
        ));
    }
}
