// SPDX-License-Identifier: GPL-2.0

//! error: E0382
//! A run is committed once.

use mm_batch::{
    pte_batch::Pte,
    pte_run::{PteRun, UnmapWalk},
};

pub fn unmap<W: UnmapWalk>(walk: &mut W, first: Pte) {
    let cleared = PteRun::longest(walk, first).clear();
    cleared.commit(|_, _, _| ());
    #[cfg(bad)]
    cleared.commit(|_, _, _| ());
}
