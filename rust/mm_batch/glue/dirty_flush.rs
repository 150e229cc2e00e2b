// SPDX-License-Identifier: GPL-2.0

//! `dirty_flush` in the kernel (C: `shrink_folio_list()`, mm/vmscan.c, 7.3).

use super::trace;
use crate::{
    dirty_flush::{
        shrink_folios,
        Left, //
    },
    reclaim::{
        FolioList,
        FOLIO_BATCH_SIZE, //
    },
    unmap::FlushOwed, //
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
/// It was given out by the list, and is not freed while it is in the hands of who got it.
#[derive(Clone, Copy, Debug)]
struct Folio(NonNull<bindings::folio>);

impl Folio {
    #[inline]
    fn as_ptr(self) -> *mut bindings::folio {
        self.0.as_ptr()
    }
}

/// The folios of one call of `shrink_folio_list()`.
///
/// # Invariants
///
/// `ctx` is that of a call that is running in this task, and does not use it meanwhile. There is no
/// other value for it. The task has no folio locked but by this.
struct ShrinkCtx {
    ctx: *mut bindings::shrink_ctx,
}

// Where C's batches end, too.
const _: () = assert!(FOLIO_BATCH_SIZE == bindings::FOLIO_BATCH_SIZE as usize);

// SAFETY: By the invariants, as a task runs one call at a time. The answers are C's.
unsafe impl FolioList for ShrinkCtx {
    type Folio = Folio;
    type Mapping = NonNull<bindings::address_space>;

    #[inline]
    unsafe fn next_dirty(&self, waiting: bool) -> Option<Folio> {
        // SAFETY: By the invariants, the list is there to be shrunk.
        // INVARIANT: C gives out what it took off the list.
        NonNull::new(unsafe { bindings::shrink_next_dirty(self.ctx, waiting) }).map(Folio)
    }

    #[inline]
    fn flush_owed(&self) -> Option<FlushOwed> {
        // SAFETY: What is read is this task's own.
        let owed = unsafe { bindings::mm_batch_flush_dirty_owed() };
        // SAFETY: It is in `current->tlb_ubc`.
        owed.then(|| unsafe { FlushOwed::noted() })
    }

    #[inline]
    unsafe fn try_to_unmap_flush_dirty(&self, nr_pages: u32, _owed: Option<FlushOwed>) {
        // SAFETY: No folio is locked, by the method's requirement, nor is anything else.
        #[cfg(CONFIG_MM_BATCH_KUNIT_TEST)]
        unsafe {
            bindings::mm_batch_open_dirty_flush_window()
        };
        // SAFETY: What is flushed is this task's own.
        unsafe { bindings::mm_batch_try_to_unmap_flush_dirty() };
        trace::run(DIRTY_FLUSH, nr_pages as usize, DONE);
    }

    #[inline]
    fn folio_nr_pages(&self, folio: Folio) -> NonZero<u32> {
        // SAFETY: By its invariants, there is a folio.
        let nr = unsafe { bindings::mm_batch_folio_nr_pages(folio.as_ptr()) };
        NonZero::new(nr).unwrap_or(NonZero::<u32>::MIN)
    }

    #[inline]
    unsafe fn folio_unlock(&self, folio: Folio) {
        // SAFETY: By the method's requirement, it is locked.
        unsafe { bindings::mm_batch_folio_unlock(folio.as_ptr()) }
    }

    #[inline]
    unsafe fn folio_trylock(&self, folio: Folio) -> bool {
        // SAFETY: By its invariants, there is a folio.
        unsafe { bindings::mm_batch_folio_trylock(folio.as_ptr()) }
    }

    #[inline]
    fn folio_contain_hwpoisoned_page(&self, folio: Folio) -> bool {
        // SAFETY: By its invariants, there is a folio.
        unsafe { bindings::mm_batch_folio_contain_hwpoisoned_page(folio.as_ptr()) }
    }

    #[inline]
    fn folio_mapped(&self, folio: Folio) -> bool {
        // SAFETY: By its invariants, there is a folio.
        unsafe { bindings::mm_batch_folio_mapped(folio.as_ptr()) }
    }

    #[inline]
    fn folio_maybe_dma_pinned(&self, folio: Folio) -> bool {
        // SAFETY: By its invariants, there is a folio.
        unsafe { bindings::mm_batch_folio_maybe_dma_pinned(folio.as_ptr()) }
    }

    #[inline]
    fn folio_evictable(&self, folio: Folio) -> bool {
        // SAFETY: By its invariants, there is a folio.
        unsafe { bindings::mm_batch_folio_evictable(folio.as_ptr()) }
    }

    #[inline]
    fn folio_test_writeback(&self, folio: Folio) -> bool {
        // SAFETY: By its invariants, there is a folio.
        unsafe { bindings::mm_batch_folio_test_writeback(folio.as_ptr()) }
    }

    #[inline]
    fn no_other_references(&self, folio: Folio) -> bool {
        // SAFETY: By its invariants, there is a folio.
        let refs = unsafe { bindings::mm_batch_folio_ref_count(folio.as_ptr()) };
        // As wide as the largest folio and one more.
        i64::from(refs) == i64::from(self.folio_nr_pages(folio).get()) + 1
    }

    #[inline]
    fn folio_goes_to_swap(&self, folio: Folio) -> bool {
        let folio = folio.as_ptr();
        // SAFETY: By its invariants, there is a folio.
        let swapbacked = unsafe { bindings::mm_batch_folio_test_swapbacked(folio) };
        // SAFETY: As above.
        let anon = unsafe { bindings::mm_batch_folio_test_anon(folio) };
        // SAFETY: As above.
        swapbacked && (!anon || unsafe { bindings::mm_batch_folio_test_swapcache(folio) })
    }

    #[inline]
    fn folio_mapping(&self, folio: Folio) -> Option<NonNull<bindings::address_space>> {
        // SAFETY: By its invariants, there is a folio.
        NonNull::new(unsafe { bindings::mm_batch_folio_mapping(folio.as_ptr()) })
    }

    #[inline]
    unsafe fn pageout(&self, folio: Folio, mapping: NonNull<bindings::address_space>) {
        // SAFETY: By the method's requirement and the invariants.
        unsafe { bindings::shrink_finish_dirty(self.ctx, folio.as_ptr(), mapping.as_ptr()) }
    }

    #[inline]
    unsafe fn keep(&self, folio: Folio) {
        // SAFETY: By the method's requirement and the invariants.
        unsafe { bindings::shrink_keep_dirty(self.ctx, folio.as_ptr()) }
    }

    #[inline]
    unsafe fn keep_locked(&self, folio: Folio) {
        // SAFETY: By the method's requirement, it is locked.
        unsafe { self.folio_unlock(folio) };
        // SAFETY: By the method's requirement; and it is not locked any more.
        unsafe { self.keep(folio) }
    }

    #[inline]
    unsafe fn activate_locked(&self, folio: Folio) {
        // SAFETY: By the method's requirement and the invariants.
        unsafe { bindings::shrink_activate_dirty(self.ctx, folio.as_ptr()) }
    }

    #[inline]
    unsafe fn unmap_failed_locked(&self, folio: Folio) {
        // SAFETY: By the method's requirement and the invariants.
        unsafe { bindings::shrink_unmap_failed(self.ctx, folio.as_ptr()) }
    }
}

/// Reclaims the folios of `ctx`'s list, with one flush for a batch of those that are dirty. Whether
/// the list is empty when it returns: if not, the rest is to be reclaimed without batches.
///
/// # Safety
///
/// `ctx` is that of a call of `shrink_folio_list()` that is running in this task, which has no
/// folio locked, and uses it again when this has returned.
///
/// Context: process context. May sleep.
#[export]
pub(crate) unsafe extern "C" fn mm_batch_shrink_folios(ctx: *mut bindings::shrink_ctx) -> bool {
    // INVARIANT: By the function's requirement.
    match shrink_folios(ShrinkCtx { ctx }) {
        Left::Nothing => true,
        Left::Unbatched { taken_back } => {
            trace::run(DIRTY_FLUSH, taken_back as usize, TAKEN_BACK);
            false
        }
    }
}
