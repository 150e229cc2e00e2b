// SPDX-License-Identifier: GPL-2.0

//! error: E0499 flushed
//! While a folio is locked, no other is.

use mm_batch::reclaim::{
    Flushed,
    FolioList, //
};

pub fn both<L: FolioList>(mut flushed: Flushed<L>) {
    let first = flushed.next_locked();
    #[cfg(bad)]
    let _second = flushed.next_locked();
    drop(first);
}
