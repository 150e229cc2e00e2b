// SPDX-License-Identifier: GPL-2.0

//! error: E0599
//! A folio that was unlocked is looked at again before it is written out.

use mm_batch::reclaim::{FolioList, FolioLock, Locked, NothingOwed};

pub fn blind<'r, L: FolioList>(folio: Locked<'r, L>, owed: &NothingOwed<'_, 'r>) -> FolioLock<'r> {
    #[cfg(bad)]
    return folio.pageout(owed);
    match folio.revalidate() {
        Ok(folio) => folio.pageout(owed),
        Err(put_back) => put_back.lock,
    }
}
