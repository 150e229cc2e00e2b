// SPDX-License-Identifier: GPL-2.0

//! error: E0382 cleared
//! What was restored is not committed: its PTEs would stay, and their references go.

use mm_batch::unmap::{PteRun, UnmapWalk};

pub fn restored<W: UnmapWalk>(walk: W) {
    let cleared = PteRun::longest(walk).clear();
    let _ = cleared.restore();
    #[cfg(bad)]
    cleared.commit();
}
