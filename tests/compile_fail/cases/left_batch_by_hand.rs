// SPDX-License-Identifier: GPL-2.0

//! error: E0423 private
//! A batch may be let go if what is clean, and what is mapped, has left it.

use mm_batch::batch::{
    FolioBatch,
    LeftFolios,
    Unmapped, //
};

pub fn leave<B: FolioBatch>(unmapped: Unmapped<B>) -> LeftFolios<B> {
    unmapped.free_clean()
}

#[cfg(bad)]
pub fn forge<B: FolioBatch>(batch: B) -> LeftFolios<B> {
    LeftFolios(batch)
}
