// SPDX-License-Identifier: GPL-2.0

//! error: E0133
//! Pages of one run are not asked for by the part of another.

use mm_batch::to_swap::{SubBatch, SwapWalk};
use mm_batch::unmap::ClearedRun;

pub fn asked<W: SwapWalk>(one: &ClearedRun<W>, other: &ClearedRun<W>) -> Option<SubBatch> {
    let (walk, part) = (one.ptes().walk(), other.ptes().part());
    let _ = (walk.folio_maybe_dma_pinned(), part.nr());
    #[cfg(bad)]
    return Some(walk.page_anon_exclusive_batch(part));
    #[cfg(not(bad))]
    None
}
