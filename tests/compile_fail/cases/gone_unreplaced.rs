// SPDX-License-Identifier: GPL-2.0

//! error: E0133 replaced
//! Nor is it said by who only says so.

use mm_batch::unmap::{ForGood, UnmapWalk};

pub fn gone<W: UnmapWalk>(ptes: ForGood<'_, W>) {
    #[cfg(bad)]
    let _ = ptes.replaced();
}
