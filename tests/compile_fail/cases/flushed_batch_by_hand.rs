// SPDX-License-Identifier: GPL-2.0

//! error: E0423 private
//! A batch is behind its flush if it was flushed for.

use mm_batch::batch::{
    FlushedFolios,
    FolioBatch,
    Unmapped, //
};

pub fn flush<B: FolioBatch>(unmapped: Unmapped<B>) -> FlushedFolios<B> {
    unmapped.flush_dirty()
}

#[cfg(bad)]
pub fn forge<B: FolioBatch>(batch: B) -> FlushedFolios<B> {
    FlushedFolios(batch)
}
