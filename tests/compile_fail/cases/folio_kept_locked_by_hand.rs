// SPDX-License-Identifier: GPL-2.0

//! error: E0133 keep_locked
//! Who has a port puts no locked folio back by it without a promise.

use mm_batch::reclaim::FolioList;

pub fn by_hand<L: FolioList>(list: &L, folio: L::Folio) {
    #[cfg(bad)]
    list.keep_locked(folio);
}
