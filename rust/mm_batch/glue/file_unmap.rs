// SPDX-License-Identifier: GPL-2.0

//! `file_unmap` in the kernel: what C calls, and what it needs beyond a walk.

use super::rmap_walk::{
    kept,
    unmapped,
    untouched,
    RmapWalk, //
};
use crate::file_unmap::{
    unmap_run,
    Differences,
    FileUnmapWalk,
    Outcome, //
};
use kernel::{
    bindings::{
        self,
        mm_batch_run_outcome_MM_BATCH_RUN_NOT_MINE as NOT_MINE,
        mm_batch_run_path_MM_BATCH_RUN_FILE_UNMAP as FILE_UNMAP, //
    },
    prelude::*,
    sync::barrier, //
};

impl FileUnmapWalk for RmapWalk {
    #[inline]
    fn smp_mb(&self) {
        barrier::smp_mb(barrier::Full);
    }

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
    fn folio_test_anon(&self) -> bool {
        // SAFETY: By the invariants, there is a folio.
        unsafe { bindings::mm_batch_folio_test_anon(self.at().folio) }
    }

    #[inline]
    fn folio_test_swapbacked(&self) -> bool {
        // SAFETY: By the invariants, there is a folio.
        unsafe { bindings::mm_batch_folio_test_swapbacked(self.at().folio) }
    }

    #[inline]
    fn folio_test_swapcache(&self) -> bool {
        RmapWalk::folio_test_swapcache(self)
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

/// In what runs differ from C's.
#[cfg(not(CONFIG_MM_BATCH_KUNIT_TEST))]
#[inline]
fn differences() -> Differences {
    Differences::ALL
}

/// In what runs differ from C's: tests may ask for none.
#[cfg(CONFIG_MM_BATCH_KUNIT_TEST)]
#[inline]
fn differences() -> Differences {
    let mixed_file_runs = &raw const bindings::mm_batch_file_unmap_mixed_file_runs;
    // READ_ONCE(), as a test may write to it meanwhile: a byte, whatever C puts there.
    // SAFETY: It is a variable of C, as large as a byte.
    let mixed_file_runs = unsafe { mixed_file_runs.cast::<u8>().read_volatile() } != 0;
    Differences { mixed_file_runs }
}

/// Unmaps the run of PTEs that begins with `*ptep`, of a file, of shmem or lazyfree, and traces it.
///
/// Returns what became of it: unmapped; restored, and the folio is to stay mapped; or not touched,
/// as the folio's flags disagree.
///
/// # Safety
///
/// As [`RmapWalk::new()`] has it, until this returns.
///
/// Context: page table lock held. Does not sleep.
#[export]
pub(crate) unsafe extern "C" fn mm_batch_unmap_file_run(
    folio: *mut bindings::folio,
    page: *mut bindings::page,
    vma: *mut bindings::vm_area_struct,
    address: usize,
    ptep: *mut bindings::pte_t,
    flags: c_uint,
) -> bindings::mm_batch_unmapped {
    // SAFETY: By the function's requirement.
    let walk = unsafe { RmapWalk::new(folio, page, vma, address, ptep, flags) };
    match unmap_run(walk, differences()) {
        Outcome::Unmapped(run) => unmapped(FILE_UNMAP, run),
        Outcome::Kept(nr) => kept(FILE_UNMAP, nr),
        Outcome::NotMine => untouched(NOT_MINE),
    }
}
