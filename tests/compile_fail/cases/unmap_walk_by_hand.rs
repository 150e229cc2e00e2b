// SPDX-License-Identifier: GPL-2.0

//! error: E0133 add_mm_counter
//! error: flush_before_restore
//! error: leave_behind
//! error: folio_remove_rmap_ptes
//! error: set_ptes
//! error: folio_put_refs
//! error: get_and_clear_ptes
//! error: flush_tlb
//! By a walk alone, nothing is cleared, flushed, counted, written or dropped without a promise.

use mm_batch::{
    pte_run::RunLength,
    unmap::{
        Part,
        UnmapWalk, //
    },
};

pub fn by_hand<W: UnmapWalk>(walk: &W, nr: RunLength, part: &Part<W>) {
    #[cfg(bad)]
    walk.add_mm_counter(nr);
    #[cfg(bad)]
    walk.flush_before_restore(part);
    #[cfg(bad)]
    walk.leave_behind(part);
    #[cfg(bad)]
    walk.folio_remove_rmap_ptes(nr);
    #[cfg(bad)]
    walk.set_ptes(part);
    #[cfg(bad)]
    walk.folio_put_refs(nr);
    #[cfg(bad)]
    walk.get_and_clear_ptes(nr);
    #[cfg(bad)]
    walk.flush_tlb(part);
}
