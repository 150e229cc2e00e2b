// SPDX-License-Identifier: GPL-2.0

//! error: E0133 unmap_failed_locked
//! Who has a port counts no folio as mapped by it without a promise.

use mm_batch::reclaim::FolioList;

pub fn by_hand<L: FolioList>(list: &L, folio: L::Folio) {
    #[cfg(bad)]
    list.unmap_failed_locked(folio);
}
