// SPDX-License-Identifier: GPL-2.0

//! error: E0133 leave_behind
//! What a run leaves in its PTEs is not written by hand.

use mm_batch::unmap::{ClearedPtes, UnmapWalk};

pub fn left<W: UnmapWalk>(walk: &W, run: &ClearedPtes<W>) {
    #[cfg(bad)]
    let _ = walk.leave_behind(run.part());
}
