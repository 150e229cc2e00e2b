// SPDX-License-Identifier: GPL-2.0

//! error: E0382 cleared
//! A run is committed once.

use mm_batch::unmap::{PteRun, UnmapWalk};

pub fn unmap<W: UnmapWalk>(walk: W) {
    let cleared = PteRun::longest(walk).clear();
    cleared.commit();
    #[cfg(bad)]
    cleared.commit();
}
