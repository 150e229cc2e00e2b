// SPDX-License-Identifier: GPL-2.0

//! error: E0599
//! A folio waits once.

use mm_batch::reclaim::{FolioList, Waiting};

pub fn two<'r, L: FolioList + Clone>(waiting: Waiting<'r, L>) -> Waiting<'r, L> {
    #[cfg(bad)]
    let _second = waiting.clone();
    waiting
}
