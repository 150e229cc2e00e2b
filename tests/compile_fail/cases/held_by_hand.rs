// SPDX-License-Identifier: GPL-2.0

//! error: E0277
//! There is no third kind of ownership, which would be neither counted nor frozen.

use mm_batch::free::{Held, Refcounted};

pub fn frozen<H: Held>() -> bool {
    H::FROZEN
}

pub fn counted() -> bool {
    frozen::<Refcounted>()
}

#[derive(Debug)]
pub struct Borrowed;

#[cfg(bad)]
impl Held for Borrowed {
    const FROZEN: bool = false;
}
