// SPDX-License-Identifier: GPL-2.0

//! error: E0451 unmapping, brand, NothingOwed
//! That no flush is owed is known from a flush alone.

use core::marker::PhantomData;
use mm_batch::reclaim::NothingOwed;

pub fn known<'n, 'u, 'r>(owed: &'n NothingOwed<'u, 'r>) -> &'n NothingOwed<'u, 'r> {
    owed
}

#[cfg(bad)]
pub fn forge<'u, 'r>(_one: &NothingOwed<'u, 'r>) -> NothingOwed<'u, 'r> {
    NothingOwed {
        unmapping: PhantomData,
        brand: PhantomData,
    }
}
