// SPDX-License-Identifier: GPL-2.0

//! error: E0133 undo
//! A stage is undone by its run, and not by whoever has a value of it, on a run of another.

use mm_batch::unmap::{ClearedPtes, Stage, UnmapWalk};

pub fn undone<W: UnmapWalk, T: Stage<W>>(stage: T, another: &ClearedPtes<W>) {
    #[cfg(bad)]
    stage.undo(another);
}
