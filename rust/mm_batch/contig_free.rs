// SPDX-License-Identifier: GPL-2.0

//! Freeing a range of order-0 pages as the fewest aligned power-of-two blocks.
//!
//! C: `__free_contig_range_common()`, `free_prepared_contig_range()` and `free_pages_bulk()`,
//! mm/page_alloc.c, 7.2. The result is that of `__free_page()` on each page of the range, except
//! that what can be freed together goes to the allocator together:
//!
//! ```text
//! PageRange --section--> PageRange --prepare--> PreparedRun --order, zone--> FreeBlock --> mm
//!     one page ---------------------> LonePage ---------------------------------------> mm
//! ```
//!
//! One named difference from C: a block never crosses a zone. C looks at the zone of a block's
//! first page only, and relies on its callers for the rest.
//!
//! What cannot be written: a [`FreeBlock`] of pages that were not proven free, a page in two
//! blocks, and a prepared page that is not freed. A `PreparedRun` frees what it holds when it is
//! dropped.

#![forbid(unsafe_code)]

use crate::pages::{
    block_order,
    Held,
    LonePage,
    PageRange,
    Pfn, //
};
use core::num::NonZero;

/// What freeing a range needs of mm. Every loop over struct pages is one method.
///
/// Context of all methods: any but NMI, with no raw spinlock held; none sleeps.
pub trait ContigMm {
    /// The order of the largest block that the allocator takes (C: `MAX_PAGE_ORDER`).
    const MAX_PAGE_ORDER: u32;

    /// The number of pages from `first` on, itself included, whose struct pages are contiguous for
    /// sure.
    ///
    /// That is the rest of its section with SPARSEMEM and no vmemmap, and without end otherwise.
    ///
    /// C: the `memdesc_section()` comparison in `__free_contig_range_common()`, mm/page_alloc.c,
    /// 7.2.
    fn contiguous_struct_pages(&self, first: Pfn) -> NonZero<usize>;

    /// Frees a single page: drops its reference, unless frozen, and prepares and frees it if that
    /// was the last.
    ///
    /// C: `__free_pages(page, 0)` or `free_frozen_pages(page, 0)`, mm/page_alloc.c, 7.2.
    fn free_page(&self, page: LonePage, held: Held);

    /// Walks `pages` from the front and makes each ready to be freed: drops its reference, unless
    /// frozen, and prepares it if that was the last. Stops after the first page that is not to be
    /// freed.
    ///
    /// Returns how many pages at the front are ready, from 0 to `pages.nr()`. If fewer than all
    /// are, the next one was visited too, and is no longer the caller's: either somebody else holds
    /// it still (and frees it), or its prepare failed (hwpoison, bad page) and it is leaked on
    /// purpose.
    ///
    /// The count reaches zero by a fully ordered decrement: what others did to the page while they
    /// held it happened before its prepare.
    ///
    /// C: `put_page_testzero()` and `free_pages_prepare(page, 0)` in
    /// `__free_contig_range_common()`, mm/page_alloc.c, 7.2.
    fn prepare_run(&self, pages: &PageRange, held: Held) -> usize;

    /// Whether two pages may be in one free block as far as their zones go.
    ///
    /// C: `page_zone_id()`, include/linux/mm.h, 7.2.
    fn same_zone(&self, a: Pfn, b: Pfn) -> bool;

    /// Hands a block to the allocator.
    ///
    /// C: `__free_frozen_pages(page, order, FPI_PREPARED)`, mm/page_alloc.c, 7.2.
    fn free_prepared(&self, block: FreeBlock);
}

/// An array of order-0 pages, one reference of each owned, taken run by run.
///
/// C: `num_pages_contiguous()`, include/linux/mm_inline.h, 7.2.
pub trait PageArray {
    /// Takes the longest run of contiguous pages at the array's front; `None` when the array is
    /// empty.
    fn next_run(&mut self) -> Option<PageRange>;

    /// May be called between two runs: sleeps if others want the CPU (C: `cond_resched()`).
    fn cond_resched(&mut self);
}

/// A power-of-two block of pages whose counts reached zero and whose prepare passed.
///
/// Only a `PreparedRun` makes one.
///
/// # Invariants
///
/// `head` is a multiple of 2^`order` pages; `order` is at most [`ContigMm::MAX_PAGE_ORDER`]; the
/// first and the last page are of one zone.
#[derive(Debug)]
#[must_use = "a prepared block that is not freed is leaked"]
pub struct FreeBlock {
    head: Pfn,
    order: u32,
}

impl FreeBlock {
    /// The first page frame.
    #[inline]
    pub fn head(&self) -> Pfn {
        self.head
    }

    /// The order: the block has 2^order pages.
    #[inline]
    pub fn order(&self) -> u32 {
        self.order
    }
}

/// Consecutive pages whose counts reached zero and whose prepare passed, and which are not free
/// yet.
///
/// Dropped, it frees what it holds: there is no way on but to the allocator.
struct PreparedRun<'mm, M: ContigMm> {
    mm: &'mm M,
    pages: Option<PageRange>,
}

impl<'mm, M: ContigMm> PreparedRun<'mm, M> {
    /// Makes a run of the first pages of `pages`: the run, which may be empty, and what comes after
    /// the page that ended it.
    ///
    /// The pages of `pages` have contiguous struct pages.
    #[inline]
    fn first_of(mm: &'mm M, pages: PageRange, held: Held) -> (Self, Option<PageRange>) {
        let ready = mm.prepare_run(&pages, held);
        match NonZero::new(ready) {
            Some(ready) => {
                let (run, rest) = pages.split_at(ready);
                // The page that ended the run is no longer ours.
                (
                    Self {
                        mm,
                        pages: Some(run),
                    },
                    rest.and_then(|rest| rest.without_first(1)),
                )
            }
            None => (Self { mm, pages: None }, pages.without_first(1)),
        }
    }

    /// Takes the largest block that the run begins with.
    #[inline]
    fn next_block(&mut self) -> Option<FreeBlock> {
        let pages = self.pages.take()?;
        let head = pages.first();
        let mut order = block_order(head, pages.nr(), M::MAX_PAGE_ORDER);
        while order > 0 && !self.mm.same_zone(head, head.add((1 << order) - 1)) {
            order -= 1;
        }
        self.pages = pages.without_first(1 << order);
        // INVARIANT: block_order() aligned the block, halving it kept that, and the zone was just
        // looked at.
        Some(FreeBlock { head, order })
    }
}

impl<M: ContigMm> Drop for PreparedRun<'_, M> {
    #[inline]
    fn drop(&mut self) {
        while let Some(block) = self.next_block() {
            self.mm.free_prepared(block);
        }
    }
}

/// Frees the pages of `range`, each as `__free_page()` would, as the fewest blocks.
///
/// All are order-0 pages, neither compound nor part of a higher order. A range of one page goes
/// straight to the single-page free.
///
/// Context: any but NMI, with no raw spinlock held. Does not sleep, and does not yield the CPU
/// within a range, like the C function.
///
/// C: `__free_contig_range_common()`, mm/page_alloc.c, 7.2.
#[inline]
pub fn free_contig_range<M: ContigMm>(mm: &M, range: PageRange, held: Held) {
    match range.into_lone() {
        Ok(page) => mm.free_page(page, held),
        Err(range) => free_sections(mm, range, held),
    }
}

/// Frees more than one page. Out of line, so that one page does not pay for its stack frame.
#[inline(never)]
fn free_sections<M: ContigMm>(mm: &M, range: PageRange, held: Held) {
    let mut left = Some(range);
    while let Some(range) = left {
        let in_section = mm.contiguous_struct_pages(range.first());
        let (section, next) = range.split_at(in_section);
        free_section(mm, section, held);
        left = next;
    }
}

/// Frees pages with contiguous struct pages.
#[inline]
fn free_section<M: ContigMm>(mm: &M, section: PageRange, held: Held) {
    let mut left = Some(section);
    while let Some(pages) = left {
        let (_run, next) = PreparedRun::first_of(mm, pages, held);
        left = next;
    }
}

/// Frees an array of order-0 pages, run by run.
///
/// Context: process context that may sleep.
///
/// C: `free_pages_bulk()`, mm/page_alloc.c, 7.2.
#[inline]
pub fn free_pages_bulk<M: ContigMm>(mm: &M, pages: &mut impl PageArray) {
    while let Some(run) = pages.next_run() {
        free_contig_range(mm, run, Held::Refcounted);
        pages.cond_resched();
    }
}
