// SPDX-License-Identifier: GPL-2.0

//! The tracepoint of a run, `mm_batch:mm_batch_run` (C: include/trace/events/mm_batch.h).

use kernel::{
    bindings,
    tracepoint::declare_trace, //
};

declare_trace! {
    /// # Safety
    ///
    /// None is needed: the arguments are values.
    unsafe fn mm_batch_run(
        path: bindings::mm_batch_run_path,
        nr_pages: usize,
        outcome: bindings::mm_batch_run_outcome,
    );
}

/// Traces a run of `nr_pages` pages; a nop while nobody looks.
#[inline]
pub(super) fn run(
    path: bindings::mm_batch_run_path,
    nr_pages: usize,
    outcome: bindings::mm_batch_run_outcome,
) {
    // SAFETY: The arguments are values.
    unsafe { mm_batch_run(path, nr_pages, outcome) }
}
