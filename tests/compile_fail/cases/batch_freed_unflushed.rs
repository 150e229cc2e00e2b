// SPDX-License-Identifier: GPL-2.0

//! error: E0599 free_clean, Unmapped
//! right: free_clean() -> flush_dirty()
//! Nothing is freed while a CPU may write to it.

use mm_batch::batch::{
    FolioBatch,
    Unmapped, //
};

pub fn free<B: FolioBatch>(unmapped: Unmapped<B>) {
    #[cfg(bad)]
    let _ = unmapped.free_clean();
}
