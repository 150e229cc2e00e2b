// SPDX-License-Identifier: GPL-2.0

//! error: E0277
//! What a task owes is noted with that task, and not handed to another.

use mm_batch::unmap::FlushOwed;
use std::thread;

pub fn handed_over(owed: FlushOwed) {
    #[cfg(bad)]
    let _ = thread::spawn(move || owed.left_with_task());
    #[cfg(not(bad))]
    let _ = (thread::spawn(|| ()), owed.left_with_task());
}
