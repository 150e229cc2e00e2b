// SPDX-License-Identifier: GPL-2.0

//! Freeing a range of order-0 pages as the fewest aligned power-of-two blocks.
//!
//! C: `__free_contig_range_common()`, `free_prepared_contig_range()` and `free_pages_bulk()`,
//! mm/page_alloc.c, 7.3. The result is that of `__free_page()` on each page of the range, except
//! that what can be freed together goes to the allocator together.
//!
//! One named difference from C: a block never crosses a zone. C looks at the zone of a block's
//! first page only, and relies on its callers for the rest.
//!
//! The steps, each a type that owns the pages, are in [`crate::free`].

#![forbid(unsafe_code)]

use crate::free::{
    ContigMm,
    Held,
    PageRange,
    PreparedRun,
    Refcounted,
    Section, //
};

/// An array of order-0 pages, one reference of each owned, taken run by run.
///
/// C: `num_pages_contiguous()`, include/linux/mm_inline.h, 7.3.
pub trait PageArray {
    /// Takes the longest run of contiguous pages at the array's front; `None` when the array is
    /// empty.
    fn next_run(&mut self) -> Option<PageRange<Refcounted>>;

    /// May be called between two runs: sleeps if others want the CPU (C: `cond_resched()`).
    fn cond_resched(&mut self);
}

/// Frees the pages of `range`, each as `__free_page()` would, as the fewest blocks.
///
/// A range of one page goes straight to the single-page free.
///
/// # Examples
///
/// ```
/// use mm_batch::{contig_free::free_contig_range, free::Refcounted};
/// use mm_shim::contig_free::{Cpu, Layout, Mm};
///
/// // Page frames 12 to 18: blocks of 4, 2 and 1 pages.
/// let layout = Layout::plain(12, 7);
/// let mm = Mm::new(layout.clone());
/// free_contig_range(&Cpu::new(&mm, 0), layout.range::<Refcounted>());
/// let blocks = mm.with_lists(|lists| lists.blocks().to_vec());
/// assert_eq!(blocks.len(), 3);
/// ```
///
/// Context: any but NMI, with no raw spinlock held. Does not sleep, and does not yield the CPU
/// within a range, like the C function.
///
/// C: `__free_contig_range_common()`, mm/page_alloc.c, 7.3.
#[inline]
pub fn free_contig_range<M: ContigMm, H: Held>(mm: &M, range: PageRange<H>) {
    match range.into_lone() {
        Ok(page) => mm.free_page(page),
        Err(range) => free_sections(mm, range),
    }
}

/// Frees more than one page. Out of line, so that one page does not pay for its stack frame.
#[inline(never)]
fn free_sections<M: ContigMm, H: Held>(mm: &M, range: PageRange<H>) {
    let mut left = Some(range);
    while let Some(range) = left {
        let (section, rest) = range.split_off_section(mm);
        free_section(mm, section);
        left = rest;
    }
}

/// Frees pages with contiguous struct pages.
#[inline]
fn free_section<M: ContigMm, H: Held>(mm: &M, section: Section<H>) {
    let mut left = Some(section);
    while let Some(pages) = left {
        let (run, rest) = PreparedRun::first_of(mm, pages);
        run.free();
        left = rest;
    }
}

/// Frees an array of order-0 pages, run by run.
///
/// Context: process context that may sleep.
///
/// C: `free_pages_bulk()`, mm/page_alloc.c, 7.3.
#[inline]
pub fn free_pages_bulk<M: ContigMm>(mm: &M, pages: &mut impl PageArray) {
    while let Some(run) = pages.next_run() {
        free_contig_range(mm, run);
        pages.cond_resched();
    }
}
