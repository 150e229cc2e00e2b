// SPDX-License-Identifier: GPL-2.0

//! error: E0599 pageout, Locked
//! right: folio: Locked -> folio: Revalidated
//! A folio that was unlocked is looked at again before it is written out.

use mm_batch::reclaim::{FolioList, Locked, NothingOwed, Revalidated};

pub fn early<'r, L: FolioList>(folio: Locked<'r, L>, owed: &NothingOwed<'_, 'r>) {
    #[cfg(bad)]
    let _ = folio.pageout(owed);
}
