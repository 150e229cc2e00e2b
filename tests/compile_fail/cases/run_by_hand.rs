// SPDX-License-Identifier: GPL-2.0

//! error: E0603
//! A run of prepared pages cannot be named outside, so it can be neither made up nor forgotten.

pub use mm_batch::contig_free::free_contig_range;

#[cfg(bad)]
pub use mm_batch::contig_free::PreparedRun;
