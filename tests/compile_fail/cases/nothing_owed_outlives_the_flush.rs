// SPDX-License-Identifier: GPL-2.0

//! error: E0597 flushed
//! What a flush was for is over with it: its proof is lent.

use mm_batch::reclaim::{Collecting, FolioList, FolioLock, NothingOwed, Unmapping};

pub fn lend<'r, L: FolioList>(
    batch: &mut Collecting<'r, L>,
    unmapping: &Unmapping<'r, L>,
    lock: &FolioLock<'r>,
) {
    let _owed: &NothingOwed<'_, 'r>;
    {
        let flushed = batch.flush(unmapping, lock);
        #[cfg(bad)]
        {
            _owed = flushed.nothing_owed();
        }
        drop(flushed.nothing_owed());
    }
    #[cfg(bad)]
    drop(_owed);
}
