// SPDX-License-Identifier: GPL-2.0

//! error: E0133
//! Who frees a range has promised that it owns the pages.

use mm_batch::{
    free::{PageRange, Refcounted},
    pages::Pfn,
};

pub fn mine(first: Pfn, nr: usize) -> Option<PageRange<Refcounted>> {
    #[cfg(bad)]
    return PageRange::owned(first, nr);
    // SAFETY: Nobody's: this is not run.
    unsafe { PageRange::owned(first, nr) }
}
