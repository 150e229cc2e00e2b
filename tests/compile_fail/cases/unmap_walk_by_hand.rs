// SPDX-License-Identifier: GPL-2.0

//! error: E0133 end_mappings
//! error: flush_before_restore
//! error: vanish
//! error: set_ptes
//! error: clear_flush_ptes
//! By a walk alone, nothing is cleared, flushed for, written or ended without a promise.

use mm_batch::{
    pte_run::RunLength,
    unmap::{
        Part,
        UnmapWalk, //
    },
};

pub fn by_hand<W: UnmapWalk>(walk: &W, nr: RunLength, part: &Part<W>) {
    #[cfg(bad)]
    walk.end_mappings(nr);
    #[cfg(bad)]
    walk.flush_before_restore(part);
    #[cfg(bad)]
    walk.vanish(part);
    #[cfg(bad)]
    walk.set_ptes(part);
    #[cfg(bad)]
    walk.clear_flush_ptes(nr);
}
