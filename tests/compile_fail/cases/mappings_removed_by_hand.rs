// SPDX-License-Identifier: GPL-2.0

//! error: E0133 folio_remove_rmap_ptes
//! Who has a walk takes no mapping from a mapcount by it.

use mm_batch::{pte_run::RunLength, unmap::UnmapWalk};

pub fn removed<W: UnmapWalk>(walk: &W, nr: RunLength) {
    #[cfg(bad)]
    let _ = walk.folio_remove_rmap_ptes(nr);
}
