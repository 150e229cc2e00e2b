// SPDX-License-Identifier: GPL-2.0

//! error: E0308
//! A range's length is not a number that could be zero.

use mm_batch::free::{PageRange, Refcounted};

pub fn split(range: PageRange<Refcounted>) -> Option<PageRange<Refcounted>> {
    let nr = range.frames().nr();
    #[cfg(bad)]
    let nr = 0;
    range.split_off_front(nr).1
}
