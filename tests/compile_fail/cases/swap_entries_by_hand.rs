// SPDX-License-Identifier: GPL-2.0

//! error: E0133 set_swp_ptes
//! Who has a walk writes no swap entries by it.

use mm_batch::{
    pte_run::PtePart,
    to_swap::{Sharing, SwapWalk},
};

pub fn written<W: SwapWalk>(walk: &W, part: &PtePart) {
    // SAFETY: Nobody's: this is not run.
    unsafe { walk.set_swp_ptes(part, Sharing::Exclusive) };
    #[cfg(bad)]
    walk.set_swp_ptes(part, Sharing::Exclusive);
}
