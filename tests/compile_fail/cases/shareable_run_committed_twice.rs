// SPDX-License-Identifier: GPL-2.0

//! error: E0382 run
//! The entries of a run are written once.

use mm_batch::to_swap::{
    ShareableRun,
    SwapWalk, //
};

pub fn twice<W: SwapWalk>(run: ShareableRun<W>) {
    run.commit();
    #[cfg(bad)]
    run.commit();
}
