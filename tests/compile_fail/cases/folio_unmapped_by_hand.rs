// SPDX-License-Identifier: GPL-2.0

//! error: E0133 next_dirty
//! Who has a port unmaps no folio by it without a promise.

use mm_batch::reclaim::FolioList;

pub fn by_hand<L: FolioList>(list: &L) {
    #[cfg(bad)]
    let _ = list.next_dirty(false);
}
