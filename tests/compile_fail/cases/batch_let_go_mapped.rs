// SPDX-License-Identifier: GPL-2.0

//! error: E0599 let_go, Unmapped
//! right: let_go() -> free_clean().let_go()
//! What waits to be written out is not mapped.

use mm_batch::batch::{
    FolioBatch,
    Unmapped, //
};

pub fn let_go<B: FolioBatch>(unmapped: Unmapped<B>) {
    #[cfg(bad)]
    unmapped.let_go();
}
