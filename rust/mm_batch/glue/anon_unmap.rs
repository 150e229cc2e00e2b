// SPDX-License-Identifier: GPL-2.0

//! `anon_unmap` in the kernel: what C calls, and what it needs beyond a walk.

use super::rmap_walk::{
    kept,
    unmapped,
    untouched,
    RmapWalk, //
};
use crate::{
    anon_unmap::{
        unmap_run,
        AnonUnmapWalk,
        Outcome, //
    },
    pte_run::{
        PtePart,
        RunLength, //
    },
    to_swap::{
        Sharing,
        SubBatch,
        SwapWalk, //
    }, //
};
use core::num::NonZero;
use kernel::{
    bindings::{
        self,
        mm_batch_run_outcome_MM_BATCH_RUN_RESTORED as RESTORED,
        mm_batch_run_path_MM_BATCH_RUN_ANON_UNMAP as ANON_UNMAP, //
    },
    prelude::*,
    sync::barrier, //
};

/// The page of a part's first PTE.
///
/// The struct pages of a folio are one behind the other.
#[inline]
fn page_of(walk: &RmapWalk, part: &PtePart) -> *mut bindings::page {
    walk.at().page.wrapping_add(part.at() as usize)
}

impl SwapWalk for RmapWalk {
    #[inline]
    fn folio_test_swapcache(&self) -> bool {
        RmapWalk::folio_test_swapcache(self)
    }

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
        // SAFETY: As above; by the method's requirement, these were counted.
        unsafe { bindings::mm_batch_folio_put_swap_pages(at.folio, at.page, nr.get()) }
    }

    #[inline]
    fn smp_mb(&self) {
        barrier::smp_mb(barrier::Full);
    }

    #[inline]
    fn smp_mb_after_atomic(&self) {
        // SAFETY: A barrier.
        unsafe { bindings::mm_batch_smp_mb_after_atomic() }
    }

    #[inline]
    fn folio_maybe_dma_pinned(&self) -> bool {
        // SAFETY: By the walk's invariants, there is a folio.
        unsafe { bindings::mm_batch_folio_maybe_dma_pinned(self.at().folio) }
    }

    #[inline]
    unsafe fn page_anon_exclusive_batch(&self, part: &PtePart) -> SubBatch {
        let page = page_of(self, part);
        // SAFETY: By the method's requirement, the part is of the walk's run, whose pages are of
        // one folio, which is not hugetlb.
        let exclusive = unsafe { bindings::mm_batch_page_anon_exclusive(page) };
        // SAFETY: As above.
        let nr = unsafe {
            bindings::mm_batch_page_anon_exclusive_batch(page, part.nr().get(), exclusive)
        };
        SubBatch {
            sharing: if exclusive {
                Sharing::Exclusive
            } else {
                Sharing::MaybeShared
            },
            // The first page is as it is.
            nr: NonZero::new(nr).unwrap_or(NonZero::<u32>::MIN),
        }
    }

    #[inline]
    unsafe fn clear_pages_anon_exclusive(&self, part: &PtePart) {
        // SAFETY: By the method's requirement, the pages have the flag, and may be shared.
        unsafe {
            bindings::mm_batch_clear_pages_anon_exclusive(page_of(self, part), part.nr().get())
        }
    }

    #[inline]
    fn mm_prepare_for_swap_entries(&self) {
        // SAFETY: By the walk's invariants, there is an mm.
        unsafe { bindings::mm_batch_prepare_for_swap_entries(self.at().vma) }
    }

    #[inline]
    unsafe fn add_swap_counter(&self, nr: RunLength) {
        // SAFETY: By the method's requirement, so many swap entries are coming to this mm.
        unsafe { bindings::mm_batch_add_swap_counter(self.at().vma, nr.get() as isize) }
    }

    #[inline]
    unsafe fn set_swp_ptes(&self, part: &PtePart, sharing: Sharing) {
        let (address, ptep) = self.place(part);
        let (vma, page, pte) = (self.at().vma, page_of(self, part), part.first().raw());
        let (nr, exclusive) = (part.nr().get(), sharing == Sharing::Exclusive);
        // SAFETY: By the method's requirement, the PTEs are none, and entries of their pages' slots
        // are counted and prepared for; by the walk's invariants, their lock is held.
        unsafe { bindings::mm_batch_set_swp_run(vma, address, ptep, page, pte, nr, exclusive) }
    }
}

impl AnonUnmapWalk for RmapWalk {
    #[cold]
    fn warn_not_in_swapcache(&self) {
        // SAFETY: A warning.
        unsafe { bindings::mm_batch_warn_swapcache() }
    }
}

/// Unmaps the run of PTEs that begins with `*ptep`, to swap, and traces it.
///
/// Returns what became of it: unmapped; or restored, or not even cleared, and the folio is to stay
/// mapped.
///
/// # Safety
///
/// As [`RmapWalk::new()`] has it, until this returns; and the folio is anonymous.
///
/// Context: page table lock held. Does not sleep.
#[export]
pub(crate) unsafe extern "C" fn mm_batch_unmap_anon_run(
    folio: *mut bindings::folio,
    page: *mut bindings::page,
    vma: *mut bindings::vm_area_struct,
    address: usize,
    ptep: *mut bindings::pte_t,
    flags: c_uint,
) -> bindings::mm_batch_unmapped {
    // SAFETY: By the function's requirement.
    let walk = unsafe { RmapWalk::new(folio, page, vma, address, ptep, flags) };
    match unmap_run(walk) {
        Outcome::Unmapped(run) => unmapped(ANON_UNMAP, run),
        Outcome::Kept(nr) => kept(ANON_UNMAP, nr),
        Outcome::NoSwap => untouched(RESTORED),
    }
}
