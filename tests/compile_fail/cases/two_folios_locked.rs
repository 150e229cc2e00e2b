// SPDX-License-Identifier: GPL-2.0

//! error: E0382 lock
//! Who has a folio locked has no right to lock another.

use mm_batch::reclaim::{FolioList, FolioLock, Settled};

pub fn both<'r, L: FolioList>(first: Settled<'r, L>, second: Settled<'r, L>, lock: FolioLock<'r>) {
    let _first = first.lock(lock);
    #[cfg(bad)]
    let _second = second.lock(lock);
}
