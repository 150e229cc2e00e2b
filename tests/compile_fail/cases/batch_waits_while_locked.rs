// SPDX-License-Identifier: GPL-2.0

//! error: E0277 FolioList
//! right: flush(batch) -> flush(list)
//! Nothing waits while folios of a batch are locked: what may wait is of the list of those that were
//! let go.

use mm_batch::{
    batch::FolioBatch,
    reclaim::{
        Flushed,
        FolioList, //
    }, //
};

pub fn wait<B: FolioBatch, L: FolioList>(batch: B, list: L) {
    let _ = (&batch, &list);
    #[cfg(bad)]
    let _flushed = Flushed::flush(batch);
}
