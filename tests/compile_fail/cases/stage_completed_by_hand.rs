// SPDX-License-Identifier: GPL-2.0

//! error: E0133 complete
//! A last stage is completed by its run, with what was taken for that run.

use mm_batch::unmap::{ForGood, LastStage, UnmapWalk};

pub fn completed<W: UnmapWalk, T: LastStage<W>>(
    stage: T,
    behind: T::Behind,
    another: ForGood<'_, W>,
) {
    #[cfg(bad)]
    let _ = stage.complete(behind, another);
}
