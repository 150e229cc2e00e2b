// SPDX-License-Identifier: GPL-2.0

//! The port of `folio_batch` at one stop of an rmap walk: folios of a batch that one page table
//! maps.
//!
//! | here                           | in 7.3                                                       |
//! |--------------------------------|--------------------------------------------------------------|
//! | [`Together`]                   | the batch of `struct shrink_ctx`, mm/vmscan.c, by this series |
//! | [`Together::stop`]             | `page_vma_mapped_walk()` at a present PTE, mm/page_vma_mapped.c |
//! | [`Together::rmap_walk`]        | `rmap_walk()` of one folio after the other, mm/rmap.c, with `try_lock` |
//! | [`Stop`]'s methods             | `ttu_folios_*()`, mm/rmap.c, by this series                  |
//! | [`others`]                     | who else has to do with these PTEs                           |
//! | counts, flags, slots, PTEs     | [`crate::folio`], [`crate::swap`], [`crate::pte`]            |
//!
//! What a port's method asks of its caller is checked, folio by folio: one that is cleared and
//! was not found, restored and is not cleared, written as a swap entry and not counted, and so on,
//! panics; so does a stop that ends with a folio half done. What is beyond the VMA, in the same
//! page table, are PTEs of another one, which may be walked as well: a folio is unmapped where all
//! of it is in one.
//!
//! Neighbours in the swap cache are counted for all or none, as in C, but each under a lock of its
//! own: others may see a count that is taken back.
//!
//! Left out: VMAs of an mm that differ in more than where they are; what a flush does
//! ([`crate::reclaim::stop`] has TLBs), groups of PTEs as of arm64, swapoff, mmu notifiers, a pin of a
//! small folio that is counted by its references, KSM.

// Ports promise what is in their traits' Safety sections.
#![allow(unsafe_code)]

use crate::{
    folio::Folio,
    lock::BitLock,
    pte::{
        pte_pfn,
        swp_pte,
        DIRTY,
        PRESENT,
        SOFT_DIRTY,
        SWP_EXCLUSIVE,
        SWP_SOFT_DIRTY,
        SWP_UFFD,
        UFFD_WP,
        YOUNG, //
    },
    smp,
    swap::Slots,
    sync::step,
    unmap::{
        Mm,
        Rss, //
    }, //
};
use mm_batch::{
    folio_batch::LazyfreeFoliosWalk,
    folios::{
        FolioSet,
        FoliosWalk,
        SwapFoliosWalk, //
    }, //
};
use std::{
    cell::{
        Cell,
        RefCell, //
    },
    ops::Range, //
};

#[forbid(unsafe_code)]
pub mod others;

/// Slots of a cluster. C: `SWAPFILE_CLUSTER`, mm/swap.h, 7.3.
pub const CLUSTER: usize = 512;

/// A batch of folios, which their owner has locked, or need not lock.
#[derive(Debug)]
pub struct Together<'f> {
    folios: &'f [Folio],
    ignore_references: bool,
}

impl<'f> Together<'f> {
    /// These, at most 32.
    pub fn new(folios: &'f [Folio]) -> Self {
        assert!(folios.len() <= 32, "a batch has at most 32 folios");
        Self {
            folios,
            ignore_references: false,
        }
    }

    /// The same, where young PTEs are no reason to keep a folio.
    pub fn ignoring_references(self) -> Self {
        Self {
            ignore_references: true,
            ..self
        }
    }

    /// Runs `unmap` at the PTE `at`, which maps a page of a folio of the batch, with the page table
    /// lock held.
    ///
    /// # Panics
    ///
    /// If it does not, or a folio is half done in the end.
    pub fn stop<T>(&self, mm: &Mm, at: usize, unmap: impl FnOnce(Stop<'_>) -> T) -> T {
        let (result, _) = self.stop_and_tell(mm, at, unmap);
        result
    }

    /// The same; also returns what was done.
    pub fn stop_and_tell<T>(
        &self,
        mm: &Mm,
        at: usize,
        unmap: impl FnOnce(Stop<'_>) -> T,
    ) -> (T, Vec<Event>) {
        let done = self.locked(mm, &mm.layout.vma, |_| Some(at), unmap);
        done.expect("the PTE was given")
    }

    fn locked<T>(
        &self,
        mm: &Mm,
        vma: &Range<usize>,
        find: impl FnOnce(&Mm) -> Option<usize>,
        unmap: impl FnOnce(Stop<'_>) -> T,
    ) -> Option<(T, Vec<Event>)> {
        let mut rss = mm.lock();
        let at = find(mm)?;
        let word = mm.table.ptep_get(at);
        let own = self.folios.iter().position(|folio| maps(word, folio));
        let done = Done {
            rss: Cell::new(*rss),
            folios: self.folios.iter().map(|_| RefCell::default()).collect(),
            events: RefCell::default(),
        };
        let result = unmap(Stop {
            batch: self,
            mm,
            vma,
            at,
            own: own.expect("a walk stops at a folio of the batch"),
            done: &done,
        });
        *rss = done.rss.get();
        for (folio, one) in done.folios.iter().enumerate() {
            let stage = one.borrow().stage;
            assert!(stage.is_over(), "folio {folio} is left {stage:?}");
        }
        Some((result, done.events.into_inner()))
    }

    /// Unmaps the batch: for each folio that is mapped yet, and each VMA of an mm that maps it, a stop
    /// at its first PTE there. An rmap lock that somebody has is not waited for: false.
    pub fn rmap_walk(
        &self,
        vmas: &[(&Mm, Range<usize>)],
        rmap: &BitLock,
        unmap: impl Fn(Stop<'_>) -> Option<FolioSet>,
    ) -> bool {
        if !rmap.trylock() {
            return false;
        }
        for folio in self.folios {
            for (mm, vma) in vmas {
                let first = |mm: &Mm| {
                    let mut vma = vma.clone();
                    vma.find(|&at| maps(mm.table.ptep_get(at), folio))
                };
                self.locked(mm, vma, first, &unmap);
            }
        }
        rmap.unlock();
        true
    }
}

/// Whether a PTE maps a page of a folio.
fn maps(word: u64, folio: &Folio) -> bool {
    word & PRESENT != 0 && folio.has(pte_pfn(word))
}

/// What was done, with the bits of the folios that it was done to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Event {
    Found(u32),
    SwapDup(u32),
    SwapPut(u32),
    Cleared(u32),
    Ordered,
    Restored(u32),
    ExclusiveAsked(u32),
    PinTested(u32),
    Prepared(u32),
    Shared(u32),
    OrderedBehind,
    SwapPtes(u32),
    Ended(u32),
    Vanished(u32),
    ReferencesRead(u32),
    ReadOrdered,
    DirtyRead(u32),
    MadeSwapbacked(u32),
}

/// Where a folio is at a stop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Mapped,
    Found,
    Counted,
    Cleared {
        counted: bool,
    },
    /// Its PTEs are back, its counts not put back yet.
    RestoredCounted,
    Prepared,
    SwapPtes,
    Ended,
}

impl Stage {
    fn is_over(self) -> bool {
        matches!(self, Self::Mapped | Self::Found | Self::Ended)
    }
}

/// What a stop knows of one folio.
#[derive(Debug, Default)]
struct One {
    stage: Stage,
    /// Its PTEs as they were cleared, from the first of its pages on, and where.
    words: Vec<u64>,
    places: Range<usize>,
    /// Of each page, whether it was exclusive when it was shared.
    exclusive: Vec<bool>,
}

/// What the page table lock protects, while a stop has it.
#[derive(Debug)]
struct Done {
    rss: Cell<Rss>,
    folios: Vec<RefCell<One>>,
    events: RefCell<Vec<Event>>,
}

/// A stop at a page table: the port's implementation.
#[derive(Debug)]
pub struct Stop<'m> {
    batch: &'m Together<'m>,
    mm: &'m Mm,
    vma: &'m Range<usize>,
    at: usize,
    own: usize,
    done: &'m Done,
}

impl Stop<'_> {
    /// The VMA's PTEs in this page table.
    fn reach(&self) -> Range<usize> {
        let nr = self.mm.layout.table;
        let table = self.at / nr * nr;
        table.max(self.vma.start)..(table + nr).min(self.vma.end)
    }

    /// Its PTEs, if all are here, in a row.
    fn places(&self, folio: &Folio) -> Option<Range<usize>> {
        let word = |at| self.mm.table.ptep_get(at);
        let first = self.reach().find(|&at| maps(word(at), folio))?;
        let places = first..first + folio.nr;
        let whole = places.end <= self.reach().end
            && places
                .clone()
                .zip(folio.pfn..)
                .all(|(at, pfn)| word(at) & PRESENT != 0 && pte_pfn(word(at)) == pfn);
        whole.then_some(places)
    }

    /// File or shmem, anonymous in the swap cache, lazyfree: what can be unmapped at all.
    fn kind(&self, folio: &Folio) -> Option<usize> {
        let kind = (
            self.mm.layout.of_file,
            folio.is_swapbacked(),
            folio.swap.is_some(),
        );
        let kinds = [
            (true, false, false),
            (true, true, false),
            (false, true, true),
            (false, false, false),
        ];
        // The first two are one.
        kinds.iter().position(|&one| one == kind).map(|i| i.max(1))
    }

    fn can_be_unmapped(&self, folio: &Folio) -> bool {
        let own = self.kind(&self.batch.folios[self.own]);
        let Some(places) = self.places(folio) else {
            return false;
        };
        let any = |bit: u64| {
            places
                .clone()
                .any(|at| self.mm.table.ptep_get(at) & bit != 0)
        };
        own.is_some()
            && self.kind(folio) == own
            && (self.batch.ignore_references || !any(YOUNG))
            && !(self.mm.layout.of_file && any(UFFD_WP))
    }

    fn note(&self, event: Event) {
        step!("{event:?}");
        self.done.events.borrow_mut().push(event);
    }

    fn count(&self, change: impl FnOnce(&mut Rss)) {
        let mut rss = self.done.rss.get();
        change(&mut rss);
        self.done.rss.set(rss);
    }

    /// The folios of a set, each as it goes from one stage to another.
    ///
    /// # Panics
    ///
    /// If one cannot.
    fn each(
        &self,
        set: FolioSet,
        next: impl Fn(Stage) -> Option<Stage>,
        what: impl Fn(&Folio, &mut One),
    ) {
        for i in members(set) {
            let mut one = self.done.folios[i].borrow_mut();
            let stage = one.stage;
            one.stage = next(stage).unwrap_or_else(|| panic!("folio {i} is {stage:?}"));
            what(&self.batch.folios[i], &mut one);
        }
    }

    /// Those of a set of which something is so.
    fn those(&self, set: FolioSet, is: impl Fn(&Folio) -> bool) -> Option<FolioSet> {
        those(members(set), |i| is(&self.batch.folios[i]))
    }
}

/// The folios of a set, by number.
pub(crate) fn members(set: FolioSet) -> impl Iterator<Item = usize> {
    (0..32).filter(move |i| set.bits() & (1 << i) != 0)
}

/// A set of those of `all` that are so.
pub(crate) fn those(
    all: impl Iterator<Item = usize>,
    is: impl Fn(usize) -> bool,
) -> Option<FolioSet> {
    let these = all.filter(|&i| is(i));
    FolioSet::new(these.fold(0, |set, i| set | (1 << i)))
}

/// Whether the slots of the one are followed by those of the next, in a cluster.
fn are_neighbours(one: &Folio, next: &Folio) -> bool {
    let first = slots(next).of(0);
    first == slots(one).of(one.nr) && first % CLUSTER != 0
}

fn slots(folio: &Folio) -> &Slots {
    folio.swap.as_ref().expect("the folio has no slots")
}

fn bits(set: Option<FolioSet>) -> u32 {
    set.map_or(0, FolioSet::bits)
}

// SAFETY: All methods work on `mm`; the answers are the model's.
unsafe impl FoliosWalk for Stop<'_> {
    fn find(&mut self) -> Option<FolioSet> {
        let all = FolioSet::new(((1u64 << self.batch.folios.len()) - 1) as u32)?;
        let found = self
            .those(all, |folio| self.can_be_unmapped(folio))
            .filter(|_| !self.mm.is_mlocked())
            .filter(|found| found.bits() & (1 << self.own) != 0);
        self.note(Event::Found(bits(found)));
        let stage = |stage| matches!(stage, Stage::Mapped | Stage::Found).then_some(Stage::Found);
        if let Some(found) = found {
            self.each(found, stage, |folio, one| {
                one.places = self.places(folio).expect("it was found just now");
            });
        }
        found
    }

    unsafe fn clear_flush(&self, set: FolioSet) {
        let cleared = |stage| match stage {
            Stage::Found => Some(Stage::Cleared { counted: false }),
            Stage::Counted => Some(Stage::Cleared { counted: true }),
            _ => None,
        };
        self.count(|rss| rss.hiwater = rss.hiwater.max(rss.pages));
        self.each(set, cleared, |folio, one| {
            let word = |at| self.mm.table.get_and_clear(at);
            one.words = one.places.clone().map(word).collect();
            let mapped = |(&word, pfn)| maps(word, folio) && pte_pfn(word) == pfn;
            assert!(one.words.iter().zip(folio.pfn..).all(mapped));
            if one.words.iter().any(|word| word & DIRTY != 0) {
                folio.mark_dirty();
            }
        });
        self.note(Event::Cleared(set.bits()));
    }

    fn smp_mb(&self) {
        smp::smp_mb();
        self.note(Event::Ordered);
    }

    unsafe fn restore(&self, set: FolioSet) {
        let restored = |stage| match stage {
            Stage::Cleared { counted: true } => Some(Stage::RestoredCounted),
            Stage::Cleared { counted: false } => Some(Stage::Found),
            _ => None,
        };
        self.each(set, restored, |_, one| {
            for (at, &word) in one.places.clone().zip(&one.words) {
                assert_eq!(self.mm.table.set(at, word), 0, "PTE {at} is not none");
            }
        });
        self.note(Event::Restored(set.bits()));
    }

    unsafe fn end_mappings(&self, set: FolioSet) {
        let ended = |stage| (stage == Stage::SwapPtes).then_some(Stage::Ended);
        self.each(set, ended, |folio, _| self.unmapped(folio));
        self.note(Event::Ended(set.bits()));
    }

    unsafe fn vanish(&self, set: FolioSet) {
        let cleared = Stage::Cleared { counted: false };
        let ended = |stage| (stage == cleared).then_some(Stage::Ended);
        self.each(set, ended, |folio, _| self.unmapped(folio));
        self.note(Event::Vanished(set.bits()));
    }
}

impl Stop<'_> {
    fn unmapped(&self, folio: &Folio) {
        self.count(|rss| rss.pages -= folio.nr as i64);
        folio.remove_rmap(folio.nr as i32);
        folio.put_refs(folio.nr as i32);
    }
}

// SAFETY: The answers are the model's.
unsafe impl SwapFoliosWalk for Stop<'_> {
    unsafe fn dup_swap(&self, set: FolioSet) -> Option<FolioSet> {
        let folio = |i: usize| &self.batch.folios[i];
        let these: Vec<_> = members(set).collect();
        let mut counted = 0;
        for run in these.chunk_by(|&one, &next| are_neighbours(folio(one), folio(next))) {
            let dup = |&&i: &&usize| slots(folio(i)).dup(0..folio(i).nr);
            let done = run.iter().take_while(dup).count();
            if done == run.len() {
                counted |= run.iter().fold(0, |all, i| all | (1 << i));
            } else {
                let put = |&i: &usize| slots(folio(i)).put(0..folio(i).nr);
                run[..done].iter().for_each(put);
            }
        }
        let counted = FolioSet::new(counted);
        let stage = |stage| (stage == Stage::Found).then_some(Stage::Counted);
        if let Some(counted) = counted {
            self.each(counted, stage, |_, _| ());
        }
        self.note(Event::SwapDup(bits(counted)));
        counted
    }

    unsafe fn put_swap(&self, set: FolioSet) {
        let put = |stage| {
            matches!(stage, Stage::Counted | Stage::RestoredCounted).then_some(Stage::Found)
        };
        self.each(set, put, |folio, _| slots(folio).put(0..folio.nr));
        self.note(Event::SwapPut(set.bits()));
    }

    fn exclusive(&self, set: FolioSet) -> Option<FolioSet> {
        let any = |folio: &Folio| (0..folio.nr).any(|page| folio.anon.is_exclusive(page));
        self.note(Event::ExclusiveAsked(set.bits()));
        self.those(set, any)
    }

    fn maybe_dma_pinned(&self, set: FolioSet) -> Option<FolioSet> {
        self.note(Event::PinTested(set.bits()));
        self.those(set, |folio| folio.anon.maybe_dma_pinned())
    }

    unsafe fn clear_anon_exclusive(&self, set: FolioSet) {
        let stage = |stage| (stage == Stage::Prepared).then_some(stage);
        self.each(set, stage, |folio, one| {
            let exclusive = |page| folio.anon.is_exclusive(page);
            one.exclusive = (0..folio.nr).map(exclusive).collect();
            (0..folio.nr)
                .filter(|&page| one.exclusive[page])
                .for_each(|page| folio.anon.clear_exclusive(page));
        });
        self.note(Event::Shared(set.bits()));
    }

    fn smp_mb_after_atomic(&self) {
        smp::smp_mb();
        self.note(Event::OrderedBehind);
    }

    unsafe fn prepare_for_swap_entries(&self, set: FolioSet) {
        let stage = |stage| (stage == Stage::Cleared { counted: true }).then_some(Stage::Prepared);
        self.each(set, stage, |folio, _| {
            self.count(|rss| rss.swapents += folio.nr as i64);
        });
        self.note(Event::Prepared(set.bits()));
    }

    unsafe fn set_swp_ptes(&self, set: FolioSet) {
        let stage = |stage| (stage == Stage::Prepared).then_some(Stage::SwapPtes);
        let bit = |there, bit| if there { bit } else { 0 };
        self.each(set, stage, |folio, one| {
            for (page, at) in one.places.clone().enumerate() {
                assert!(
                    !folio.anon.is_exclusive(page),
                    "page {page} is exclusive, and swapped out"
                );
                let word = one.words[page];
                let was_exclusive = one.exclusive.get(page) == Some(&true);
                let bits = bit(was_exclusive, SWP_EXCLUSIVE)
                    | bit(word & SOFT_DIRTY != 0, SWP_SOFT_DIRTY)
                    | bit(word & UFFD_WP != 0, SWP_UFFD);
                let was = self.mm.table.set(at, swp_pte(slots(folio).of(page), bits));
                assert_eq!(was, 0, "PTE {at} is not none");
            }
        });
        self.note(Event::SwapPtes(set.bits()));
    }
}

impl LazyfreeFoliosWalk for Stop<'_> {
    fn smp_rmb(&self) {
        smp::smp_rmb();
        self.note(Event::ReadOrdered);
    }

    fn referenced(&self, set: FolioSet) -> Option<FolioSet> {
        self.note(Event::ReferencesRead(set.bits()));
        self.those(set, |folio| folio.extra_refs() != 1)
    }

    fn redirtied(&self, set: FolioSet) -> Option<FolioSet> {
        self.note(Event::DirtyRead(set.bits()));
        let droppable = self.mm.layout.droppable;
        self.those(set, |folio| folio.is_dirty() && !droppable)
    }

    fn set_swapbacked(&self, set: FolioSet) {
        let mapped = |stage| (stage == Stage::Found).then_some(stage);
        self.each(set, mapped, |folio, _| folio.set_swapbacked());
        self.note(Event::MadeSwapbacked(set.bits()));
    }
}

#[cfg(test)]
mod tests;
