// SPDX-License-Identifier: GPL-2.0

//! error: E0599 lock, Waiting
//! right: folio: Waiting -> folio: Settled
//! A folio that waits for its flush is not locked before.

use mm_batch::reclaim::{FolioList, FolioLock, Settled, Waiting};

pub fn early<'r, L: FolioList>(folio: Waiting<'r, L>, lock: FolioLock<'r>) {
    #[cfg(bad)]
    let _ = folio.lock(lock);
}
