// SPDX-License-Identifier: GPL-2.0

//! error: E0133 try_to_unmap_flush_dirty
//! Who has a port does not flush by it, with a folio locked perhaps.

use mm_batch::reclaim::FolioList;

pub fn by_hand<L: FolioList>(list: &L) {
    #[cfg(bad)]
    list.try_to_unmap_flush_dirty(1, None);
}
