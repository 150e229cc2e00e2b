// SPDX-License-Identifier: GPL-2.0

//! error: E0451 nr, owed, UnmappedRun
//! Nobody says of a run that was mapped again that it was unmapped, or that it was longer.

use mm_batch::{
    pte_run::RunLength,
    unmap::{FlushOwed, UnmappedRun},
};

pub fn told(nr: RunLength, owed: FlushOwed) {
    #[cfg(bad)]
    let _ = UnmappedRun { nr, owed };
}
