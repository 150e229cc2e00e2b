// SPDX-License-Identifier: GPL-2.0

//! `contig_free` in the kernel (C: mm/page_alloc.c, 7.2).

use super::trace;
use crate::{
    contig_free::{
        free_contig_range,
        free_pages_bulk,
        ContigMm,
        FreeBlock,
        PageArray, //
    },
    pages::{
        Held,
        LonePage,
        PageRange,
        Pfn, //
    }, //
};
use core::num::NonZero;
use kernel::{
    bindings::{
        self,
        mm_batch_run_outcome_MM_BATCH_RUN_DONE as DONE,
        mm_batch_run_path_MM_BATCH_RUN_CONTIG_FREE as CONTIG_FREE, //
    },
    prelude::*, //
};

/// The page allocator, as the port of one operation.
///
/// # Invariants
///
/// The ranges that the algorithm is run on belong to the operation: each of their pages is an
/// order-0 page with a struct page, of which the operation owns what [`Held`] says.
///
/// The tokens that the methods take come out of such a range and are consumed, so every page that a
/// method is asked for is the operation's still.
struct PageAllocator(());

impl PageAllocator {
    /// # Safety
    ///
    /// The invariants hold for what the algorithm is run on with it.
    #[inline]
    unsafe fn new() -> Self {
        // INVARIANT: by the safety requirement.
        Self(())
    }
}

/// The struct page of a frame.
#[inline]
fn pfn_to_page(pfn: Pfn) -> *mut bindings::page {
    // SAFETY: Arithmetic only; with section tables, `pfn` is of a page that the operation owns, so
    // it has one.
    unsafe { bindings::pfn_to_page(pfn.get()) }
}

impl ContigMm for PageAllocator {
    const MAX_PAGE_ORDER: u32 = bindings::MAX_PAGE_ORDER;

    #[inline]
    fn contiguous_struct_pages(&self, first: Pfn) -> NonZero<usize> {
        // SAFETY: Arithmetic only.
        let nr = unsafe { bindings::contiguous_struct_pages(first.get()) };
        NonZero::new(nr).unwrap_or(NonZero::<usize>::MIN)
    }

    #[inline]
    fn free_page(&self, page: LonePage, held: Held) {
        let page = pfn_to_page(page.pfn());
        match held {
            // SAFETY: By the invariants, a reference of this order-0 page is ours to drop.
            Held::Refcounted => unsafe { bindings::__free_pages(page, 0) },
            // SAFETY: By the invariants, this frozen order-0 page is ours to free.
            Held::Frozen => unsafe { bindings::free_frozen_pages(page, 0) },
        }
    }

    #[inline]
    fn prepare_run(&self, pages: &PageRange, held: Held) -> usize {
        let first = pfn_to_page(pages.first());
        let nr = pages.nr().get();
        let ready = match held {
            // SAFETY: By the invariants, a reference of each page is ours to drop, and the
            // algorithm asks for pages with contiguous struct pages.
            Held::Refcounted => unsafe { bindings::free_pages_prepare_run(first, nr) },
            // SAFETY: By the invariants, these frozen pages are ours, and the algorithm asks for
            // pages with contiguous struct pages.
            Held::Frozen => unsafe { bindings::free_frozen_pages_prepare_run(first, nr) },
        };
        if ready > 0 {
            trace::run(CONTIG_FREE, ready, DONE);
        }
        ready
    }

    #[inline]
    fn same_zone(&self, a: Pfn, b: Pfn) -> bool {
        // SAFETY: Both are pages of the operation, which are not free yet, so their flags' zone is
        // stable.
        unsafe { bindings::page_zone_id(pfn_to_page(a)) == bindings::page_zone_id(pfn_to_page(b)) }
    }

    #[inline]
    fn free_prepared(&self, block: FreeBlock) {
        // SAFETY: A `FreeBlock` is aligned, of one zone, and made of pages that were prepared and
        // are in no other block.
        unsafe { bindings::free_prepared_pages(pfn_to_page(block.head()), block.order()) }
    }
}

/// An array of struct page pointers, taken from the front.
///
/// # Invariants
///
/// `next` points to `left` pointers to order-0 pages, one reference of each owned by the operation.
struct PagePointers {
    next: *mut *mut bindings::page,
    left: usize,
}

impl PageArray for PagePointers {
    #[inline]
    fn next_run(&mut self) -> Option<PageRange> {
        if self.left == 0 {
            return None;
        }
        // SAFETY: By the invariants there is at least one pointer.
        let nr = unsafe { bindings::num_pages_contiguous(self.next, self.left) };
        // SAFETY: As above, and it points to a page.
        let first = unsafe { bindings::page_to_pfn(*self.next) };
        // INVARIANT: The run's pages leave the array.
        self.next = self.next.wrapping_add(nr);
        self.left = self.left.wrapping_sub(nr);
        PageRange::new(Pfn::new(first), nr)
    }

    #[inline]
    fn cond_resched(&mut self) {
        // SAFETY: The caller of mm_batch_free_pages_bulk() may sleep.
        unsafe { bindings::cond_resched() }
    }
}

/// Frees a range of order-0 pages, one reference of each.
///
/// # Safety
///
/// The caller owns a reference of each of the `nr_pages` order-0 pages from `pfn`, and gives it up.
///
/// Context: any but NMI, with no raw spinlock held.
#[export]
pub(crate) unsafe extern "C" fn mm_batch_free_contig_range(pfn: usize, nr_pages: usize) {
    if let Some(range) = PageRange::new(Pfn::new(pfn), nr_pages) {
        // SAFETY: By the function's requirement.
        let mm = unsafe { PageAllocator::new() };
        free_contig_range(&mm, range, Held::Refcounted);
    }
}

/// Frees a range of frozen order-0 pages.
///
/// # Safety
///
/// The caller owns the `nr_pages` frozen order-0 pages from `pfn`, and gives them up.
///
/// Context: any but NMI, with no raw spinlock held.
#[export]
pub(crate) unsafe extern "C" fn mm_batch_free_contig_frozen_range(pfn: usize, nr_pages: usize) {
    if let Some(range) = PageRange::new(Pfn::new(pfn), nr_pages) {
        // SAFETY: By the function's requirement.
        let mm = unsafe { PageAllocator::new() };
        free_contig_range(&mm, range, Held::Frozen);
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
    // INVARIANT: By the function's requirement.
    let mut pages = PagePointers {
        next: page_array,
        left: nr_pages,
    };
    // SAFETY: By the function's requirement.
    let mm = unsafe { PageAllocator::new() };
    free_pages_bulk(&mm, &mut pages);
}
