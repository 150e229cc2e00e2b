// SPDX-License-Identifier: GPL-2.0

//! error: E0603 Stages, private
//! Nor can those behind a stage be: their trait has no name here.

use mm_batch::unmap::{ClearedPtes, Stage, UnmapWalk};

#[cfg(bad)]
pub fn undone<W: UnmapWalk, T: Stage<W>>(behind: T::Behind, another: &ClearedPtes<W>) {
    // SAFETY: Nobody's: this is not run.
    unsafe { mm_batch::unmap::Stages::undo(behind, another) };
}
