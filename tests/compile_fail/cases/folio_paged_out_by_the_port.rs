// SPDX-License-Identifier: GPL-2.0

//! error: E0133 pageout
//! Who has a port writes no folio out by it without a promise.

use mm_batch::reclaim::FolioList;

pub fn by_hand<L: FolioList>(list: &L, folio: L::Folio, mapping: L::Mapping) {
    #[cfg(bad)]
    list.pageout(folio, mapping);
}
