// SPDX-License-Identifier: GPL-2.0

//! error: E0599 share, ClearedRun
//! right: share -> count_swap_entries
//! Swap entries are counted before anything is asked of the pages.

use mm_batch::{
    to_swap::SwapWalk,
    unmap::PteRun, //
};

pub fn early<W: SwapWalk>(walk: W) {
    let run = PteRun::longest(walk).clear();
    #[cfg(bad)]
    let _ = run.share();
}
