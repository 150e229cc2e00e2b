// SPDX-License-Identifier: GPL-2.0

//! The PTEs of a run become swap entries, all or none.
//!
//! ```text
//! ClearedRun --count_swap_entries--> CountedRun --share--> ShareableRun --commit--> unmapped
//!                    |                    |
//!               not counted             pinned: the counts are put back
//!                    |                    |
//!                    +--------------------+--> mapped again
//! ```
//!
//! Each guards the one in it: dropped, it undoes its own step, and then what it holds.
//!
//! Both steps that can fail are taken for the whole run before the first entry is written. So a run
//! is never half converted, and a page keeps its AnonExclusive bit until it is certain that it is
//! not mapped again. C converts page by page, and has converted some where it fails.
//!
//! The steps of `__folio_try_share_anon_rmap()`, include/linux/rmap.h, 7.3, by the names that its
//! comment gives them: (A1) is the clearing of the run, (A2) is [`CountedRun::share`], (A3) and
//! (A4) are [`ShareableRun::commit`].

use crate::{
    pte_run::RunLength,
    unmap::{
        ClearedRun,
        Part,
        UnmapWalk, //
    }, //
};
use core::{
    mem::ManuallyDrop,
    num::NonZero,
    ptr, //
};

/// Whether pages are this mm's alone (C: `PageAnonExclusive()`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// They are: they may be written to, and pinned.
    Exclusive,
    /// Another mm may have them: they are copied when they are written to.
    MaybeShared,
}

/// Consecutive pages that are all [`Exclusive`](Sharing::Exclusive), or all not.
#[derive(Clone, Copy, Debug)]
pub struct SubBatch {
    /// Which of it.
    pub sharing: Sharing,
    /// How many pages, from the first one asked about; not more than asked about.
    pub nr: NonZero<u32>,
}

/// What swapping out a run needs of mm beyond its transaction. Every loop over PTEs, pages or slots
/// is one method.
///
/// Context of all methods: folio lock and page table lock held; none sleeps.
///
/// # Safety
///
/// What the methods answer is so: entries are counted if
/// [`folio_dup_swap_pages`](Self::folio_dup_swap_pages) says it, no page is pinned if
/// [`folio_maybe_dma_pinned`](Self::folio_maybe_dma_pinned) denies it, and pages are exclusive, or
/// not, as [`page_anon_exclusive_batch`](Self::page_anon_exclusive_batch) says it.
pub unsafe trait SwapWalk: UnmapWalk {
    /// Takes one swap count for each of the run's `nr` pages, or none at all. Returns whether it
    /// did.
    ///
    /// C: `folio_dup_swap_pages()`, mm/swapfile.c, by this series; it takes the cluster's lock.
    ///
    /// # Safety
    ///
    /// `nr` is the run that was cleared last. The folio is in the swap cache.
    unsafe fn folio_dup_swap_pages(&self, nr: RunLength) -> bool;

    /// Takes back what [`Self::folio_dup_swap_pages`] counted (C: `folio_put_swap_pages()`,
    /// mm/swapfile.c, by this series).
    ///
    /// # Safety
    ///
    /// `nr` is the run that was cleared last. Its entries were counted, and none was written.
    unsafe fn folio_put_swap_pages(&self, nr: RunLength);

    /// `smp_mb__after_atomic()`, behind clearing an AnonExclusive bit. Pairs with the `smp_rmb()`
    /// in `gup_must_unshare()`, mm/internal.h, 7.3.
    fn smp_mb_after_atomic(&self);

    /// Whether a page of the folio may be pinned (C: `folio_maybe_dma_pinned()`; exact for a large
    /// folio).
    fn folio_maybe_dma_pinned(&self) -> bool;

    /// The longest sub-batch at the part's front.
    ///
    /// C: `page_anon_exclusive_batch()`, mm/mprotect.c, 7.3; mm/internal.h by this series.
    ///
    /// # Safety
    ///
    /// `part` is of the run that was cleared last.
    unsafe fn page_anon_exclusive_batch(&self, part: &Part<Self>) -> SubBatch;

    /// Clears AnonExclusive of each page of a part (C: `ClearPageAnonExclusive()`).
    ///
    /// # Safety
    ///
    /// `part` is of the run that was cleared last; each of its pages has the bit, and none is
    /// pinned. The run is not mapped again.
    unsafe fn clear_pages_anon_exclusive(&self, part: &Part<Self>);

    /// Puts the mm on the list of those that swapoff looks through, and counts the run's pages as
    /// swap entries of the mm (C: `mm_prepare_for_swap_entries()`, mm/internal.h, 7.3, and
    /// `add_mm_counter(mm, MM_SWAPENTS, nr)`).
    ///
    /// # Safety
    ///
    /// `nr` is the run that was cleared last, and is becoming swap entries.
    unsafe fn prepare_for_swap_entries(&self, nr: RunLength);

    /// Writes a swap entry for each page of a part, with the soft-dirty and uffd bits of its PTE,
    /// and marked exclusive if the page was.
    ///
    /// C: `set_swp_ptes()`, mm/internal.h, by this series, and `swp_pte_prepare()`, mm/rmap.c, 7.3.
    ///
    /// # Safety
    ///
    /// `part` is of the run that was cleared last, and its PTEs are none. Its entries are counted,
    /// the mm is on swapoff's list, and its pages have no AnonExclusive bit any more, if `sharing`
    /// says that they had it.
    unsafe fn set_swp_ptes(&self, part: &Part<Self>, sharing: Sharing);
}

impl<W: SwapWalk> ClearedRun<W> {
    /// Counts a swap entry for each page. It fails if the folio is not in the swap cache, at which
    /// this warns, or if there is no memory for counts that are at their maximum. The error is the
    /// length of the run, which is mapped again.
    #[inline]
    pub fn count_swap_entries(self) -> Result<CountedRun<W>, RunLength> {
        let (walk, nr) = (self.walk(), self.part().nr());
        if !walk.folio_test_swapcache() {
            walk.warn_swapcache();
            return Err(nr);
        }
        // SAFETY: The run is cleared, and its folio is in the swap cache.
        if !unsafe { walk.folio_dup_swap_pages(nr) } {
            return Err(nr);
        }
        // INVARIANT: The entries were counted just now.
        Ok(CountedRun(self))
    }
}

/// A cleared run with a swap count taken for each page. No entry is written yet: another task that
/// sees an entry can take it away, and its count with it.
///
/// Dropped, the counts are put back, and then the run is mapped again. Leaked (`mem::forget`), it
/// stays cleared, and the counts stay taken.
///
/// # Examples
///
/// ```
/// use mm_batch::unmap::PteRun;
/// use mm_shim::{
///     folio::Folio,
///     pte::{pte, WRITE},
///     swap::Slots,
///     unmap::{Layout, Mm},
/// };
///
/// let folio = Folio::in_swap_cache(8, 2, Slots::new(64, &[0, 0], None));
/// folio.map(2);
/// let words = [pte(8, WRITE), pte(9, WRITE)];
/// let mm = Mm::new(Layout::anonymous(2), &words);
/// mm.walk(&folio, 0, |walk| {
///     let run = PteRun::longest(walk).clear().count_swap_entries().unwrap();
///     assert_eq!(mm.table.words(), [0, 0]);
///     drop(run);
///     assert_eq!(mm.table.words(), words);
/// });
/// ```
///
/// # Invariants
///
/// An entry is counted for each page of the run.
#[derive(Debug)]
#[must_use = "a run that is not committed is mapped again"]
pub struct CountedRun<W: SwapWalk>(ClearedRun<W>);

impl<W: SwapWalk> CountedRun<W> {
    /// Asks for pins, if a page of the run is exclusive. It fails if one may be pinned; the error
    /// is the length of the run, which is mapped again. No page can become pinned afterwards, as
    /// pinning needs a present PTE.
    ///
    /// Whether a page is exclusive does not change from here on. A page that is has no other
    /// mapping. One that is not could become so if this mm's mapping were not counted any more,
    /// which it is.
    #[inline]
    pub fn share(self) -> Result<ShareableRun<W>, RunLength> {
        let (walk, run) = (self.0.walk(), self.0.part());
        // SAFETY: `run` is all of the run.
        let first = unsafe { walk.page_anon_exclusive_batch(run) };
        // A sub-batch that ends within the run is followed by one of the other kind.
        let any = first.sharing == Sharing::Exclusive || first.nr.get() < run.nr().get();
        if any {
            // (A1) before (A2): a pin that is taken by a PTE which is gone is counted by now, or
            // its taker sees that the PTE is gone.
            walk.smp_mb();
            if walk.folio_maybe_dma_pinned() {
                return Err(run.nr());
            }
        }
        // INVARIANT: Nothing is pinned, or nothing is exclusive, as was asked just now.
        Ok(ShareableRun { run: self, first })
    }

    /// The run, whose counts are not put back any more when it is dropped.
    #[inline]
    fn into_cleared(self) -> ClearedRun<W> {
        let run = ManuallyDrop::new(self);
        // SAFETY: `run` is neither dropped nor used again.
        unsafe { ptr::read(&run.0) }
    }
}

impl<W: SwapWalk> Drop for CountedRun<W> {
    #[inline]
    fn drop(&mut self) {
        let nr = self.0.part().nr();
        // SAFETY: By the invariants, they were counted, and none is written.
        unsafe { self.0.walk().folio_put_swap_pages(nr) }
    }
}

/// A counted run whose exclusive pages may become shareable.
///
/// # Invariants
///
/// No page of it that is exclusive is pinned, or can be. `first` is its first sub-batch.
#[derive(Debug)]
#[must_use = "a run that is not committed is mapped again"]
pub struct ShareableRun<W: SwapWalk> {
    run: CountedRun<W>,
    first: SubBatch,
}

impl<W: SwapWalk> ShareableRun<W> {
    /// Writes the entries, and ends the mappings for good. Nothing of it can fail. Returns the
    /// length of the run.
    #[inline]
    pub fn commit(self) -> RunLength {
        let Self { run, first } = self;
        // From here on the counts are the entries', and the run is not restored, whatever happens.
        let run = ManuallyDrop::new(run.into_cleared());
        let walk = run.walk();
        // Before the first entry: swapoff must find it.
        // SAFETY: All of the run becomes swap entries below.
        unsafe { walk.prepare_for_swap_entries(run.part().nr()) };

        let (mut batch, mut left) = (first, run.part().all());
        loop {
            let (part, rest) = left.split_off_front(batch.nr);
            if batch.sharing == Sharing::Exclusive {
                // (A3)
                // SAFETY: `part` is of the run, and exclusive: that was asked by `share`, or in the
                // last round. By the invariants, none of it is pinned. It is not mapped again.
                unsafe { walk.clear_pages_anon_exclusive(&part) };
                // (A3) before (A4).
                walk.smp_mb_after_atomic();
            }
            // (A4)
            // SAFETY: `part` is of the run, whose PTEs are none from here on. Its entries were
            // counted, and the mm is on swapoff's list. Its exclusive bits are cleared.
            unsafe { walk.set_swp_ptes(&part, batch.sharing) };
            let Some(rest) = rest else { break };
            // SAFETY: `rest` is of the run.
            batch = unsafe { walk.page_anon_exclusive_batch(&rest) };
            left = rest;
        }
        // SAFETY: The parts were all of the run, and each of them became swap entries.
        unsafe { ManuallyDrop::into_inner(run).replaced() }
    }
}
