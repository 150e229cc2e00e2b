// SPDX-License-Identifier: GPL-2.0

//! error: E0308 UnmappedRun, RunLength
//! right: Unmapped -> Kept
//! A run that is mapped again owes nothing, and nobody is told that it was unmapped.

use mm_batch::{
    file_unmap::Outcome,
    unmap::{PteRun, UnmapWalk},
};

pub fn told<W: UnmapWalk>(kept: PteRun<W>) {
    #[cfg(bad)]
    let _ = Outcome::Unmapped(kept.nr());
}
