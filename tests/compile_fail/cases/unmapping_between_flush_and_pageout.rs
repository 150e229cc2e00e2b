// SPDX-License-Identifier: GPL-2.0

//! error: E0502 unmapping
//! Nothing is unmapped between the flush and the last pageout of its batch.

use mm_batch::reclaim::{Collecting, FolioList, FolioLock, Unmapping};

pub fn between<'r, L: FolioList>(
    batch: &mut Collecting<'r, L>,
    next: &Collecting<'r, L>,
    unmapping: &mut Unmapping<'r, L>,
    lock: FolioLock<'r>,
) {
    let mut flushed = batch.flush(unmapping, &lock);
    #[cfg(bad)]
    drop(unmapping.next_dirty(lock, next));
    drop(flushed.next_settled());
}
