// SPDX-License-Identifier: GPL-2.0

//! error: E0308 LonePage, PageRange
//! right: free_page(range) -> free_page(page)
//! The single-page free takes one page, not a range.

use mm_batch::free::{ContigMm, LonePage, PageRange, Refcounted};

pub fn free(mm: &impl ContigMm, page: LonePage<Refcounted>, range: PageRange<Refcounted>) {
    #[cfg(bad)]
    mm.free_page(range);
}
