// SPDX-License-Identifier: GPL-2.0

//! error: E0382 folio
//! A folio that has ended, and may be freed, is not asked for anything.

use mm_batch::reclaim::FolioList;

pub unsafe fn ask<L: FolioList>(list: &L, folio: L::Folio) {
    // SAFETY: This is not run.
    unsafe { list.keep(folio) };
    #[cfg(bad)]
    list.folio_mapped(&folio);
}
