// SPDX-License-Identifier: GPL-2.0

//! error: E0133 folio_put_refs
//! Who has a walk cannot drop references by it without a promise.

use mm_batch::{pte_run::RunLength, unmap::UnmapWalk};

pub fn put<W: UnmapWalk>(walk: &W, nr: RunLength) {
    // SAFETY: Nobody's: this is not run.
    unsafe { walk.folio_put_refs(nr) };
    #[cfg(bad)]
    walk.folio_put_refs(nr);
}
