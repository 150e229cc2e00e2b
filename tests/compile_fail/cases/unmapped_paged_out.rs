// SPDX-License-Identifier: GPL-2.0

//! error: E0599 pageout, Unmapped
//! right: folio: Unmapped -> folio: Revalidated
//! A folio that was just unmapped is not written out: a flush may be owed.

use mm_batch::reclaim::{FolioList, NothingOwed, Revalidated, Unmapped};

pub fn early<'r, L: FolioList>(folio: Unmapped<'r, L>, owed: &NothingOwed<'_, 'r>) {
    #[cfg(bad)]
    let _ = folio.pageout(owed);
}
