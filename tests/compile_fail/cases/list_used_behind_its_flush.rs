// SPDX-License-Identifier: GPL-2.0

//! error: E0382 list
//! Behind the flush, nobody but who has flushed has the list.

use mm_batch::reclaim::{
    Flushed,
    FolioList, //
};

pub fn late<L: FolioList>(list: L, folio: L::Folio) {
    let mut flushed = Flushed::flush(list);
    #[cfg(bad)]
    let _ = list.folio_mapped(&folio);
    drop(folio);
    let _ = flushed.next_locked();
}
