// SPDX-License-Identifier: GPL-2.0

//! error: E0133 keep
//! Who has a port puts no folio back by it without a promise.

use mm_batch::reclaim::FolioList;

pub fn by_hand<L: FolioList>(list: &L, folio: L::Folio) {
    #[cfg(bad)]
    list.keep(folio);
}
