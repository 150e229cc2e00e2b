// SPDX-License-Identifier: GPL-2.0

//! error: E0382 lock
//! Who waits for other CPUs has no folio locked.

use mm_batch::reclaim::{Collecting, FolioList, FolioLock, Settled, Unmapping};

pub fn flush<'r, L: FolioList>(
    batch: &mut Collecting<'r, L>,
    unmapping: &Unmapping<'r, L>,
    lock: FolioLock<'r>,
    waiting: Settled<'r, L>,
) {
    let _locked = waiting.lock(lock);
    #[cfg(bad)]
    drop(batch.flush(unmapping, &lock));
}
