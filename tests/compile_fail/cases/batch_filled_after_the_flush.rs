// SPDX-License-Identifier: GPL-2.0

//! error: E0499 batch
//! What comes behind the flush is not of the batch that it was for.

use mm_batch::reclaim::{Collecting, FolioList, FolioLock, Unmapping, Waiting};

pub fn late<'r, L: FolioList>(
    batch: &mut Collecting<'r, L>,
    unmapping: &Unmapping<'r, L>,
    lock: &FolioLock<'r>,
    waiting: Waiting<'r, L>,
) {
    let mut flushed = batch.flush(unmapping, lock);
    #[cfg(bad)]
    let _ = batch.push(waiting);
    drop(flushed.next_settled());
}
