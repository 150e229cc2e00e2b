// SPDX-License-Identifier: GPL-2.0

//! error: E0599
//! Nor is it copied.

use mm_batch::reclaim::FolioLock;

pub fn two(lock: FolioLock<'_>) -> FolioLock<'_> {
    #[cfg(bad)]
    let _second = lock.clone();
    lock
}
