// SPDX-License-Identifier: GPL-2.0

//! error: E0133 try_to_unmap_flush_dirty
//! error: activate_locked
//! error: unmap_failed_locked
//! error: keep
//! error: keep_locked
//! error: folio_trylock
//! error: pageout
//! error: folio_unlock
//! error: next_dirty
//! Who has a list unmaps, locks, flushes for, writes out and gives back nothing by it without a promise.

use mm_batch::reclaim::FolioList;

pub fn by_hand<L: FolioList>(list: &L, folio: L::Folio, mapping: L::Mapping) {
    #[cfg(bad)]
    list.try_to_unmap_flush_dirty(1, None);
    #[cfg(bad)]
    list.activate_locked(folio);
    #[cfg(bad)]
    list.unmap_failed_locked(folio);
    #[cfg(bad)]
    list.keep(folio);
    #[cfg(bad)]
    list.keep_locked(folio);
    #[cfg(bad)]
    list.folio_trylock(folio);
    #[cfg(bad)]
    list.pageout(folio, mapping);
    #[cfg(bad)]
    list.folio_unlock(folio);
    #[cfg(bad)]
    list.next_dirty(false);
}
