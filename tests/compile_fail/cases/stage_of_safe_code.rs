// SPDX-License-Identifier: GPL-2.0

//! error: E0200 Stage
//! Whoever adds a stage says that it leaves nothing when it is undone.

use mm_batch::unmap::{Cleared, ClearedPtes, Stage, UnmapWalk};

pub struct Mine;

#[cfg(bad)]
impl<W: UnmapWalk> Stage<W> for Mine {
    type Behind = Cleared;
    type Refused = ();

    unsafe fn enter(_: &ClearedPtes<W>) -> Result<Self, ()> {
        Ok(Self)
    }
}
