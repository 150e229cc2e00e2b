// SPDX-License-Identifier: GPL-2.0

//! error: E0133 owned
//! Who frees a range has promised that it owns the pages.

use mm_batch::{
    free::{PageRange, Refcounted},
    pages::Pfn,
};

pub fn mine(first: Pfn, nr: usize) {
    #[cfg(bad)]
    let _ = PageRange::<Refcounted>::owned(first, nr);
}
