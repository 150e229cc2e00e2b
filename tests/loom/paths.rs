// SPDX-License-Identifier: GPL-2.0

//! The paths, against whoever else has to do with the same pages.

mod anon_unmap;
mod contig_free;
pub(crate) mod dirty_flush;
pub(crate) mod file_unmap;
mod folio_batch;
mod freeze;
mod ksm;
mod lazyfree;
mod other_mm;
mod unlocked;
