// SPDX-License-Identifier: GPL-2.0

//! error: E0423 private
//! A run is cleared, and its entries are counted, by nobody but the transaction.

use mm_batch::{
    to_swap::{
        CountedRun,
        SwapWalk, //
    },
    unmap::{
        ClearedRun,
        PteRun, //
    },
};

pub fn counted<W: SwapWalk>(walk: W) -> Option<CountedRun<W>> {
    PteRun::longest(walk).clear().count_swap_entries().ok()
}

#[cfg(bad)]
pub fn forge<W: SwapWalk>(walk: W) -> CountedRun<W> {
    CountedRun(ClearedRun(walk))
}
