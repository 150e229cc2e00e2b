// SPDX-License-Identifier: GPL-2.0

//! error: E0308
//! The single-page free takes one page, not a range.

use mm_batch::free::{ContigMm, LonePage, PageRange, Refcounted};

pub fn free(
    mm: &impl ContigMm,
    page: LonePage<Refcounted>,
    range: PageRange<Refcounted>,
) -> PageRange<Refcounted> {
    mm.free_page(page);
    #[cfg(bad)]
    mm.free_page(range);
    range
}
