// SPDX-License-Identifier: GPL-2.0

//! What `try_to_unmap_one()`, mm/rmap.c, 7.3, calls for a run of PTEs, of any kind of folio.

use super::{
    file_unmap,
    rmap_walk::{
        PteView,
        RmapWalk, //
    }, //
};
use kernel::{
    bindings,
    page::PAGE_SIZE,
    prelude::*,
    unsafe_precondition_assert, //
};

/// Unmaps the run of PTEs that begins with `*ptep`, by the path of the folio's kind, and traces it.
///
/// Returns what became of it: unmapped; restored, or not even cleared, and the folio is to stay
/// mapped; or not touched, as the folio is of no path.
///
/// # Safety
///
/// The folio is locked, large, referenced by the caller and not hugetlb. `*ptep` is present and
/// maps its `page` at `address`, which is within `vma`. The page table lock is held, and an rmap
/// lock that keeps `vma` and its mm. `flags` is without `TTU_HWPOISON`.
///
/// Context: page table lock held. Does not sleep.
#[export]
pub(crate) unsafe extern "C" fn mm_batch_unmap_run(
    folio: *mut bindings::folio,
    page: *mut bindings::page,
    vma: *mut bindings::vm_area_struct,
    address: usize,
    ptep: *mut bindings::pte_t,
    flags: c_uint,
) -> bindings::mm_batch_unmapped {
    unsafe_precondition_assert!(address % PAGE_SIZE == 0);
    // SAFETY: By the function's requirement.
    let view = unsafe { PteView::new(folio, page, vma, address, ptep) };
    // SAFETY: By the function's requirement; this is the only walk at this stop.
    let walk = unsafe { RmapWalk::new(view, flags) };
    file_unmap::run(walk)
}
