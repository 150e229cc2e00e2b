// SPDX-License-Identifier: GPL-2.0

//! error: E0277 Sealed
//! right: impl Held for Mine -> impl Mine
//! An owner of pages has a reference to each, or they are frozen: nobody adds a third kind.

use mm_batch::free::Held;

pub const fn is_frozen<H: Held>() -> bool {
    H::FROZEN
}

#[cfg(bad)]
#[derive(Debug)]
pub struct Mine;

#[cfg(bad)]
impl Held for Mine {
    const FROZEN: bool = false;
}
