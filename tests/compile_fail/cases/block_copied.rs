// SPDX-License-Identifier: GPL-2.0

//! error: E0599
//! There is one token per block.

use mm_batch::free::{ContigMm, FreeBlock};

pub fn free(mm: &impl ContigMm, block: FreeBlock) {
    #[cfg(bad)]
    mm.free_prepared(block.clone());
    mm.free_prepared(block);
}
