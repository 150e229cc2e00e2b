// SPDX-License-Identifier: GPL-2.0

//! error: E0451 list, flush, Flushed
//! A list is behind its flush if it was flushed for.

use mm_batch::reclaim::{
    AfterFlush,
    Flushed,
    FolioList, //
};

pub fn flush<L: FolioList>(list: L) -> Flushed<L> {
    Flushed::flush(list)
}

#[cfg(bad)]
pub fn forge<L: FolioList>(list: L, flush: AfterFlush) -> Flushed<L> {
    Flushed { list, flush }
}
