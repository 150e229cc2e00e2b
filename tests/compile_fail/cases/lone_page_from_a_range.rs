// SPDX-License-Identifier: GPL-2.0

//! error: E0308
//! The single-page free takes one page, not a range.

use mm_batch::{
    contig_free::ContigMm,
    pages::{Held, LonePage, PageRange},
};

pub fn free(mm: &impl ContigMm, page: LonePage, range: PageRange) -> PageRange {
    mm.free_page(page, Held::Refcounted);
    #[cfg(bad)]
    mm.free_page(range, Held::Refcounted);
    range
}
