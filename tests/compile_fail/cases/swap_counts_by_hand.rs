// SPDX-License-Identifier: GPL-2.0

//! error: E0133 folio_dup_swap_pages
//! Who has a walk counts no swap entries by it.

use mm_batch::{pte_run::RunLength, to_swap::SwapWalk};

pub fn counted<W: SwapWalk>(walk: &W, nr: RunLength) {
    #[cfg(bad)]
    walk.folio_dup_swap_pages(nr);
    let _ = (walk.folio_test_swapcache(), nr);
}
