// SPDX-License-Identifier: GPL-2.0

//! error: E0308
//! A run that is mapped again owes nothing, and nobody is told that it was unmapped.

use mm_batch::{
    file_unmap::Outcome,
    unmap::{PteRun, UnmapWalk},
};

pub fn told<W: UnmapWalk>(kept: PteRun<W>) -> Outcome {
    #[cfg(bad)]
    return Outcome::Unmapped(kept.nr());
    #[cfg(not(bad))]
    Outcome::Kept(kept.nr())
}
