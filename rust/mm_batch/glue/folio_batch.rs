// SPDX-License-Identifier: GPL-2.0

//! `folio_batch` in the kernel (C: `shrink_folio_list()` and `try_to_unmap_one()`, mm/vmscan.c and
//! mm/rmap.c, 7.3).

use super::trace;
use crate::{
    batch::FolioBatch,
    folio_batch::{
        shrink_batch,
        unmap_anon_folios,
        unmap_file_folios,
        unmap_lazyfree_folios,
        LazyfreeFoliosWalk, //
    },
    folios::{
        FolioSet,
        FoliosWalk,
        SwapFoliosWalk, //
    }, //
};
use kernel::{
    bindings::{
        self,
        mm_batch_run_outcome_MM_BATCH_RUN_DONE as DONE,
        mm_batch_run_path_MM_BATCH_RUN_FOLIO_BATCH as FOLIO_BATCH, //
    },
    prelude::*,
    sync::barrier, //
};

/// A stop of an rmap walk, as the port of the folios that are mapped there; `TO_SWAP` if the walk's
/// own folio is anonymous and swap-backed, and not of a file, of shmem, or lazyfree.
///
/// # Invariants
///
/// If `TO_SWAP`, that folio is so. `ttu` is of a walk that runs in this task and has stopped at a
/// page table, whose lock is held, and does not touch it while this value exists. The folios of
/// its batch are locked, and referenced by the caller; an rmap lock that keeps the VMA is held. No
/// other value refers to it.
struct TtuFolios<const TO_SWAP: bool> {
    ttu: *mut bindings::ttu_folios,
}

// SAFETY: The answers are C's, of the page table that it works on.
unsafe impl<const TO_SWAP: bool> FoliosWalk for TtuFolios<TO_SWAP> {
    #[inline]
    fn find(&mut self) -> Option<FolioSet> {
        // SAFETY: By the invariants, the walk has stopped, and the page table lock is held.
        FolioSet::new(unsafe { bindings::ttu_folios_find(self.ttu) })
    }

    #[inline]
    unsafe fn clear_flush(&self, set: FolioSet) {
        // SAFETY: By the method's requirement, they were found, and are mapped; by the invariants,
        // the lock is held.
        unsafe { bindings::ttu_folios_clear(self.ttu, set.bits()) }
    }

    #[inline]
    fn smp_mb(&self) {
        barrier::smp_mb(barrier::Full);
    }

    #[inline]
    unsafe fn restore(&self, set: FolioSet) {
        // SAFETY: By the method's requirement, they are cleared, while rmap and references count
        // their pages; by the invariants, the lock is held.
        unsafe { bindings::ttu_folios_restore(self.ttu, set.bits()) }
    }

    #[inline]
    unsafe fn end_mappings(&self, set: FolioSet) {
        // SAFETY: By the method's requirement, their mappings are gone and still counted; by the
        // invariants, there is one more reference of each.
        unsafe { bindings::ttu_folios_end(self.ttu, set.bits()) }
    }

    #[inline]
    unsafe fn vanish(&self, set: FolioSet) {
        // SAFETY: By the method's requirement, they are cleared and still counted; by the
        // invariants, there is one more reference of each.
        unsafe { bindings::ttu_folios_vanish(self.ttu, set.bits()) }
    }
}

// SAFETY: The answers are C's. By the invariants, the walk's own folio is swap-backed, anonymous.
unsafe impl SwapFoliosWalk for TtuFolios<true> {
    #[inline]
    unsafe fn dup_swap(&self, set: FolioSet) -> Option<FolioSet> {
        // SAFETY: By the method's requirement, they were found, so that they are in the swap cache;
        // by the invariants, they are locked, and stay there.
        FolioSet::new(unsafe { bindings::ttu_folios_dup_swap(self.ttu, set.bits()) })
    }

    #[inline]
    unsafe fn put_swap(&self, set: FolioSet) {
        // SAFETY: By the method's requirement, these were counted; the folios are in the swap cache
        // and locked, as they were then.
        unsafe { bindings::ttu_folios_put_swap(self.ttu, set.bits()) }
    }

    #[inline]
    fn exclusive(&self, set: FolioSet) -> Option<FolioSet> {
        // SAFETY: By the invariants, `ttu` is there. Nothing else is read.
        FolioSet::new(unsafe { bindings::ttu_folios_exclusive(self.ttu, set.bits()) })
    }

    #[inline]
    fn maybe_dma_pinned(&self, set: FolioSet) -> Option<FolioSet> {
        // SAFETY: By the invariants, there are folios.
        FolioSet::new(unsafe { bindings::ttu_folios_pinned(self.ttu, set.bits()) })
    }

    #[inline]
    unsafe fn clear_anon_exclusive(&self, set: FolioSet) {
        // SAFETY: By the method's requirement, their pages may be shared.
        unsafe { bindings::ttu_folios_share(self.ttu, set.bits()) }
    }

    #[inline]
    fn smp_mb_after_atomic(&self) {
        // SAFETY: A barrier touches no memory.
        unsafe { bindings::mm_batch_smp_mb_after_atomic() }
    }

    #[inline]
    unsafe fn prepare_for_swap_entries(&self, set: FolioSet) {
        // SAFETY: By the method's requirement, so many swap entries are coming to the mm.
        unsafe { bindings::ttu_folios_prepare_swap(self.ttu, set.bits()) }
    }

    #[inline]
    unsafe fn set_swp_ptes(&self, set: FolioSet) {
        // SAFETY: By the method's requirement, they are cleared, and their entries are counted and
        // prepared for; by the invariants, the lock is held.
        unsafe { bindings::ttu_folios_set_swp(self.ttu, set.bits()) }
    }
}

impl LazyfreeFoliosWalk for TtuFolios<false> {
    #[inline]
    fn smp_rmb(&self) {
        barrier::smp_mb(barrier::Read);
    }

    #[inline]
    fn referenced(&self, set: FolioSet) -> Option<FolioSet> {
        // SAFETY: By the invariants, there are folios, whose mapcounts are not locked here.
        FolioSet::new(unsafe { bindings::ttu_folios_referenced(self.ttu, set.bits()) })
    }

    #[inline]
    fn redirtied(&self, set: FolioSet) -> Option<FolioSet> {
        // SAFETY: By the invariants, there are folios, and a VMA.
        FolioSet::new(unsafe { bindings::ttu_folios_redirtied(self.ttu, set.bits()) })
    }

    #[inline]
    fn set_swapbacked(&self, set: FolioSet) {
        // SAFETY: By the invariants, the folios are locked.
        unsafe { bindings::ttu_folios_set_swapbacked(self.ttu, set.bits()) }
    }
}

/// What C is told: the bits of the folios that were unmapped.
#[inline]
fn bits(unmapped: Option<FolioSet>) -> u32 {
    unmapped.map_or(0, FolioSet::bits)
}

/// Unmaps the swap-backed anonymous folios of a batch that a page table maps, to swap.
///
/// Returns the bits of those that were unmapped; a folio that was not stays mapped there.
///
/// # Safety
///
/// `ttu` is of an rmap walk of this task, which has stopped at a PTE of a folio of the batch, which
/// is anonymous and swap-backed; the page table lock is held, and an rmap lock that keeps the VMA
/// and its mm. The folios of the batch are locked, not hugetlb, and referenced by the caller.
/// Nobody else unmaps at this stop. All that until this returns, but that PTEs may be cleared by
/// it.
///
/// Context: folio locks, rmap lock and page table lock held. Does not sleep.
#[export]
pub(crate) unsafe extern "C" fn mm_batch_unmap_anon_folios(ttu: *mut bindings::ttu_folios) -> u32 {
    // INVARIANT: By the function's requirement.
    bits(unmap_anon_folios(TtuFolios::<true> { ttu }))
}

/// Unmaps the folios of files, or of shmem, of a batch that a page table maps.
///
/// Returns the bits of those that were unmapped; a folio that was not stays mapped there.
///
/// # Safety
///
/// As for [`mm_batch_unmap_anon_folios`], but that the folio is not anonymous.
///
/// Context: folio locks, rmap lock and page table lock held. Does not sleep.
#[export]
pub(crate) unsafe extern "C" fn mm_batch_unmap_file_folios(ttu: *mut bindings::ttu_folios) -> u32 {
    // INVARIANT: By the function's requirement.
    bits(unmap_file_folios(TtuFolios::<false> { ttu }))
}

/// Unmaps the lazyfree folios of a batch that a page table maps.
///
/// Returns the bits of those that were unmapped; a folio that was not stays mapped there.
///
/// # Safety
///
/// As for [`mm_batch_unmap_anon_folios`], but that the folio is not swap-backed.
///
/// Context: folio locks, rmap lock and page table lock held. Does not sleep.
#[export]
pub(crate) unsafe extern "C" fn mm_batch_unmap_lazyfree_folios(
    ttu: *mut bindings::ttu_folios,
) -> u32 {
    // INVARIANT: By the function's requirement.
    bits(unmap_lazyfree_folios(TtuFolios::<false> { ttu }))
}

/// The batch of one call of `shrink_folio_list()`.
///
/// # Invariants
///
/// `ctx` is of a call of `shrink_folio_list()` that runs in this task and does not touch it while
/// this value exists, but by what this calls. The folios of its batch are locked by this task until
/// they leave it. No other value refers to it.
struct LockedBatch {
    ctx: *mut bindings::shrink_ctx,
}

// SAFETY: By the invariants, the folios are locked, and C's loop, which unmaps, is not running.
unsafe impl FolioBatch for LockedBatch {
    #[inline]
    fn check_references(&self) {
        // SAFETY: By the invariants, the batch is this value's, and locked.
        unsafe { bindings::shrink_batch_references(self.ctx) }
    }

    #[inline]
    fn alloc_swap(&self) {
        // SAFETY: By the invariants, the batch is this value's, and locked.
        unsafe { bindings::shrink_batch_alloc_swap(self.ctx) }
    }

    #[inline]
    fn unmap(&self) {
        // SAFETY: By the invariants, the batch is this value's, and locked.
        unsafe { bindings::shrink_batch_unmap(self.ctx) }
    }

    #[inline]
    fn free_clean(&self) {
        // SAFETY: By the invariants, the batch is this value's, and locked.
        unsafe { bindings::shrink_batch_free_clean(self.ctx) }
    }

    #[inline]
    fn may_wait(&self) -> bool {
        // SAFETY: By the invariants, the batch is this value's, and locked.
        unsafe { bindings::shrink_batch_may_wait(self.ctx) }
    }

    #[inline]
    fn flush_dirty(&self) {
        // SAFETY: What is flushed is this task's own.
        unsafe { bindings::mm_batch_try_to_unmap_flush_dirty() }
    }

    #[inline]
    unsafe fn let_go(&self) {
        // SAFETY: By the invariants, the batch is this value's, and locked; by the method's
        // requirement, its folios are unmapped, and no CPU writes to one that may not wait.
        unsafe { bindings::shrink_batch_let_go(self.ctx) }
    }

    #[inline]
    unsafe fn put_back(&self) {
        // SAFETY: By the invariants, the batch is this value's, and locked.
        unsafe { bindings::shrink_batch_put_back(self.ctx) }
    }
}

/// Takes the folios of `ctx`'s batch, of `nr_pages` pages in all, through reclaim up to where those
/// that are dirty wait, but for those that it leaves to be taken again.
///
/// # Safety
///
/// `ctx` is that of a call of `shrink_folio_list()` that is running in this task, which uses it
/// again when this has returned. The folios of its batch are locked by this task, isolated,
/// evictable, not under writeback, not hugetlb, not KSM's, and have no swap entry for a hole.
///
/// Context: process context; the folios of the batch are locked, and no other of the list. Does not
/// sleep.
#[export]
pub(crate) unsafe extern "C" fn mm_batch_shrink_batch(
    ctx: *mut bindings::shrink_ctx,
    nr_pages: c_uint,
) {
    // INVARIANT: By the function's requirement.
    shrink_batch(LockedBatch { ctx });
    trace::run(FOLIO_BATCH, nr_pages as usize, DONE);
}
