// SPDX-License-Identifier: GPL-2.0

//! error: E0061
//! Nor one that was looked at again.

use mm_batch::reclaim::{FolioList, FolioLock, NothingOwed, Revalidated};

pub fn early<'r, L: FolioList>(
    folio: Revalidated<'r, L>,
    owed: &NothingOwed<'_, 'r>,
) -> FolioLock<'r> {
    #[cfg(bad)]
    return folio.pageout();
    folio.pageout(owed)
}
