// SPDX-License-Identifier: GPL-2.0

//! error: E0599 unmap, Collected
//! right: unmap() -> check_references()
//! Folios are not unmapped before it is asked whether they were used.

use mm_batch::batch::{
    Collected,
    FolioBatch, //
};

pub fn unmap<B: FolioBatch>(batch: B) {
    let collected = Collected::new(batch);
    #[cfg(bad)]
    let _ = collected.unmap();
}
