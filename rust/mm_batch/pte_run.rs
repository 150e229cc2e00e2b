// SPDX-License-Identifier: GPL-2.0

//! Unmapping a run of PTEs as a transaction.
//!
//! ```text
//! PteRun --clear--> ClearedRun --commit--> unmapped
//!                       |
//!                       +-------drop-----> mapped again
//! ```
//!
//! Both borrow the walk, which stands for the page table lock: neither can outlive the lock, so a
//! run that was cleared is committed or restored before anybody else sees the page table.

#![forbid(unsafe_code)]

use crate::pte_batch::{
    folio_pte_batch,
    Pte,
    PteSpan,
    PteTable,
    Respect,
    RunLength, //
};
use core::mem::ManuallyDrop;

/// One stop of an rmap walk: a present PTE that maps a page of a large folio, and what unmapping a
/// run that begins there needs of mm. Every loop over PTEs or pages is one method.
///
/// Context of all methods: folio lock and page table lock held; none sleeps.
pub trait UnmapWalk: PteTable {
    /// Clears the run's PTEs, each by an atomic exchange; returns the first, with the young and
    /// dirty bits of all.
    ///
    /// C: `flush_cache_range()` and `get_and_clear_ptes()`, include/linux/pgtable.h, 7.2.
    fn get_and_clear_ptes(&mut self, nr: RunLength) -> Pte;

    /// Sees to it that no CPU uses the cleared translations: flushes the TLB at once, or notes the
    /// range for `try_to_unmap_flush()`, which must come before the pages are freed, and before I/O
    /// if the run was dirty.
    ///
    /// C: `should_defer_flush()`, `set_tlb_ubc_flush_pending()` and `flush_tlb_range()` in
    /// `try_to_unmap_one()`, mm/rmap.c, 7.2.
    fn flush_tlb(&mut self, cleared: Pte, nr: RunLength);

    /// Whether a PTE has its dirty bit, or either of them (C: `pte_dirty()`).
    fn pte_dirty(&self, pte: Pte) -> bool;

    /// `pte`, with the soft-dirty bit of `as_in`.
    ///
    /// C: `pte_soft_dirty()` and `pte_clear_soft_dirty()`, include/linux/pgtable.h, 7.2.
    fn with_soft_dirty(&self, pte: Pte, as_in: Pte) -> Pte;

    /// Makes the folio dirty (C: `folio_mark_dirty()`).
    fn folio_mark_dirty(&mut self);

    /// Maps the run's pages again, the first by `pte`, the others by `pte` with their page frame.
    ///
    /// C: `set_ptes()`, include/linux/pgtable.h, 7.2. The PTEs are not present.
    fn set_ptes(&mut self, pte: Pte, nr: RunLength);

    /// Lets `hiwater_rss` know the peak before rss goes down (C: `update_hiwater_rss()`).
    fn update_hiwater_rss(&mut self);

    /// Changes the counter of the folio's kind, `MM_ANONPAGES`, `MM_FILEPAGES` or `MM_SHMEMPAGES`,
    /// by `pages` (C: `add_mm_counter(mm, mm_counter(folio), pages)`).
    fn add_mm_counter(&mut self, pages: i64);

    /// Takes the run's mappings away from the folio's mapcounts (C: `folio_remove_rmap_ptes()`, and
    /// `mlock_drain_local()` in a `VM_LOCKED` VMA).
    fn folio_remove_rmap_ptes(&mut self, nr: RunLength);

    /// Drops the references of the run's mappings. The folio stays: the caller holds one (C:
    /// `folio_put_refs()`).
    fn folio_put_refs(&mut self, nr: RunLength);
}

/// A run of present PTEs, found and not touched, that can be restored: its PTEs have the write and
/// soft-dirty bit in common.
#[derive(Debug)]
pub struct PteRun<'w, W: UnmapWalk> {
    walk: &'w mut W,
    first: Pte,
    nr: RunLength,
}

impl<'w, W: UnmapWalk> PteRun<'w, W> {
    /// The longest run from the walk's PTE, which is `first`, on.
    #[inline]
    pub fn longest(walk: &'w mut W, first: Pte) -> Self {
        let nr = folio_pte_batch(&PteSpan::new(walk), first, Respect::TO_RESTORE, |_| ());
        Self { walk, first, nr }
    }

    /// The run of the walk's PTE, which is `first`, alone.
    #[inline]
    pub fn single(walk: &'w mut W, first: Pte) -> Self {
        let nr = PteSpan::new(walk).run_of_one();
        Self { walk, first, nr }
    }

    /// Clears the run, gets rid of its translations, and hands on what the hardware noted in it.
    #[inline]
    pub fn clear(self) -> ClearedRun<'w, W> {
        let Self { walk, first, nr } = self;
        let cleared = walk.get_and_clear_ptes(nr);
        walk.flush_tlb(cleared, nr);
        // A PTE that was clean and is written to through a stale translation traps: it has to set
        // the bit in the PTE, which is gone.
        if walk.pte_dirty(cleared) {
            walk.folio_mark_dirty();
        }
        // A dirty bit that was merged in makes the PTE soft-dirty on some architectures, and the
        // run's PTEs were not.
        let pte = walk.with_soft_dirty(cleared, first);
        ClearedRun { walk, pte, nr }
    }
}

/// A run of present PTEs that may differ in their write and soft-dirty bits, and so can only be
/// unmapped for good: there is no cleared state of it to restore from.
#[derive(Debug)]
pub struct MixedRun<'w, W: UnmapWalk>(PteRun<'w, W>);

impl<'w, W: UnmapWalk> MixedRun<'w, W> {
    /// The longest run from the walk's PTE, which is `first`, on.
    #[inline]
    pub fn longest(walk: &'w mut W, first: Pte) -> Self {
        let nr = folio_pte_batch(&PteSpan::new(walk), first, Respect::NOTHING, |_| ());
        Self(PteRun { walk, first, nr })
    }

    /// Clears and commits: see [`PteRun::clear`] and [`ClearedRun::commit`].
    #[inline]
    pub fn unmap(self, leave: impl FnOnce(&mut W, Pte, RunLength)) -> RunLength {
        self.0.clear().commit(leave)
    }
}

/// A run of PTEs that are cleared, while rmap, counters and references still count its mappings.
///
/// Dropped, it maps all of the run again, before the page table lock can go. That does not undo
/// everything: the folio stays dirty if a PTE was, a deferred flush stays pending (it will flush
/// more than it must), and each PTE becomes as young and as dirty as any of the run was. Write,
/// soft-dirty and uffd-wp bits are what they were: the run has them in common.
#[derive(Debug)]
#[must_use = "a cleared run that is not committed is mapped again"]
pub struct ClearedRun<'w, W: UnmapWalk> {
    walk: &'w mut W,
    pte: Pte,
    nr: RunLength,
}

impl<W: UnmapWalk> ClearedRun<'_, W> {
    /// The walk, for looking at the folio while its PTEs are gone.
    #[inline]
    pub fn walk(&self) -> &W {
        self.walk
    }

    /// Ends the mappings for good: `leave` puts what stays into the PTEs, then counters, rmap and
    /// references follow.
    #[inline]
    pub fn commit(self, leave: impl FnOnce(&mut W, Pte, RunLength)) -> RunLength {
        // Nothing is restored from here on, and nothing below can fail.
        let mut run = ManuallyDrop::new(self);
        let (pte, nr) = (run.pte, run.nr);
        leave(run.walk, pte, nr);
        run.walk.update_hiwater_rss();
        run.walk.add_mm_counter(nr.removed());
        run.walk.folio_remove_rmap_ptes(nr);
        run.walk.folio_put_refs(nr);
        nr
    }
}

impl<W: UnmapWalk> Drop for ClearedRun<'_, W> {
    #[inline]
    fn drop(&mut self) {
        self.walk.set_ptes(self.pte, self.nr);
    }
}
