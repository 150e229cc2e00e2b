// SPDX-License-Identifier: GPL-2.0

//! error: E0133
//! Prepared pages are only made by a port, which promises that it prepared them.

use mm_batch::free::{PreparedPages, Refcounted, Section};

pub fn all(pages: Section<Refcounted>) -> Option<PreparedPages> {
    let nr = pages.frames().nr().get();
    #[cfg(bad)]
    return pages.visited(nr).0;
    // SAFETY: Nobody's: this is not run.
    unsafe { pages.visited(nr) }.0
}
