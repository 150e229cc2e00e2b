// SPDX-License-Identifier: GPL-2.0

//! error: E0599
//! A run of PTEs that differ in the write bit has no state that could be restored.

use mm_batch::unmap::{MixedRun, UnmapWalk};

pub fn unmap<W: UnmapWalk>(walk: W) {
    let run = MixedRun::longest(walk);
    #[cfg(bad)]
    let run = run.clear();
    run.unmap();
}
