// SPDX-License-Identifier: GPL-2.0

//! error: E0599 unmap, Checked
//! right: unmap() -> alloc_swap()
//! Folios are not unmapped before they have a place to go to.

use mm_batch::batch::{
    Checked,
    FolioBatch, //
};

pub fn unmap<B: FolioBatch>(checked: Checked<B>) {
    #[cfg(bad)]
    let _ = checked.unmap();
}
