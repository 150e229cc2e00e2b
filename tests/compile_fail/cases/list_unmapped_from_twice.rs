// SPDX-License-Identifier: GPL-2.0

//! error: E0599
//! There is one right to unmap.

use mm_batch::reclaim::{FolioList, Unmapping};

pub fn two<L: FolioList + Clone>(unmapping: Unmapping<'_, L>) -> Unmapping<'_, L> {
    #[cfg(bad)]
    let _second = unmapping.clone();
    unmapping
}
