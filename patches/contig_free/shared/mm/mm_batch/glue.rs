// SPDX-License-Identifier: GPL-2.0

//! The kernel's side: what C calls, and the ports in terms of what C offers.
//!
//! The only unsafe code of the crate. An exported function turns what C passed into the tokens of
//! an algorithm module and runs it; a port method makes one call into C. Prototypes are in
//! include/linux/mm_batch.h, and `#[export]` holds the functions to them.

mod contig_free;
#[cfg(CONFIG_MM_BATCH_KUNIT_TEST)]
mod contig_free_kunit;
mod trace;
