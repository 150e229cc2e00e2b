// SPDX-License-Identifier: GPL-2.0

//! error: E0277 SwapCounted, LastStage
//! right: commit -> restore
//! A run whose entries are counted is not unmapped for good before they can be written.

use mm_batch::{
    to_swap::{SwapCounted, SwapWalk},
    unmap::PteRun,
};

pub fn counted<W: SwapWalk>(walk: W) {
    if let Ok(run) = PteRun::longest(walk).clear().stage::<SwapCounted>() {
        #[cfg(bad)]
        let _ = run.commit();
    }
}
