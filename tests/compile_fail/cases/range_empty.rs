// SPDX-License-Identifier: GPL-2.0

//! error: E0308 NonZero, integer
//! right: front(0) -> front(nr)
//! A range's length is not a number that could be zero.

use core::num::NonZero;
use mm_batch::free::{PageRange, Refcounted};

pub fn split(range: PageRange<Refcounted>, nr: NonZero<usize>) {
    #[cfg(bad)]
    let _ = range.split_off_front(0);
}
