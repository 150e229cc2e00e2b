// SPDX-License-Identifier: GPL-2.0

//! error: E0599 pageout, Waiting
//! right: folio: Waiting -> folio: Revalidated
//! A folio that is not locked is not written out.

use mm_batch::reclaim::{FolioList, NothingOwed, Revalidated, Waiting};

pub fn early<'r, L: FolioList>(folio: Waiting<'r, L>, owed: &NothingOwed<'_, 'r>) {
    #[cfg(bad)]
    let _ = folio.pageout(owed);
}
