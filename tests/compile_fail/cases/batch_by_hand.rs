// SPDX-License-Identifier: GPL-2.0

//! error: E0133 unmap
//! error: free_clean
//! error: let_go
//! By a batch alone, nothing is unmapped, freed or unlocked without a promise.

use mm_batch::batch::FolioBatch;

pub fn by_hand<B: FolioBatch>(batch: &B) {
    #[cfg(bad)]
    batch.unmap();
    #[cfg(bad)]
    batch.free_clean();
    #[cfg(bad)]
    batch.let_go();
}
