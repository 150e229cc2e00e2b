// SPDX-License-Identifier: GPL-2.0

//! error: E0271 Shareable, Behind
//! right: Shareable -> SwapCounted
//! A stage is entered behind those that come before it.

use mm_batch::{
    to_swap::{Shareable, SwapCounted, SwapWalk},
    unmap::PteRun,
};

pub fn staged<W: SwapWalk>(walk: W) {
    let run = PteRun::longest(walk).clear();
    #[cfg(bad)]
    let _ = run.stage::<Shareable>();
}
