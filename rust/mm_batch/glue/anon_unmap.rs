// SPDX-License-Identifier: GPL-2.0

//! `anon_unmap` in the kernel: what C calls, and what it needs beyond a walk.

use super::rmap_walk::{
    traced,
    RmapWalk, //
};
use crate::{
    anon_unmap::unmap_run,
    pte_run::RunLength,
    to_swap::{
        Sharing,
        SubBatch,
        SwapWalk, //
    },
    unmap::Part, //
};
use core::num::NonZero;
use kernel::{
    bindings::{
        self,
        mm_batch_run_path_MM_BATCH_RUN_ANON_UNMAP as ANON_UNMAP, //
    },
    prelude::*, //
};

/// The page of a part's first PTE.
///
/// The struct pages of a folio are one behind the other.
#[inline]
fn page_of(walk: &RmapWalk, part: &Part<RmapWalk>) -> *mut bindings::page {
    walk.at().page.wrapping_add(part.at() as usize)
}

// SAFETY: The answers are C's.
unsafe impl SwapWalk for RmapWalk {
    #[inline]
    unsafe fn folio_dup_swap_pages(&self, nr: RunLength) -> bool {
        let at = self.at();
        // SAFETY: By the method's requirement, the run is of the folio, which is in the swap cache,
        // and by the walk's invariants locked.
        unsafe { bindings::mm_batch_folio_dup_swap_pages(at.folio, at.page, nr.get()) }
    }

    #[inline]
    unsafe fn folio_put_swap_pages(&self, nr: RunLength) {
        let at = self.at();
        // SAFETY: By the method's requirement, these were counted; the folio is in the swap cache
        // and locked, as it was when they were.
        unsafe { bindings::mm_batch_folio_put_swap_pages(at.folio, at.page, nr.get()) }
    }

    #[inline]
    fn smp_mb_after_atomic(&self) {
        // SAFETY: A barrier touches no memory.
        unsafe { bindings::mm_batch_smp_mb_after_atomic() }
    }

    #[inline]
    fn folio_maybe_dma_pinned(&self) -> bool {
        // SAFETY: By the walk's invariants, there is a folio.
        unsafe { bindings::mm_batch_folio_maybe_dma_pinned(self.at().folio) }
    }

    #[inline]
    unsafe fn page_anon_exclusive_batch(&self, part: &Part<Self>) -> SubBatch {
        // SAFETY: By the method's requirement, the part is of the walk's run, whose pages are of
        // one folio, which is not hugetlb.
        let found = unsafe {
            bindings::mm_batch_page_anon_exclusive_batch(page_of(self, part), part.nr().get())
        };
        SubBatch {
            sharing: if found.exclusive {
                Sharing::Exclusive
            } else {
                Sharing::MaybeShared
            },
            // The first page is as it is.
            nr: NonZero::new(found.nr).unwrap_or(NonZero::<u32>::MIN),
        }
    }

    #[inline]
    unsafe fn clear_pages_anon_exclusive(&self, part: &Part<Self>) {
        // SAFETY: By the method's requirement, the pages have the flag, and may be shared.
        unsafe {
            bindings::mm_batch_clear_pages_anon_exclusive(page_of(self, part), part.nr().get())
        }
    }

    #[inline]
    unsafe fn prepare_for_swap_entries(&self, nr: RunLength) {
        // SAFETY: By the walk's invariants, there is an mm; by the method's requirement, so many
        // swap entries are coming to it.
        unsafe { bindings::mm_batch_prepare_for_swap_entries(self.at().vma, nr.get()) }
    }

    #[inline]
    unsafe fn set_swp_ptes(&self, part: &Part<Self>, sharing: Sharing) {
        let (address, ptep) = self.place(part);
        let (vma, page, pte) = (self.at().vma, page_of(self, part), part.first().raw());
        let (nr, exclusive) = (part.nr().get(), sharing == Sharing::Exclusive);
        // SAFETY: By the method's requirement, the PTEs are none, and entries of their pages' slots
        // are counted and prepared for; by the walk's invariants, their lock is held.
        unsafe { bindings::mm_batch_set_swp_run(vma, address, ptep, page, pte, nr, exclusive) }
    }
}

/// Unmaps the run of PTEs that begins with the walk's, to swap, and traces it.
///
/// Returns how many pages were unmapped; 0 if the folio is to stay mapped.
///
/// # Safety
///
/// The folio is locked, large, referenced by the caller and not hugetlb, and anonymous and
/// swap-backed. `pvmw` is at a present PTE that maps `page`, of all of the folio's; `pteval` is its
/// `pte_val()`, read under the lock. The page table lock is held, and an rmap lock that keeps the
/// VMA and its mm; `flags` is without `TTU_HWPOISON`. Nobody else unmaps at this stop. All that
/// until this returns, but that PTEs may be cleared by it.
///
/// Context: folio lock, rmap lock and page table lock held. Does not sleep.
#[export]
pub(crate) unsafe extern "C" fn mm_batch_unmap_anon_run(
    folio: *mut bindings::folio,
    page: *mut bindings::page,
    pvmw: *const bindings::page_vma_mapped_walk,
    pteval: u64,
    flags: c_uint,
) -> c_uint {
    // SAFETY: By the function's requirement.
    let walk = unsafe { RmapWalk::new(folio, page, pvmw, pteval, flags) };
    traced(ANON_UNMAP, unmap_run(walk))
}
