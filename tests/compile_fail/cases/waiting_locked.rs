// SPDX-License-Identifier: GPL-2.0

//! error: E0599
//! A folio that waits for its flush is not locked before.

use mm_batch::reclaim::{FolioList, FolioLock, Locked, Settled, Waiting};

pub fn early<'r, L: FolioList>(
    waiting: Waiting<'r, L>,
    settled: Settled<'r, L>,
    lock: FolioLock<'r>,
) -> Result<Locked<'r, L>, FolioLock<'r>> {
    #[cfg(bad)]
    return waiting.lock(lock);
    drop(waiting);
    settled.lock(lock)
}
