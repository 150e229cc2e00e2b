// SPDX-License-Identifier: GPL-2.0

//! error: E0382
//! A split range is its parts, and no longer itself.

use core::num::NonZero;
use mm_batch::free::{PageRange, Refcounted};

type Range = PageRange<Refcounted>;

pub fn parts(range: Range, nr: NonZero<usize>) -> (Range, Option<Range>) {
    #[cfg(bad)]
    {
        let (_front, _rest) = range.split_off_front(nr);
    }
    range.split_off_front(nr)
}
