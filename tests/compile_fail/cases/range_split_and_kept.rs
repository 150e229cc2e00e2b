// SPDX-License-Identifier: GPL-2.0

//! error: E0382 range
//! A split range is its parts, and no longer itself.

use core::num::NonZero;
use mm_batch::free::{PageRange, Refcounted};

pub fn parts(range: PageRange<Refcounted>, nr: NonZero<usize>) {
    let _ = range.split_off_front(nr);
    #[cfg(bad)]
    let _ = range.split_off_front(nr);
}
