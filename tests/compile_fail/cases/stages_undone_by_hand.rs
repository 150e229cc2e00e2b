// SPDX-License-Identifier: GPL-2.0

//! error: E0599
//! Nor can those behind a stage be: their trait has no name here.

use mm_batch::unmap::{ClearedPtes, Stage, UnmapWalk};

pub fn undone<W: UnmapWalk, T: Stage<W>>(behind: T::Behind, another: &ClearedPtes<W>) {
    #[cfg(bad)]
    behind.undo(another);
    #[cfg(not(bad))]
    let _ = (behind, another.part());
}
