// SPDX-License-Identifier: GPL-2.0

//! `file_unmap` in the kernel: what C calls, and what it needs beyond a walk.

use super::rmap_walk::{
    traced,
    RmapWalk, //
};
use crate::file_unmap::{
    unmap_file_run,
    unmap_lazyfree_run,
    LazyfreeWalk, //
};
use kernel::{
    bindings::{
        self,
        mm_batch_run_path_MM_BATCH_RUN_FILE_UNMAP as FILE_UNMAP, //
    },
    prelude::*,
    sync::barrier, //
};

impl LazyfreeWalk for RmapWalk {
    #[inline]
    fn smp_rmb(&self) {
        barrier::smp_mb(barrier::Read);
    }

    #[inline]
    fn folio_extra_refs(&self) -> i32 {
        // SAFETY: By the invariants, there is a large folio, whose mapcount is not locked here.
        unsafe { bindings::mm_batch_folio_extra_refs(self.at().folio) }
    }

    #[inline]
    fn folio_test_dirty(&self) -> bool {
        // SAFETY: By the invariants, there is a folio.
        unsafe { bindings::mm_batch_folio_test_dirty(self.at().folio) }
    }

    #[inline]
    fn vma_droppable(&self) -> bool {
        // SAFETY: By the invariants, there is a VMA.
        unsafe { bindings::mm_batch_vma_droppable(self.at().vma) }
    }

    #[inline]
    fn folio_set_swapbacked(&self) {
        // SAFETY: By the invariants, the folio is locked.
        unsafe { bindings::mm_batch_folio_set_swapbacked(self.at().folio) }
    }
}

/// Whether a file's runs may be mixed.
#[cfg(not(CONFIG_MM_BATCH_KUNIT_TEST))]
#[inline]
fn mixed() -> bool {
    true
}

/// Whether a file's runs may be mixed: tests may ask for those of C.
#[cfg(CONFIG_MM_BATCH_KUNIT_TEST)]
#[inline]
fn mixed() -> bool {
    let mixed_file_runs = &raw const bindings::mm_batch_file_unmap_mixed_file_runs;
    // READ_ONCE(), as a test may write to it meanwhile: a byte, whatever C puts there.
    // SAFETY: It is a variable of C, as large as a byte.
    unsafe { mixed_file_runs.cast::<u8>().read_volatile() != 0 }
}

/// Unmaps the run of PTEs that begins with the walk's, of a file or of shmem, and traces it.
///
/// Returns how many pages were unmapped.
///
/// # Safety
///
/// The folio is locked, large, referenced by the caller and not hugetlb, and not anonymous. `pvmw`
/// is at a present PTE that maps `page`, of all of the folio's; `pteval` is its `pte_val()`, read
/// under the lock. The page table lock is held, and an rmap lock that keeps the VMA and its mm;
/// `flags` is without `TTU_HWPOISON`. Nobody else unmaps at this stop. All that until this returns,
/// but that PTEs may be cleared by it.
///
/// Context: folio lock, rmap lock and page table lock held. Does not sleep.
#[export]
pub(crate) unsafe extern "C" fn mm_batch_unmap_file_run(
    folio: *mut bindings::folio,
    page: *mut bindings::page,
    pvmw: *const bindings::page_vma_mapped_walk,
    pteval: u64,
    flags: c_uint,
) -> c_uint {
    // SAFETY: By the function's requirement.
    let walk = unsafe { RmapWalk::new(folio, page, pvmw, pteval, flags) };
    traced(FILE_UNMAP, Ok(unmap_file_run(walk, mixed())))
}

/// The same of a lazyfree folio. Returns 0 if it is to stay mapped.
///
/// # Safety
///
/// As for [`mm_batch_unmap_file_run`], but that the folio is anonymous and not swap-backed.
///
/// Context: folio lock, rmap lock and page table lock held. Does not sleep.
#[export]
pub(crate) unsafe extern "C" fn mm_batch_unmap_lazyfree_run(
    folio: *mut bindings::folio,
    page: *mut bindings::page,
    pvmw: *const bindings::page_vma_mapped_walk,
    pteval: u64,
    flags: c_uint,
) -> c_uint {
    // SAFETY: By the function's requirement.
    let walk = unsafe { RmapWalk::new(folio, page, pvmw, pteval, flags) };
    traced(FILE_UNMAP, unmap_lazyfree_run(walk))
}
