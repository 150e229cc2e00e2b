// SPDX-License-Identifier: GPL-2.0

//! error: E0382 walk
//! While a run is cleared, nobody else has the walk, which stands for the lock.

use mm_batch::unmap::{PteRun, UnmapWalk};

pub fn restored<W: UnmapWalk>(walk: W) {
    let cleared = PteRun::longest(walk).clear();
    #[cfg(bad)]
    walk.folio_mark_dirty();
    cleared.restore().walk().folio_mark_dirty();
}
