// SPDX-License-Identifier: GPL-2.0

//! error: E0451 brand, FolioLock
//! There is one right to lock, and it comes with the list.

use mm_batch::reclaim::FolioLock;

pub fn forge<'r>(one: FolioLock<'r>) -> FolioLock<'r> {
    #[cfg(bad)]
    drop(FolioLock {
        brand: std::marker::PhantomData,
    });
    one
}
