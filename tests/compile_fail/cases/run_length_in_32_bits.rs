// SPDX-License-Identifier: GPL-2.0

//! error: E0308
//! What a counter changes by is signed 64 bits, and nothing narrower.

use mm_batch::pte_batch::RunLength;

pub fn removed(nr: RunLength) -> i64 {
    nr.removed()
}

#[cfg(bad)]
pub fn narrow(nr: RunLength) -> i32 {
    nr.removed()
}
