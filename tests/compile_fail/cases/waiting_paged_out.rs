// SPDX-License-Identifier: GPL-2.0

//! error: E0599
//! A folio that is not locked is not written out.

use mm_batch::reclaim::{FolioList, NothingOwed, Waiting};

pub fn unlocked<'r, L: FolioList>(waiting: Waiting<'r, L>, owed: &NothingOwed<'_, 'r>) {
    let _ = owed;
    #[cfg(bad)]
    waiting.pageout(owed);
    #[cfg(not(bad))]
    drop(waiting);
}
