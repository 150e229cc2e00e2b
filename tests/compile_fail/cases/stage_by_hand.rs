// SPDX-License-Identifier: GPL-2.0

//! error: E0423 private
//! The stage that restores the PTEs is made by clearing them, so nobody undoes it out of turn.

use mm_batch::unmap::{Cleared, ClearedRun, PteRun, UnmapWalk};

pub fn clear<W: UnmapWalk>(walk: W) -> ClearedRun<W, Cleared> {
    PteRun::longest(walk).clear()
}

#[cfg(bad)]
pub fn forge() -> Cleared {
    Cleared(())
}
