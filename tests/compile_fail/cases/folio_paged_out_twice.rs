// SPDX-License-Identifier: GPL-2.0

//! error: E0382 folio
//! What was written out is out of hand.

use mm_batch::reclaim::{FolioList, FolioLock, NothingOwed, Revalidated};

pub fn twice<'r, L: FolioList>(
    folio: Revalidated<'r, L>,
    owed: &NothingOwed<'_, 'r>,
) -> FolioLock<'r> {
    let lock = folio.pageout(owed);
    #[cfg(bad)]
    let lock = folio.pageout(owed);
    lock
}
