// SPDX-License-Identifier: GPL-2.0

//! error: E0423 private
//! Nobody says that a flush is over but who has flushed: no folio is taken off a list, or locked,
//! without.

use mm_batch::reclaim::{
    AfterFlush,
    FolioList, //
};

pub fn take<L: FolioList>(list: &L, flush: &AfterFlush) -> Option<L::Folio> {
    list.next_waiting(flush)
}

#[cfg(bad)]
pub fn unflushed<L: FolioList>(list: &L) -> Option<L::Folio> {
    take(list, &AfterFlush(()))
}
