// SPDX-License-Identifier: GPL-2.0

//! error: E0277 sent, threads
//! right: sent::<FolioLock> -> sent::<RunLength>
//! The right to lock is the task's own.

use mm_batch::{pte_run::RunLength, reclaim::FolioLock};

pub fn sent<T: Send>() {}

#[cfg(bad)]
pub fn handed_over() {
    sent::<FolioLock>();
}
