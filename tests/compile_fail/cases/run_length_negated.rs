// SPDX-License-Identifier: GPL-2.0

//! error: E0600
//! A length in pages has no negation: 32 bits of it would be 4 Gi pages.

use mm_batch::pte_batch::RunLength;

pub fn pages(nr: RunLength) -> u32 {
    nr.get()
}

#[cfg(bad)]
pub fn negated(nr: RunLength) -> i64 {
    i64::from(-nr.get())
}
