// SPDX-License-Identifier: GPL-2.0

//! error: E0200 LastStage
//! Nor does a run whose entries are counted vanish behind a last stage of safe code.

use mm_batch::{
    to_swap::{SwapCounted, SwapWalk},
    unmap::{Cleared, ClearedPtes, ForGood, Gone, LastStage, Stage},
};

pub struct Mine;

// SAFETY: Nothing is taken.
unsafe impl<W: SwapWalk> Stage<W> for Mine {
    type Behind = (SwapCounted, Cleared);
    type Refused = ();

    unsafe fn enter(_: &ClearedPtes<W>) -> Result<Self, ()> {
        Ok(Self)
    }
}

#[cfg(bad)]
impl<W: SwapWalk> LastStage<W> for Mine {
    unsafe fn complete(self, _: Self::Behind, ptes: ForGood<'_, W>) -> Gone<'_> {
        ptes.vanish()
    }
}
