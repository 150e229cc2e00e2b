// SPDX-License-Identifier: GPL-2.0

//! The stages in which the PTEs of a run become swap entries, all or none.
//!
//! ```text
//! Cleared --SwapCounted--> --Shareable--> committed: AnonExclusive cleared, entries written
//!    ^           |              |
//!    |       not counted    pinned
//!    |           |              +-- counts put back
//!    +-----------+--------------+
//! ```
//!
//! Both steps that can fail are taken for the whole run before the first entry is written, so that
//! a run is never half converted, and a page keeps its AnonExclusive bit until it is certain not to
//! be mapped again. C converts page by page, and has converted some where it fails.
//!
//! The steps of `__folio_try_share_anon_rmap()`, include/linux/rmap.h, 7.3, are where its comment
//! has them: (A1) the clearing of the run, (A2) [`Shareable`], (A3) and (A4) its end.

#![deny(unsafe_code)]

use crate::{
    pte_run::{
        PtePart,
        RunLength, //
    },
    unmap::{
        Arch,
        Cleared,
        ClearedPtes,
        ForGood,
        Gone,
        LastStage,
        Stage,
        UnmapWalk, //
    }, //
};
use core::num::NonZero;

/// Whether pages are this mm's alone (C: `PageAnonExclusive()`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// They are: they may be written to, and pinned.
    Exclusive,
    /// Another mm may have them: they are copied when they are written to.
    MaybeShared,
}

/// Pages one behind the other that are all [`Exclusive`](Sharing::Exclusive), or all not.
#[derive(Clone, Copy, Debug)]
pub struct SubBatch {
    /// Which of it.
    pub sharing: Sharing,
    /// How many pages, from the first one asked about; not more than asked about.
    pub nr: NonZero<u32>,
}

/// Why the entries of a run cannot be counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotCounted {
    /// The folio is not in the swap cache: it has no slots.
    NoSlots,
    /// A slot's count is at its maximum, and there was no memory for more.
    NoMemory,
}

/// Somebody has pinned a page of the folio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pinned;

/// What swapping out a run needs of mm beyond its transaction. Every loop over PTEs, pages or slots
/// is one method.
///
/// Context of all methods: folio lock and page table lock held; none sleeps.
#[allow(unsafe_code)]
pub trait SwapWalk: UnmapWalk {
    /// Whether the folio is in the swap cache (C: `folio_test_swapcache()`), which it is not taken
    /// out of while it is locked.
    fn folio_test_swapcache(&self) -> bool;

    /// Counts an entry more for the slot of each of the run's `nr` pages, or for none.
    ///
    /// C: `folio_dup_swap_pages()`, mm/swapfile.c, by this series; it takes the cluster's lock.
    ///
    /// Whether they were counted.
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

    /// `smp_mb()`. Pairs with the one between taking a pin and reading the PTE again in GUP-fast
    /// (`try_grab_folio_fast()`, mm/gup.c, 7.3).
    fn smp_mb(&self);

    /// `smp_mb__after_atomic()`, behind clearing an AnonExclusive bit. Pairs with the `smp_rmb()`
    /// in `gup_must_unshare()`, mm/internal.h, 7.3.
    fn smp_mb_after_atomic(&self);

    /// Whether a page of the folio may be pinned (C: `folio_maybe_dma_pinned()`; exact for a large
    /// folio).
    fn folio_maybe_dma_pinned(&self) -> bool;

    /// The pages from the part's first one on that are as exclusive as that one is.
    ///
    /// C: `page_anon_exclusive_batch()`, mm/mprotect.c, 7.3; mm/internal.h by this series.
    ///
    /// # Safety
    ///
    /// `part` is of the run that was cleared last.
    unsafe fn page_anon_exclusive_batch(&self, part: &PtePart) -> SubBatch;

    /// Clears AnonExclusive of each page of a part (C: `ClearPageAnonExclusive()`).
    ///
    /// # Safety
    ///
    /// `part` is of the run that was cleared last; each of its pages has the bit, and none is
    /// pinned. The run is not mapped again.
    unsafe fn clear_pages_anon_exclusive(&self, part: &PtePart);

    /// Puts the mm on the list of those that swapoff looks through (C:
    /// `mm_prepare_for_swap_entries()`, mm/internal.h, 7.3).
    fn mm_prepare_for_swap_entries(&self);

    /// Counts the run's pages as swap entries of the mm (C: `add_mm_counter(mm, MM_SWAPENTS, nr)`).
    ///
    /// # Safety
    ///
    /// `nr` is the run that was cleared last, and is becoming swap entries.
    unsafe fn add_swap_counter(&self, nr: RunLength);

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
    unsafe fn set_swp_ptes(&self, part: &PtePart, sharing: Sharing);
}

/// The stage of a run whose swap entries are counted, each of them, though none is written yet:
/// whoever finds one may take it away at once, and its count with it.
#[derive(Debug)]
pub struct SwapCounted(());

#[allow(unsafe_code)]
// SAFETY: All entries of the run are counted, and `undo` puts all back.
unsafe impl<W: SwapWalk> Stage<W> for SwapCounted {
    type Behind = Cleared;
    type Refused = NotCounted;

    #[inline]
    unsafe fn enter(ptes: &ClearedPtes<W>) -> Result<Self, NotCounted> {
        if !ptes.walk().folio_test_swapcache() {
            return Err(NotCounted::NoSlots);
        }
        // SAFETY: The run is cleared, and the folio in the swap cache.
        if unsafe { ptes.walk().folio_dup_swap_pages(ptes.part().nr()) } {
            Ok(Self(()))
        } else {
            Err(NotCounted::NoMemory)
        }
    }

    #[inline]
    unsafe fn undo(self, ptes: &ClearedPtes<W>) {
        // SAFETY: By the method's requirement, they were counted; entries are written in the end of
        // all, from where nothing is undone.
        unsafe { ptes.walk().folio_put_swap_pages(ptes.part().nr()) }
    }
}

/// The stage of a run of which no page that is exclusive is pinned, or can be: its PTEs are gone.
///
/// Whether a page is exclusive does not change meanwhile. A page that is has no other mapping; one
/// that is not could become so if this mm's mapping were not counted any more, which it is.
#[derive(Debug)]
pub struct Shareable {
    first: SubBatch,
}

#[allow(unsafe_code)]
// SAFETY: Nobody can pin a page any more, and nothing was taken.
unsafe impl<W: SwapWalk> Stage<W> for Shareable {
    type Behind = (SwapCounted, Cleared);
    type Refused = Pinned;

    #[inline]
    unsafe fn enter(ptes: &ClearedPtes<W>) -> Result<Self, Pinned> {
        let (walk, run) = (ptes.walk(), ptes.part());
        // SAFETY: This is the run.
        let first = unsafe { walk.page_anon_exclusive_batch(run) };
        // A sub-batch that ends within the run is followed by one of the other kind.
        let any = first.sharing == Sharing::Exclusive || first.nr.get() < run.nr().get();
        if any {
            // (A1) before (A2): who pins a page by a PTE that is gone either is counted by now, or
            // sees that it is gone.
            walk.smp_mb();
            if walk.folio_maybe_dma_pinned() {
                return Err(Pinned);
            }
        }
        Ok(Self { first })
    }
}

#[allow(unsafe_code)]
// SAFETY: Each entry that was counted is written.
unsafe impl<W: SwapWalk> LastStage<W> for Shareable {
    #[inline]
    unsafe fn complete(self, behind: Self::Behind, ptes: ForGood<'_, W>) -> Gone<'_> {
        // The entries that were counted are written.
        let (SwapCounted(()), Cleared { .. }) = behind;
        let (walk, run) = (ptes.ptes().walk(), ptes.ptes().part());
        // Before the first entry: swapoff must find it.
        walk.mm_prepare_for_swap_entries();
        // SAFETY: This is the run, and what becomes of it.
        unsafe { walk.add_swap_counter(run.nr()) };

        let mut batch = self.first;
        let mut left = PtePart::whole(run.first(), run.nr());
        loop {
            let (part, rest) = left.split_off_front::<Arch<W>>(batch.nr);
            if batch.sharing == Sharing::Exclusive {
                // (A3)
                // SAFETY: Part of the run; asked for just now or when the stage was entered for it,
                // as was whether a page is pinned. It is not mapped again.
                unsafe { walk.clear_pages_anon_exclusive(&part) };
                // (A3) before (A4).
                walk.smp_mb_after_atomic();
            }
            // (A4)
            // SAFETY: Part of the run, which is none from here on; it was counted, as there is what
            // was `behind`, and prepared for above.
            unsafe { walk.set_swp_ptes(&part, batch.sharing) };
            match rest {
                Some(rest) => {
                    // SAFETY: Part of the run.
                    batch = unsafe { walk.page_anon_exclusive_batch(&rest) };
                    left = rest;
                }
                // SAFETY: By entries, those of each part.
                None => return unsafe { ptes.replaced() },
            }
        }
    }
}
