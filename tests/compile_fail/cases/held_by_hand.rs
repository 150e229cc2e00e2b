// SPDX-License-Identifier: GPL-2.0

//! error: E0277 Borrowed, Sealed
//! right: impl Held -> impl Open
//! There is no third kind of ownership, which would be neither counted nor frozen.

use mm_batch::free::Held;

pub trait Open {
    const FROZEN: bool;
}

#[derive(Debug)]
pub struct Borrowed;

#[cfg(bad)]
impl Held for Borrowed {
    const FROZEN: bool = false;
}
