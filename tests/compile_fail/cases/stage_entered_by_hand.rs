// SPDX-License-Identifier: GPL-2.0

//! error: E0133 enter
//! A stage is entered by the run, which undoes it: what is taken for it cannot be left behind.

use mm_batch::{
    to_swap::{SwapCounted, SwapWalk},
    unmap::{ClearedRun, Stage},
};

pub fn entered<W: SwapWalk>(run: ClearedRun<W>) {
    #[cfg(bad)]
    let _ = <SwapCounted as Stage<W>>::enter(run.ptes());
    let _ = run.stage::<SwapCounted>();
}
