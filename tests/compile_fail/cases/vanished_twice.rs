// SPDX-License-Identifier: GPL-2.0

//! error: E0382 ptes
//! The PTEs of a run get one thing in their place, once.

use mm_batch::unmap::{ForGood, Gone, UnmapWalk};

pub fn gone<'r, W: UnmapWalk>(ptes: ForGood<'r, W>) -> Gone<'r> {
    let gone = ptes.vanish();
    #[cfg(bad)]
    let gone = ptes.vanish();
    gone
}
