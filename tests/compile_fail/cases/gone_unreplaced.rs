// SPDX-License-Identifier: GPL-2.0

//! error: E0133
//! Nor is it said by who only says so.

use mm_batch::unmap::{ForGood, Gone, UnmapWalk};

pub fn gone<'r, W: UnmapWalk>(ptes: ForGood<'r, W>) -> Gone<'r> {
    #[cfg(bad)]
    return ptes.replaced();
    #[cfg(not(bad))]
    ptes.vanish()
}
