// SPDX-License-Identifier: GPL-2.0

//! error: E0451
//! There is one right to lock, and it comes with the list.

use core::marker::PhantomData;
use mm_batch::reclaim::FolioLock;

pub fn brand<'r>() -> PhantomData<fn(&'r ()) -> &'r ()> {
    PhantomData
}

#[cfg(bad)]
pub fn forge<'r>(_one: &FolioLock<'r>) -> FolioLock<'r> {
    FolioLock { brand: brand() }
}
