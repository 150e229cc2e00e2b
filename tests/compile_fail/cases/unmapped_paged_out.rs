// SPDX-License-Identifier: GPL-2.0

//! error: E0599
//! A folio that was just unmapped is not written out: a flush may be owed.

use mm_batch::reclaim::{FolioList, FolioLock, NothingOwed, Unmapped};

pub fn early<'r, L: FolioList>(
    folio: Unmapped<'r, L>,
    owed: &NothingOwed<'_, 'r>,
) -> FolioLock<'r> {
    let _ = owed;
    #[cfg(bad)]
    return folio.pageout(owed);
    folio.wait().1
}
