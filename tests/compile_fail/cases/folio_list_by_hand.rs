// SPDX-License-Identifier: GPL-2.0

//! error: E0133 activate_locked
//! error: unmap_failed_locked
//! error: keep
//! error: keep_locked
//! error: pageout
//! By a list alone, a folio is neither written out nor given back without a promise.

use mm_batch::reclaim::FolioList;

pub fn by_hand<L: FolioList>(list: &L, folios: [L::Folio; 5], mapping: L::Mapping) {
    let [a, b, c, d, e] = folios;
    #[cfg(bad)]
    list.activate_locked(a);
    #[cfg(bad)]
    list.unmap_failed_locked(b);
    #[cfg(bad)]
    list.keep(c);
    #[cfg(bad)]
    list.keep_locked(d);
    #[cfg(bad)]
    list.pageout(e, mapping);
}
