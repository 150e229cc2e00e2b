// SPDX-License-Identifier: GPL-2.0

//! Unmapping a run of PTEs as a transaction.
//!
//! ```text
//! PteRun --clear--> ClearedRun --commit--> unmapped
//!    ^                  |
//!    +------restore-----+
//!
//! MixedRun ---------------unmap----------> unmapped
//! ```
//!
//! Each of these owns the walk, which stands for one stop under the page table lock, and consumes
//! the one before. So a run is unmapped once, and nobody else has the walk while the run is
//! cleared. A [`ClearedRun`] that is dropped maps its pages again. What has to be undone before
//! that is a guard around it.
//!
//! A [`MixedRun`], whose PTEs may differ in their write bits, cannot be restored, and has no
//! cleared state. A [`ClearedRun`] that is leaked (`mem::forget`) stays cleared. The types do not
//! say which folios may vanish: policy must not commit an anonymous run whose content is nowhere
//! else.
//!
//! Clearing owes a TLB flush, of which the task keeps a note (`current->tlb_ubc`). Reclaim flushes
//! before the pages are freed, and before I/O if the run was dirty. Nothing is owed for a run that
//! is mapped again.
//!
//! Lock order, as C's (mm/rmap.c, 7.3): folio lock, rmap lock, page table lock, swap cluster lock.
//! The first three are held by C for as long as there is a walk.

use crate::{
    pte::{
        Pte,
        Respect, //
    },
    pte_run::{
        folio_pte_batch,
        PtePart,
        PteSpan,
        PteTable,
        RunLength, //
    }, //
};
use core::{
    mem::ManuallyDrop,
    ptr, //
};

/// One stop of an rmap walk: a present PTE that maps a page of a large folio, and what unmapping a
/// run that begins there needs of mm. Every loop that writes PTEs or pages is one method.
///
/// There is one walk per stop: whoever has it may unmap the run, once.
///
/// Context of all methods: folio lock and page table lock held; none sleeps.
///
/// # Safety
///
/// [`view`](Self::view) is the page table that the other methods change, from the walk's PTE on.
/// What the methods answer is so.
pub unsafe trait UnmapWalk: Sized {
    /// The page table, to read.
    type View: PteTable;

    /// The page table from the walk's PTE on.
    fn view(&self) -> &Self::View;

    /// Clears the first `nr` PTEs, each by an atomic exchange, and sees to it that no CPU uses the
    /// translations: flushes the TLB at once, or notes the range for `try_to_unmap_flush()`, which
    /// must come before the pages are freed, and before I/O if the run was dirty. C does not tell
    /// which of the two.
    ///
    /// C: `flush_cache_range()`, `get_and_clear_ptes()` and `flush_or_defer()` in
    /// `try_to_unmap_one()`, mm/rmap.c, 7.3 and this series.
    ///
    /// # Safety
    ///
    /// They are a run that was found in [`Self::view`], and are as they were then but for what
    /// hardware does.
    unsafe fn clear_flush_ptes(&self, nr: RunLength) -> Cleared;

    /// `smp_mb()`. Pairs with the one between taking a reference, or a pin, and reading the PTE
    /// again in GUP-fast (`try_grab_folio_fast()`, mm/gup.c, 7.3: the fully ordered reference).
    fn smp_mb(&self);

    /// Whether the folio is in the swap cache, which it is not taken out of while it is locked (C:
    /// `folio_test_swapcache()`).
    fn folio_test_swapcache(&self) -> bool;

    /// Says, once, that an anonymous folio is swap-backed and not in the swap cache, or the other
    /// way round (C: the `WARN_ON_ONCE()` of `ttu_anon_folio()`, mm/rmap.c, 7.3).
    fn warn_swapcache(&self);

    /// Makes the folio dirty (C: `folio_mark_dirty()`).
    fn folio_mark_dirty(&self);

    /// Sees to it that no TLB has a translation of cleared PTEs, also where that was to wait: PTEs
    /// that come back may come back as a group with one translation, which the architecture forbids
    /// next to those of single PTEs (arm64: break before make).
    ///
    /// C: `flush_before_restore()`, mm/rmap.c, by this series; 7.3 restores without.
    ///
    /// # Safety
    ///
    /// `cleared` is of the run that was cleared last.
    unsafe fn flush_before_restore(&self, cleared: &Part<Self>);

    /// Maps pages again, the first by `cleared.first()`, the others by it with their page frame.
    ///
    /// C: `set_ptes()`, include/linux/pgtable.h, 7.3.
    ///
    /// # Safety
    ///
    /// `cleared` is of the run that was cleared last; its PTEs are not present, while rmap,
    /// counters and references still count them.
    unsafe fn set_ptes(&self, cleared: &Part<Self>);

    /// Ends the run's mappings: lets `hiwater_rss` know the peak, and takes the pages from the
    /// mm's counter, the mappings from the folio's mapcounts, and their references. The folio
    /// stays: the caller holds a reference.
    ///
    /// C: `update_hiwater_rss()`, `add_mm_counter()`, `folio_remove_rmap_ptes()`, in a `VM_LOCKED`
    /// VMA `mlock_drain_local()`, and `folio_put_refs()`, in the order of `try_to_unmap_one()`,
    /// mm/rmap.c, 7.3.
    ///
    /// # Safety
    ///
    /// `nr` is the run that was cleared last. It is not mapped again, and was not ended yet.
    unsafe fn end_mappings(&self, nr: RunLength);

    /// The same, where nothing takes the place of the PTEs: writes a uffd-wp marker into each of
    /// them before, if the VMA is of a file and registered for write protection by userfaultfd, and
    /// `cleared` has the uffd-wp bit.
    ///
    /// C: `cond_install_uffd_wp_ptes()`, mm/memory.c, 7.3, and what [`Self::end_mappings`] is.
    ///
    /// # Safety
    ///
    /// As for [`Self::end_mappings`], of the run that `cleared` is; its PTEs are none.
    unsafe fn vanish(&self, cleared: &Part<Self>);
}

/// What [`UnmapWalk::clear_flush_ptes`] has cleared.
#[derive(Clone, Copy, Debug)]
pub struct Cleared {
    /// The run's first PTE, with the young and dirty bits of all, and soft-dirty as it was.
    pub first: Pte,
    /// Whether it has its dirty bit, or either of them (C: `pte_dirty()`).
    pub dirty: bool,
}

/// What the PTEs of a walk are like.
pub(crate) type Arch<W> = <<W as UnmapWalk>::View as PteTable>::Arch;

/// PTEs of a walk's run.
pub type Part<W> = PtePart<Arch<W>>;

/// The longest run from the walk's PTE on.
#[inline]
fn longest<W: UnmapWalk>(walk: &W, respect: Respect) -> RunLength {
    folio_pte_batch(&PteSpan::new(walk.view()), respect)
}

/// A run of present PTEs, found and not touched, that can be restored.
///
/// # Invariants
///
/// The first `nr` PTEs of the walk are a run, and have the write and the soft-dirty bit in common;
/// they are as they were when it was found, but for what hardware does.
#[derive(Debug)]
pub struct PteRun<W: UnmapWalk> {
    walk: W,
    nr: RunLength,
}

impl<W: UnmapWalk> PteRun<W> {
    /// The longest run from the walk's PTE on.
    #[inline]
    pub fn longest(walk: W) -> Self {
        let nr = longest(&walk, Respect::TO_RESTORE);
        // INVARIANT: The run was found just now, under the page table lock.
        Self { walk, nr }
    }

    /// Its length.
    #[inline]
    pub fn nr(&self) -> RunLength {
        self.nr
    }

    /// The walk, for what does not change PTEs.
    #[inline]
    pub fn walk(&self) -> &W {
        &self.walk
    }

    /// Clears the run, gets rid of its translations, and hands on what the hardware noted in it.
    #[inline]
    pub fn clear(self) -> ClearedRun<W> {
        // SAFETY: By the invariants, the first `nr` PTEs are a run.
        let ptes = unsafe { ClearedPtes::clear(self.walk, self.nr) };
        // INVARIANT: The PTEs were those of a `PteRun`, which have the write and soft-dirty bit in
        // common.
        ClearedRun(ptes)
    }
}

/// A run of present PTEs that may differ in their write and soft-dirty bits, and so can only be
/// unmapped for good.
///
/// # Examples
///
/// ```
/// use mm_batch::unmap::MixedRun;
/// use mm_shim::{
///     folio::Folio,
///     pte::{pte, WRITE},
///     unmap::{Layout, Mm},
/// };
///
/// let folio = Folio::new(8, 2);
/// folio.map(2);
/// let mm = Mm::new(Layout::file(2), &[pte(8, WRITE), pte(9, 0)]);
/// mm.walk(&folio, 0, |walk| assert_eq!(MixedRun::longest(walk).unmap().get(), 2));
/// assert_eq!((folio.mapcount(), mm.table.words()), (0, vec![0, 0]));
/// ```
///
/// # Invariants
///
/// The first `nr` PTEs of the walk are a run, and as they were when it was found, but for what
/// hardware does.
#[derive(Debug)]
pub struct MixedRun<W: UnmapWalk> {
    walk: W,
    nr: RunLength,
}

impl<W: UnmapWalk> MixedRun<W> {
    /// The longest run from the walk's PTE on.
    #[inline]
    pub fn longest(walk: W) -> Self {
        let nr = longest(&walk, Respect::NOTHING);
        // INVARIANT: The run was found just now, under the page table lock.
        Self { walk, nr }
    }

    /// Unmaps it, as [`PteRun::clear`] and [`ClearedRun::commit`] do. Returns its length.
    #[inline]
    pub fn unmap(self) -> RunLength {
        // SAFETY: By the invariants, the first `nr` PTEs are a run.
        let ptes = unsafe { ClearedPtes::clear(self.walk, self.nr) };
        // SAFETY: The PTEs were cleared just now, and nothing was written in their place.
        unsafe { ptes.vanish() }
    }
}

/// PTEs of a run that are cleared.
///
/// # Invariants
///
/// `part` is the run of the walk that was cleared last, whole. Rmap, counters and references count
/// its mappings.
#[derive(Debug)]
struct ClearedPtes<W: UnmapWalk> {
    walk: W,
    part: Part<W>,
}

impl<W: UnmapWalk> ClearedPtes<W> {
    /// # Safety
    ///
    /// The first `nr` PTEs of the walk are a run, found under the lock, and as they were then but
    /// for what hardware does.
    #[inline]
    unsafe fn clear(walk: W, nr: RunLength) -> Self {
        // SAFETY: By the function's requirement, these PTEs are a run.
        let Cleared { first, dirty } = unsafe { walk.clear_flush_ptes(nr) };
        // SAFETY: `first` is the first of the run's `nr` PTEs.
        let part = unsafe { PtePart::whole(first, nr) };
        // A CPU that writes by a stale translation of a PTE that was clean traps: it would have to
        // set the bit in the PTE, which is gone.
        if dirty {
            walk.folio_mark_dirty();
        }
        // INVARIANT: The run was cleared just now; rmap, counters and references were not touched.
        Self { walk, part }
    }

    /// Maps the pages again.
    ///
    /// # Safety
    ///
    /// The PTEs are none. The caller ends with the run.
    #[inline]
    unsafe fn set(&self) {
        // SAFETY: By the invariants, this is the run that was cleared last.
        unsafe { self.walk.flush_before_restore(&self.part) };
        // SAFETY: By the function's requirement, the PTEs are none; by the invariants, the mappings
        // are still counted.
        unsafe { self.walk.set_ptes(&self.part) };
    }

    /// Ends the mappings. Nothing takes the place of the PTEs, but for markers.
    ///
    /// # Safety
    ///
    /// The PTEs are none.
    #[inline]
    unsafe fn vanish(self) -> RunLength {
        // SAFETY: By the function's requirement, the PTEs are none; by the invariants, the run is
        // counted. It is not mapped again, and this is done once, as `self` ends here.
        unsafe { self.walk.vanish(&self.part) };
        self.part.nr()
    }

    /// Ends the mappings: counters, rmap and references follow the PTEs. Nothing of it can fail.
    ///
    /// # Safety
    ///
    /// The PTEs are what they are to be from now on.
    #[inline]
    unsafe fn end(self) -> RunLength {
        let nr = self.part.nr();
        // SAFETY: By the invariants, the run is counted. It is not mapped again, and this is done
        // once, as `self` ends here.
        unsafe { self.walk.end_mappings(nr) };
        nr
    }
}

/// A run of PTEs that are cleared, while rmap, counters and references still count its mappings.
///
/// Dropped, it is restored: see [`ClearedRun::restore`].
///
/// # Examples
///
/// ```
/// use mm_batch::unmap::PteRun;
/// use mm_shim::{
///     folio::Folio,
///     pte::{pte, WRITE},
///     unmap::{Layout, Mm},
/// };
///
/// let folio = Folio::new(8, 2);
/// folio.map(2);
/// let words = [pte(8, WRITE), pte(9, WRITE)];
/// let mm = Mm::new(Layout::file(2), &words);
/// mm.walk(&folio, 0, |walk| {
///     let run = PteRun::longest(walk).clear();
///     assert_eq!(mm.table.words(), [0, 0]);
///     drop(run);
///     assert_eq!(mm.table.words(), words);
/// });
/// ```
///
/// # Invariants
///
/// Its PTEs are none, and had the write and soft-dirty bit in common.
#[derive(Debug)]
#[must_use = "a cleared run that is not committed is mapped again"]
pub struct ClearedRun<W: UnmapWalk>(ClearedPtes<W>);

impl<W: UnmapWalk> ClearedRun<W> {
    /// The walk, to look at the folio while its PTEs are gone.
    #[inline]
    pub fn walk(&self) -> &W {
        &self.0.walk
    }

    /// The PTEs: the first as it was, with the young and dirty bits of all.
    #[inline]
    pub fn part(&self) -> &Part<W> {
        &self.0.part
    }

    /// Maps all of the run again.
    ///
    /// Three things are not as they were. The folio stays dirty if a PTE was. A flush that was put
    /// off stays pending, and will flush more than it must. Each PTE becomes as young, and as
    /// dirty, as any of the run was. Write, soft-dirty and uffd bits are what they were: the run
    /// has them in common.
    #[inline]
    pub fn restore(self) -> PteRun<W> {
        let ptes = self.into_ptes();
        // SAFETY: The PTEs of a `ClearedRun` are none, and this was one, which ends here.
        unsafe { ptes.set() };
        // INVARIANT: The run is mapped again, by PTEs that have in common what they had.
        PteRun {
            nr: ptes.part.nr(),
            walk: ptes.walk,
        }
    }

    /// Ends the mappings for good: the PTEs vanish, then counters, rmap and references follow.
    /// Returns the length of the run.
    #[inline]
    pub fn commit(self) -> RunLength {
        // SAFETY: The PTEs of a `ClearedRun` are none.
        unsafe { self.into_ptes().vanish() }
    }

    /// Ends the mappings for good, where something else has taken the place of the PTEs. Returns
    /// the length of the run.
    ///
    /// # Safety
    ///
    /// Each PTE of the run was written to, and is what it is to be from now on.
    #[inline]
    pub(crate) unsafe fn replaced(self) -> RunLength {
        // SAFETY: By the function's requirement.
        unsafe { self.into_ptes().end() }
    }

    /// The PTEs, which are no longer restored when dropped.
    #[inline]
    fn into_ptes(self) -> ClearedPtes<W> {
        let run = ManuallyDrop::new(self);
        // SAFETY: `run` is neither dropped nor used again.
        unsafe { ptr::read(&run.0) }
    }
}

impl<W: UnmapWalk> Drop for ClearedRun<W> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: By the invariants, the PTEs are none. The run ends here.
        unsafe { self.0.set() }
    }
}
