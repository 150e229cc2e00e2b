// SPDX-License-Identifier: GPL-2.0

//! error: E0133 add_mm_counter
//! Who has a walk takes no page from a counter by it.

use mm_batch::{pte_run::RunLength, unmap::UnmapWalk};

pub fn counted<W: UnmapWalk>(walk: &W, nr: RunLength) {
    #[cfg(bad)]
    let _ = walk.add_mm_counter(nr);
}
