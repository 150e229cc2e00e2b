// SPDX-License-Identifier: GPL-2.0

//! error: E0133 clear_pages_anon_exclusive
//! Who has a walk shares no page by it.

use mm_batch::{pte_run::PtePart, to_swap::SwapWalk};

pub fn shared<W: SwapWalk>(walk: &W, part: &PtePart) {
    #[cfg(bad)]
    walk.clear_pages_anon_exclusive(part);
    let _ = (walk.folio_maybe_dma_pinned(), part.nr());
}
