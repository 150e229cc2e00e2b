// SPDX-License-Identifier: GPL-2.0

//! error: E0277 FolioList
//! right: flush(batch) -> flush(let_go(batch))
//! Nothing waits while folios of a batch are locked: what may wait is of the list that comes of
//! letting go of them.

use mm_batch::{
    batch::{
        Collected,
        FolioBatch, //
    },
    reclaim::Flushed,
};

pub fn let_go<B: FolioBatch>(batch: B) -> B::List {
    let placed = Collected::new(batch).check_references().alloc_swap();
    placed.unmap().flush_dirty().let_go()
}

pub fn wait<B: FolioBatch>(batch: B) {
    #[cfg(bad)]
    let _flushed = Flushed::flush(batch);
}
