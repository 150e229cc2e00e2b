// SPDX-License-Identifier: GPL-2.0

//! error: E0382 block
//! Handing a block to the allocator consumes it.

use mm_batch::free::{ContigMm, FreeBlock};

pub fn free(mm: &impl ContigMm, block: FreeBlock) {
    mm.free_prepared(block);
    #[cfg(bad)]
    mm.free_prepared(block);
}
