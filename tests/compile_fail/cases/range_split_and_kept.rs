// SPDX-License-Identifier: GPL-2.0

//! error: E0382
//! A split range is its parts, and no longer itself.

use core::num::NonZero;
use mm_batch::pages::PageRange;

pub fn parts(range: PageRange, nr: NonZero<usize>) -> (PageRange, Option<PageRange>) {
    #[cfg(bad)]
    {
        let (_head, _rest) = range.split_at(nr);
    }
    range.split_at(nr)
}
