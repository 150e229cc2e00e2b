// SPDX-License-Identifier: GPL-2.0

//! Properties, one thread: against one-page-at-a-time oracles, on any layout.
#![cfg(not(loom))]

mod anon_unmap;
mod contig_free;
mod dirty_flush;
mod file_unmap;
mod oracle;
mod ptes;
mod reclaim;
mod span;
mod unmap;
mod x86;
