// SPDX-License-Identifier: GPL-2.0

//! error: E0451
//! Nobody says of a run that was mapped again that it was unmapped, or that it was longer.

use mm_batch::{
    pte_run::RunLength,
    unmap::{FlushOwed, UnmappedRun},
};

pub fn told(nr: RunLength, owed: FlushOwed) -> (RunLength, Option<UnmappedRun>) {
    #[cfg(bad)]
    let run = Some(UnmappedRun { nr, owed });
    #[cfg(not(bad))]
    let run = {
        owed.left_with_task();
        None
    };
    (nr, run)
}
