// SPDX-License-Identifier: GPL-2.0

//! error: E0133 add_swap_counter
//! Who has a walk adds no swap entry to a counter by it.

use mm_batch::{pte_run::RunLength, to_swap::SwapWalk};

pub fn counted<W: SwapWalk>(walk: &W, nr: RunLength) {
    #[cfg(bad)]
    let _ = walk.add_swap_counter(nr);
}
