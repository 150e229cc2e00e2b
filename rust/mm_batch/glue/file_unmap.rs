// SPDX-License-Identifier: GPL-2.0

//! `file_unmap` in the kernel: what it needs beyond a walk.

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
        RmapWalk::folio_test_anon(self)
    }

    #[inline]
    fn folio_test_swapbacked(&self) -> bool {
        RmapWalk::folio_test_swapbacked(self)
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

/// Unmaps the walk's run.
#[inline]
pub(super) fn run(walk: RmapWalk) -> bindings::mm_batch_unmapped {
    match unmap_run(walk, differences()) {
        Outcome::Unmapped(run) => unmapped(FILE_UNMAP, run),
        Outcome::Kept(nr) => kept(FILE_UNMAP, nr),
        Outcome::NotMine => untouched(NOT_MINE),
    }
}
