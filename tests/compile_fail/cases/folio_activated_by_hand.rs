// SPDX-License-Identifier: GPL-2.0

//! error: E0133 activate_locked
//! Who has a port activates no folio by it without a promise.

use mm_batch::reclaim::FolioList;

pub fn by_hand<L: FolioList>(list: &L, folio: L::Folio) {
    #[cfg(bad)]
    list.activate_locked(folio);
}
