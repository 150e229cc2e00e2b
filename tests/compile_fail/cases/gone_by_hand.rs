// SPDX-License-Identifier: GPL-2.0

//! error: E0451
//! What takes the place of the PTEs is said by doing it.

use mm_batch::unmap::{ForGood, Gone, UnmapWalk};

pub fn gone<'r, W: UnmapWalk>(ptes: ForGood<'r, W>) -> Gone<'r> {
    #[cfg(bad)]
    return Gone {
        brand: std::marker::PhantomData,
    };
    #[cfg(not(bad))]
    ptes.vanish()
}
