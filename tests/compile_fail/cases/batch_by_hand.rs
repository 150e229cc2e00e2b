// SPDX-License-Identifier: GPL-2.0

//! error: E0133 let_go
//! error: put_back
//! By a batch alone, nothing is unlocked without a promise.

use mm_batch::batch::FolioBatch;

pub fn by_hand<B: FolioBatch>(batch: &B) {
    #[cfg(bad)]
    batch.let_go();
    #[cfg(bad)]
    batch.put_back();
}
