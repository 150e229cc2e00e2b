// SPDX-License-Identifier: GPL-2.0

//! `dirty_flush` in the kernel (C: `shrink_folio_list()`, mm/vmscan.c, 7.3).

use super::trace;
use crate::{
    dirty_flush::shrink_waiting,
    reclaim::{
        AfterFlush,
        FolioList, //
    }, //
};
use core::{
    num::NonZero,
    ptr::NonNull, //
};
use kernel::{
    bindings::{
        self,
        mm_batch_run_outcome_MM_BATCH_RUN_DONE as DONE,
        mm_batch_run_outcome_MM_BATCH_RUN_TAKEN_BACK as TAKEN_BACK,
        mm_batch_run_path_MM_BATCH_RUN_DIRTY_FLUSH as DIRTY_FLUSH, //
    },
    prelude::*, //
};

/// A folio by its address, which only [`ShrinkCtx`] gives out.
///
/// # Invariants
///
/// There is a folio, which has the reference of isolation that came with it.
#[derive(Debug)]
struct Folio(NonNull<bindings::folio>);

impl Folio {
    #[inline]
    fn as_ptr(&self) -> *mut bindings::folio {
        self.0.as_ptr()
    }
}

/// The folios that wait, of one call of `shrink_folio_list()`.
///
/// # Invariants
///
/// `ctx` is of a call of `shrink_folio_list()` that runs in this task and does not touch it while
/// this value exists. No other value refers to it.
struct ShrinkCtx {
    ctx: *mut bindings::shrink_ctx,
}

// SAFETY: By the invariants, C's loop, which unmaps, is not running. A folio is given out once,
// with its reference. The answers are C's.
unsafe impl FolioList for ShrinkCtx {
    type Folio = Folio;
    type Mapping = NonNull<bindings::address_space>;

    #[inline]
    fn try_to_unmap_flush_dirty(&self) {
        // SAFETY: What is flushed is this task's own.
        unsafe { bindings::mm_batch_try_to_unmap_flush_dirty() }
    }

    #[inline]
    fn next_waiting(&self, _: &AfterFlush) -> Option<Folio> {
        // SAFETY: By the invariants, the list is this value's.
        // INVARIANT: C takes the folio off its list, with the reference of isolation.
        NonNull::new(unsafe { bindings::shrink_next_waiting(self.ctx) }).map(Folio)
    }

    #[inline]
    fn folio_nr_pages(&self, folio: &Folio) -> NonZero<u32> {
        // SAFETY: By its invariants, there is a folio.
        let nr = unsafe { bindings::mm_batch_folio_nr_pages(folio.as_ptr()) };
        NonZero::new(nr).unwrap_or(NonZero::<u32>::MIN)
    }

    #[inline]
    fn folio_trylock(&self, folio: &Folio, _: &AfterFlush) -> bool {
        // SAFETY: By its invariants, there is a folio.
        unsafe { bindings::mm_batch_folio_trylock(folio.as_ptr()) }
    }

    #[inline]
    fn folio_contain_hwpoisoned_page(&self, folio: &Folio) -> bool {
        // SAFETY: By its invariants, there is a folio.
        unsafe { bindings::mm_batch_folio_contain_hwpoisoned_page(folio.as_ptr()) }
    }

    #[inline]
    fn folio_mapped(&self, folio: &Folio) -> bool {
        // SAFETY: By its invariants, there is a folio.
        unsafe { bindings::mm_batch_folio_mapped(folio.as_ptr()) }
    }

    #[inline]
    fn folio_maybe_dma_pinned(&self, folio: &Folio) -> bool {
        // SAFETY: By its invariants, there is a folio.
        unsafe { bindings::mm_batch_waiting_folio_maybe_dma_pinned(folio.as_ptr()) }
    }

    #[inline]
    fn folio_evictable(&self, folio: &Folio) -> bool {
        // SAFETY: By its invariants, there is a folio.
        unsafe { bindings::mm_batch_folio_evictable(folio.as_ptr()) }
    }

    #[inline]
    fn folio_test_writeback(&self, folio: &Folio) -> bool {
        // SAFETY: By its invariants, there is a folio.
        unsafe { bindings::mm_batch_folio_test_writeback(folio.as_ptr()) }
    }

    #[inline]
    fn no_other_references(&self, folio: &Folio) -> bool {
        // SAFETY: By its invariants, there is a folio.
        let refs = unsafe { bindings::mm_batch_folio_ref_count(folio.as_ptr()) };
        // SAFETY: By its invariants, there is a folio.
        let private = unsafe { bindings::mm_batch_folio_test_private(folio.as_ptr()) };
        // As wide as the largest folio and two more.
        let expected = i64::from(self.folio_nr_pages(folio).get()) + 1 + i64::from(private);
        i64::from(refs) == expected
    }

    #[inline]
    fn folio_mapping(&self, folio: &Folio) -> Option<NonNull<bindings::address_space>> {
        // SAFETY: By its invariants, there is a folio.
        NonNull::new(unsafe { bindings::mm_batch_folio_mapping(folio.as_ptr()) })
    }

    #[inline]
    unsafe fn pageout(&self, folio: Folio, mapping: NonNull<bindings::address_space>) {
        // SAFETY: By the method's requirement, it is locked, unmapped and of `mapping`; the list is
        // this value's, and `folio` is not used again.
        unsafe { bindings::shrink_finish_waiting(self.ctx, folio.as_ptr(), mapping.as_ptr()) }
    }

    #[inline]
    unsafe fn keep(&self, folio: Folio) {
        // SAFETY: By the method's requirement, it is not locked; the list is this value's, and
        // `folio` is not used again.
        unsafe { bindings::shrink_keep_waiting(self.ctx, folio.as_ptr()) }
    }

    #[inline]
    unsafe fn keep_locked(&self, folio: Folio) {
        // SAFETY: By the method's requirement, it is locked.
        unsafe { bindings::mm_batch_folio_unlock(folio.as_ptr()) };
        // SAFETY: It is not locked any more.
        unsafe { self.keep(folio) }
    }

    #[inline]
    unsafe fn activate_locked(&self, folio: Folio) {
        // SAFETY: By the method's requirement, it is locked; the list is this value's, and `folio`
        // is not used again.
        unsafe { bindings::shrink_activate_waiting(self.ctx, folio.as_ptr()) }
    }

    #[inline]
    unsafe fn unmap_failed_locked(&self, folio: Folio) {
        // SAFETY: By the method's requirement, it is locked; the list is this value's, and `folio`
        // is not used again.
        unsafe { bindings::shrink_unmap_failed(self.ctx, folio.as_ptr()) }
    }
}

/// Flushes for the folios of `ctx` that wait, of `nr_pages` pages in all, and ends with each. With
/// these `nr_tried` pages were taken through reclaim.
///
/// Returns whether there may be another batch: false if faults took most of those back.
///
/// # Safety
///
/// `ctx` is that of a call of `shrink_folio_list()` that is running in this task, which uses it
/// again when this has returned. No folio of its list that waits is locked by this task.
///
/// Context: process context; this task has no folio of the list locked. May sleep.
#[export]
pub(crate) unsafe extern "C" fn mm_batch_shrink_waiting(
    ctx: *mut bindings::shrink_ctx,
    nr_pages: c_uint,
    nr_tried: c_uint,
) -> bool {
    // SAFETY: It calls what a test has set, or nothing.
    #[cfg(CONFIG_MM_BATCH_KUNIT_TEST)]
    unsafe {
        bindings::mm_batch_open_dirty_flush_window()
    };
    // INVARIANT: By the function's requirement.
    let taken_back = shrink_waiting(ShrinkCtx { ctx }, nr_tried);
    trace::run(DIRTY_FLUSH, nr_pages as usize, DONE);
    if taken_back > 0 {
        trace::run(DIRTY_FLUSH, taken_back as usize, TAKEN_BACK);
    }
    taken_back == 0
}
