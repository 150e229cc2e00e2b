// SPDX-License-Identifier: GPL-2.0

//! error: E0133 set_ptes
//! Who has a walk cannot map a page by it without a promise.

use mm_batch::{pte_run::PtePart, unmap::UnmapWalk};

pub fn map<W: UnmapWalk>(walk: &W, cleared: &PtePart) {
    // SAFETY: Nobody's: this is not run.
    unsafe { walk.set_ptes(cleared) };
    #[cfg(bad)]
    walk.set_ptes(cleared);
}
