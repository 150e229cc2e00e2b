// SPDX-License-Identifier: GPL-2.0

//! error: E0505 flushed
//! right: drop(flushed) -> drop(())
//! The rest of a list is not given back while a folio of it is locked.

use mm_batch::reclaim::{
    Flushed,
    FolioList, //
};

pub fn early<L: FolioList>(mut flushed: Flushed<L>) {
    if let Some(locked) = flushed.next_locked() {
        #[cfg(bad)]
        drop(flushed);
        let _ = locked.revalidate();
    }
}
