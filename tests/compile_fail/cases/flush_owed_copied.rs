// SPDX-License-Identifier: GPL-2.0

//! error: E0382 owed
//! What is left with the task is not handed on as well.

use mm_batch::unmap::{FlushOwed, UnmappedRun};

pub fn handed_on(run: UnmappedRun) {
    let (_, owed) = run.into_parts();
    FlushOwed::left_with_task(owed);
    #[cfg(bad)]
    FlushOwed::left_with_task(owed);
}
