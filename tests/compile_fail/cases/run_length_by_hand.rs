// SPDX-License-Identifier: GPL-2.0

//! error: E0423 private
//! Only a span makes a length, so it is neither 0 nor beyond the span.

use mm_batch::pte_run::RunLength;

pub fn pages(nr: RunLength) -> u32 {
    nr.get()
}

#[cfg(bad)]
pub fn longer(nr: RunLength) -> RunLength {
    RunLength(nr.get().saturating_add(1).try_into().unwrap())
}
