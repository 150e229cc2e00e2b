// SPDX-License-Identifier: GPL-2.0

//! error: E0277
//! The right to lock is the task's own.

use mm_batch::reclaim::FolioLock;
use std::thread;

pub fn handed_over(lock: FolioLock<'_>) {
    #[cfg(bad)]
    thread::scope(|scope| drop(scope.spawn(move || drop(lock))));
    #[cfg(not(bad))]
    thread::scope(|scope| drop((scope.spawn(|| ()), lock)));
}
