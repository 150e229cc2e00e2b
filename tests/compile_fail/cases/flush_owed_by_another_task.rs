// SPDX-License-Identifier: GPL-2.0

//! error: E0277 sent, threads
//! right: sent::<FlushOwed> -> sent::<RunLength>
//! What a task owes is noted with that task, and not handed to another.

use mm_batch::{pte_run::RunLength, unmap::FlushOwed};

pub fn sent<T: Send>() {}

#[cfg(bad)]
pub fn handed_over() {
    sent::<FlushOwed>();
}
