// SPDX-License-Identifier: GPL-2.0

//! error: E0499
//! While a run is cleared, nobody has the walk, and so the lock: it comes first.

use mm_batch::{
    pte_batch::Pte,
    pte_run::{PteRun, UnmapWalk},
};

pub fn restored<W: UnmapWalk>(walk: &mut W, first: Pte) {
    let cleared = PteRun::longest(walk, first).clear();
    #[cfg(bad)]
    walk.folio_mark_dirty();
    drop(cleared);
    walk.folio_mark_dirty();
}
