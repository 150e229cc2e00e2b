// SPDX-License-Identifier: GPL-2.0

//! error: E0133 page_anon_exclusive_batch
//! Pages of one run are not asked for by the part of another.

use mm_batch::{to_swap::SwapWalk, unmap::ClearedRun};

pub fn asked<W: SwapWalk>(one: &ClearedRun<W>, other: &ClearedRun<W>) {
    let (walk, part) = (one.ptes().walk(), other.ptes().part());
    #[cfg(bad)]
    let _ = walk.page_anon_exclusive_batch(part);
}
