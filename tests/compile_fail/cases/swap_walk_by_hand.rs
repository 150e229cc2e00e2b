// SPDX-License-Identifier: GPL-2.0

//! error: E0133 page_anon_exclusive_batch
//! error: clear_pages_anon_exclusive
//! error: prepare_for_swap_entries
//! error: folio_dup_swap_pages
//! error: folio_put_swap_pages
//! error: set_swp_ptes
//! By a walk alone, nothing is counted, shared or written for swap without a promise.

use mm_batch::{
    pte_run::RunLength,
    to_swap::{
        Sharing,
        SwapWalk, //
    },
    unmap::Part,
};

pub fn by_hand<W: SwapWalk>(walk: &W, nr: RunLength, part: &Part<W>) {
    #[cfg(bad)]
    walk.page_anon_exclusive_batch(part);
    #[cfg(bad)]
    walk.clear_pages_anon_exclusive(part);
    #[cfg(bad)]
    walk.prepare_for_swap_entries(nr);
    #[cfg(bad)]
    walk.folio_dup_swap_pages(nr);
    #[cfg(bad)]
    walk.folio_put_swap_pages(nr);
    #[cfg(bad)]
    walk.set_swp_ptes(part, Sharing::Exclusive);
}
