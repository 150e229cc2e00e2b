// SPDX-License-Identifier: GPL-2.0

//! error: E0599 commit, CountedRun
//! right: commit -> share
//! A run whose entries are counted is not unmapped for good before it is known what is pinned.

use mm_batch::{
    to_swap::SwapWalk,
    unmap::PteRun, //
};

pub fn counted<W: SwapWalk>(walk: W) {
    if let Ok(run) = PteRun::longest(walk).clear().count_swap_entries() {
        #[cfg(bad)]
        let _ = run.commit();
    }
}
