// SPDX-License-Identifier: GPL-2.0

//! error: E0382 placed
//! A batch is in one state.

use mm_batch::batch::{
    FolioBatch,
    Placed, //
};

pub fn unmap<B: FolioBatch>(placed: Placed<B>) {
    let _unmapped = placed.unmap();
    #[cfg(bad)]
    let _twice = placed.unmap();
}
