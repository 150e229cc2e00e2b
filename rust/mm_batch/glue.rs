// SPDX-License-Identifier: GPL-2.0

//! The kernel's side: what C calls, and the ports in terms of what C offers.
//!
//! An exported function makes a token of what C passed, runs the path's policy with it, and traces
//! what came of it; a port method is a few calls into C, and no loop. Prototypes are in
//! include/linux/mm_batch.h, and `#[export]` holds the functions to them.

mod anon_unmap;
mod contig_free;
#[cfg(CONFIG_MM_BATCH_KUNIT_TEST)]
mod contig_free_kunit;
mod dirty_flush;
mod file_unmap;
#[cfg(CONFIG_MM_BATCH_KUNIT_TEST)]
mod file_unmap_kunit;
mod folio_batch;
mod rmap_walk;
mod trace;
