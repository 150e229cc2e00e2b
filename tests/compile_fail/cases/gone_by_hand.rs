// SPDX-License-Identifier: GPL-2.0

//! error: E0451 brand, Gone
//! What takes the place of the PTEs is said by doing it.

use mm_batch::unmap::Gone;

#[cfg(bad)]
pub fn gone<'r>(_one: &Gone<'r>) -> Gone<'r> {
    Gone {
        brand: std::marker::PhantomData,
    }
}
