// SPDX-License-Identifier: GPL-2.0

//! error: E0382
//! What is left with the task is not handed on as well.

use mm_batch::unmap::{FlushOwed, UnmappedRun};

pub fn handed_on(run: UnmappedRun) -> FlushOwed {
    let (_, owed) = run.into_parts();
    #[cfg(bad)]
    owed.left_with_task();
    owed
}
