// SPDX-License-Identifier: GPL-2.0

//! error: E0308
//! A range's length is not a number that could be zero.

use mm_batch::pages::{PageRange, Pfn};

pub fn split(range: PageRange) -> Option<PageRange> {
    #[cfg(bad)]
    return range.split_at(0).1;
    PageRange::new(range.first(), range.nr().get())
}

pub const FIRST: Pfn = Pfn::new(0);
