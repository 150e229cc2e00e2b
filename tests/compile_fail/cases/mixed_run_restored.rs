// SPDX-License-Identifier: GPL-2.0

//! error: E0599
//! A run of PTEs that differ in the write bit has no state that could be restored.

use mm_batch::{
    pte_batch::Pte,
    pte_run::{MixedRun, UnmapWalk},
};

pub fn unmap<W: UnmapWalk>(walk: &mut W, first: Pte) {
    MixedRun::longest(walk, first).unmap(|_, _, _| ());
}

#[cfg(bad)]
pub fn clear<W: UnmapWalk>(walk: &mut W, first: Pte) {
    MixedRun::longest(walk, first).clear();
}
