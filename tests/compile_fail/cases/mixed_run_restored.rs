// SPDX-License-Identifier: GPL-2.0

//! error: E0599 clear, MixedRun
//! right: MixedRun::longest -> PteRun::longest
//! A run of PTEs that differ in the write bit has no state that could be restored.

use mm_batch::unmap::{MixedRun, PteRun, UnmapWalk};

pub fn unmap<W: UnmapWalk>(walk: W) {
    #[cfg(bad)]
    let _ = MixedRun::longest(walk).clear();
}
