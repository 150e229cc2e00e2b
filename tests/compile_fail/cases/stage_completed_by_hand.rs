// SPDX-License-Identifier: GPL-2.0

//! error: E0133
//! A last stage is completed by its run, with what was taken for that run.

use mm_batch::unmap::{ForGood, Gone, LastStage, UnmapWalk};

pub fn completed<'r, W: UnmapWalk, T: LastStage<W>>(
    stage: T,
    behind: T::Behind,
    another: ForGood<'r, W>,
) -> Gone<'r> {
    #[cfg(bad)]
    return stage.complete(behind, another);
    #[cfg(not(bad))]
    {
        let _ = (stage, behind);
        another.vanish()
    }
}
