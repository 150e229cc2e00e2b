// SPDX-License-Identifier: GPL-2.0

//! error: E0061 1, argument, 0
//! right: pageout() -> pageout(owed)
//! Nor one that was looked at again.

use mm_batch::reclaim::{FolioList, NothingOwed, Revalidated};

pub fn early<'r, L: FolioList>(folio: Revalidated<'r, L>, owed: &NothingOwed<'_, 'r>) {
    #[cfg(bad)]
    let _ = folio.pageout();
}
