// SPDX-License-Identifier: GPL-2.0

//! `contig_free` in the kernel (C: mm/page_alloc.c, 7.3).

use super::trace;
use crate::{
    contig_free::{
        free_contig_range,
        free_pages_bulk,
        PageArray, //
    },
    free::{
        ContigMm,
        FreeBlock,
        Frozen,
        Held,
        LonePage,
        PageRange,
        PreparedPages,
        Refcounted,
        Section, //
    },
    pages::Pfn, //
};
use core::num::NonZero;
use kernel::{
    bindings::{
        self,
        mm_batch_run_outcome_MM_BATCH_RUN_DONE as DONE,
        mm_batch_run_path_MM_BATCH_RUN_CONTIG_FREE as CONTIG_FREE, //
    },
    prelude::*,
    unsafe_precondition_assert, //
};

/// The page allocator.
struct PageAllocator;

/// The struct page of a frame.
///
/// # Safety
///
/// The frame has one: with section tables, it is looked up.
#[inline]
unsafe fn pfn_to_page(pfn: Pfn) -> *mut bindings::page {
    // SAFETY: By the function's requirement.
    unsafe { bindings::mm_batch_pfn_to_page(pfn.get()) }
}

// SAFETY: Each answer is that of the C function which the method names.
unsafe impl ContigMm for PageAllocator {
    const MAX_PAGE_ORDER: u32 = bindings::MAX_PAGE_ORDER;

    #[inline]
    fn contiguous_struct_pages(&self, first: Pfn) -> NonZero<usize> {
        // SAFETY: Arithmetic only.
        let nr = unsafe { bindings::mm_batch_contiguous_struct_pages(first.get()) };
        NonZero::new(nr).unwrap_or(NonZero::<usize>::MIN)
    }

    #[inline]
    fn free_page<H: Held>(&self, page: LonePage<H>) {
        // SAFETY: A page that somebody owns has a struct page.
        let page = unsafe { pfn_to_page(page.pfn()) };
        if H::FROZEN {
            // SAFETY: The token was a frozen order-0 page, and is gone.
            unsafe { bindings::free_frozen_pages(page, 0) }
        } else {
            // SAFETY: The token was a reference of an order-0 page, and is gone.
            unsafe { bindings::__free_pages(page, 0) }
        }
    }

    /// Traces the run.
    #[inline]
    fn prepare_run<H: Held>(
        &self,
        pages: Section<H>,
    ) -> (Option<PreparedPages>, Option<Section<H>>) {
        let nr = pages.frames().nr().get();
        // SAFETY: A page that somebody owns has a struct page.
        let first = unsafe { pfn_to_page(pages.frames().first()) };
        let ready = if H::FROZEN {
            // SAFETY: These are frozen order-0 pages, which `pages` owns, with contiguous struct
            // pages.
            unsafe { bindings::free_frozen_pages_prepare_run(first, nr) }
        } else {
            // SAFETY: These are order-0 pages with contiguous struct pages, and `pages` owns a
            // reference of each.
            unsafe { bindings::free_pages_prepare_run(first, nr) }
        };
        if ready > 0 {
            trace::run(CONTIG_FREE, ready, DONE);
        }
        // SAFETY: C prepared the first `ready` pages, and stopped behind the next one, which is
        // not owned any more: its reference was dropped, or preparing it failed.
        unsafe { pages.visited(ready) }
    }

    #[inline]
    unsafe fn same_zone(&self, a: Pfn, b: Pfn) -> bool {
        // SAFETY: By the method's requirement, each has a struct page.
        let (a, b) = unsafe { (pfn_to_page(a), pfn_to_page(b)) };
        // SAFETY: By the method's requirement, both pages are owned: their struct pages stay, and
        // so does their zone.
        unsafe { bindings::mm_batch_page_zone_id(a) == bindings::mm_batch_page_zone_id(b) }
    }

    #[inline]
    fn free_prepared(&self, block: FreeBlock) {
        // SAFETY: A page of a block has a struct page.
        let head = unsafe { pfn_to_page(block.head()) };
        // SAFETY: A `FreeBlock` is aligned, of one zone, and made of pages that were prepared and
        // are in no other token.
        unsafe { bindings::free_prepared_pages(head, block.order()) }
    }
}

/// An array of struct page pointers, taken from the front.
///
/// # Invariants
///
/// `next` points to `left` pointers to order-0 pages, and the array owns a reference of each.
struct PagePointers {
    next: *mut *mut bindings::page,
    left: usize,
}

impl PageArray for PagePointers {
    #[inline]
    fn next_run(&mut self) -> Option<PageRange<Refcounted>> {
        if self.left == 0 {
            return None;
        }
        // SAFETY: By the invariants, there are so many pointers to pages, at least one.
        let nr = unsafe { bindings::mm_batch_num_pages_contiguous(self.next, self.left) };
        // SAFETY: By the invariants, there is at least one pointer.
        let first = unsafe { *self.next };
        // SAFETY: By the invariants, it points to a page.
        let first = unsafe { bindings::mm_batch_page_to_pfn(first) };
        // INVARIANT: The run's pages leave the array.
        self.next = self.next.wrapping_add(nr);
        self.left = self.left.wrapping_sub(nr);
        // SAFETY: The array had a reference of each, which it gives up.
        unsafe { PageRange::owned(Pfn::new(first), nr) }
    }

    #[inline]
    fn cond_resched(&mut self) {
        // SAFETY: It touches no memory of the caller's.
        unsafe { bindings::mm_batch_cond_resched() }
    }
}

/// Frees a range of order-0 pages, one reference of each.
///
/// # Safety
///
/// The caller owns a reference of each of the `nr_pages` order-0 pages from `pfn`, and gives it up.
/// `pfn + nr_pages` does not wrap.
///
/// Context: any but NMI, with no raw spinlock held.
#[export]
pub(crate) unsafe extern "C" fn mm_batch_free_contig_range(pfn: usize, nr_pages: usize) {
    unsafe_precondition_assert!(pfn.checked_add(nr_pages).is_some());
    // SAFETY: By the function's requirement.
    if let Some(range) = unsafe { PageRange::<Refcounted>::owned(Pfn::new(pfn), nr_pages) } {
        free_contig_range(&PageAllocator, range);
    }
}

/// Frees a range of frozen order-0 pages.
///
/// # Safety
///
/// The caller owns the `nr_pages` frozen order-0 pages from `pfn`, and gives them up.
/// `pfn + nr_pages` does not wrap.
///
/// Context: any but NMI, with no raw spinlock held.
#[export]
pub(crate) unsafe extern "C" fn mm_batch_free_contig_frozen_range(pfn: usize, nr_pages: usize) {
    unsafe_precondition_assert!(pfn.checked_add(nr_pages).is_some());
    // SAFETY: By the function's requirement.
    if let Some(range) = unsafe { PageRange::<Frozen>::owned(Pfn::new(pfn), nr_pages) } {
        free_contig_range(&PageAllocator, range);
    }
}

/// Frees an array of order-0 pages, one reference of each.
///
/// # Safety
///
/// `page_array` points to `nr_pages` pointers to order-0 pages; the caller owns a reference of
/// each, and gives it up.
///
/// Context: process context that may sleep.
#[export]
pub(crate) unsafe extern "C" fn mm_batch_free_pages_bulk(
    page_array: *mut *mut bindings::page,
    nr_pages: usize,
) {
    unsafe_precondition_assert!(nr_pages == 0 || !page_array.is_null());
    // INVARIANT: By the function's requirement.
    let mut pages = PagePointers {
        next: page_array,
        left: nr_pages,
    };
    free_pages_bulk(&PageAllocator, &mut pages);
}
