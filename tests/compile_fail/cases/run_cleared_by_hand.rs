// SPDX-License-Identifier: GPL-2.0

//! error: E0133 get_and_clear_ptes
//! Who has a walk clears no PTEs by it.

use mm_batch::{pte_run::RunLength, unmap::UnmapWalk};

pub fn cleared<W: UnmapWalk>(walk: &W, nr: RunLength) {
    #[cfg(bad)]
    let _ = walk.get_and_clear_ptes(nr);
}
