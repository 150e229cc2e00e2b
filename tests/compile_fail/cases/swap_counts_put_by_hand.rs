// SPDX-License-Identifier: GPL-2.0

//! error: E0133 folio_put_swap_pages
//! Who has a walk puts no swap counts by it.

use mm_batch::{pte_run::RunLength, to_swap::SwapWalk};

pub fn put<W: SwapWalk>(walk: &W, nr: RunLength) {
    #[cfg(bad)]
    let _ = walk.folio_put_swap_pages(nr);
}
