// SPDX-License-Identifier: GPL-2.0

//! error: E0599 let_go, Unmapped
//! right: let_go() -> flush_dirty()
//! No folio is unlocked while a flush may be owed for it.

use mm_batch::batch::{
    FolioBatch,
    Unmapped, //
};

pub fn let_go<B: FolioBatch>(unmapped: Unmapped<B>) {
    #[cfg(bad)]
    let _ = unmapped.let_go();
}
