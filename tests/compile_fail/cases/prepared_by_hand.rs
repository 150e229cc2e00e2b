// SPDX-License-Identifier: GPL-2.0

//! error: E0133 visited
//! Prepared pages are only made by a port, which promises that it prepared them.

use mm_batch::free::{Refcounted, Section};

pub fn all(pages: Section<Refcounted>) {
    let nr = pages.frames().nr().get();
    #[cfg(bad)]
    let _ = pages.visited(nr);
}
