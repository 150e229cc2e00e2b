// SPDX-License-Identifier: GPL-2.0

//! error: E0133 clear_flush
//! error: restore
//! error: end_mappings
//! error: vanish
//! error: dup_swap
//! error: put_swap
//! error: clear_anon_exclusive
//! error: prepare_for_swap_entries
//! error: set_swp_ptes
//! By a walk alone, no PTE, counter, rmap or slot of a set is changed without a promise.

use mm_batch::folios::{
    FolioSet,
    SwapFoliosWalk, //
};

pub fn by_hand<W: SwapFoliosWalk>(walk: &W, set: FolioSet) {
    #[cfg(bad)]
    walk.clear_flush(set);
    #[cfg(bad)]
    walk.restore(set);
    #[cfg(bad)]
    walk.end_mappings(set);
    #[cfg(bad)]
    walk.vanish(set);
    #[cfg(bad)]
    walk.dup_swap(set);
    #[cfg(bad)]
    walk.put_swap(set);
    #[cfg(bad)]
    walk.clear_anon_exclusive(set);
    #[cfg(bad)]
    walk.prepare_for_swap_entries(set);
    #[cfg(bad)]
    walk.set_swp_ptes(set);
}
