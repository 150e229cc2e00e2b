// SPDX-License-Identifier: GPL-2.0

//! Batching for memory reclaim: doing to a run of pages at once what is otherwise done page by
//! page.
//!
//! One directory, two builds. In the kernel this is the built-in crate `mm/mm_batch/`; in user
//! space it is the cargo package `mm_batch`, which `mm_shim` and the models compile from the very
//! same files.
//!
//! Data flows one way: C calls an exported function in `glue`, which wraps what it was given in the
//! tokens of a transaction; the path's policy takes them from step to step; the transaction reaches
//! mm only through a port trait, which `glue` (or the shim) implements.
//!
//! | path          | policy          | transaction | port                            |
//! |---------------|-----------------|-------------|---------------------------------|
//! | `contig_free` | [`contig_free`] | [`free`]    | [`free::ContigMm`]              |
//! | `file_unmap`  | [`file_unmap`]  | [`unmap`]   | [`file_unmap::LazyfreeWalk`]    |
//! | `anon_unmap`  | [`anon_unmap`]  | [`unmap`], [`to_swap`] | [`to_swap::SwapWalk`]           |
//! | `dirty_flush` | [`dirty_flush`] | [`reclaim`]   | [`reclaim::FolioList`]          |
//! | `folio_batch` | [`folio_batch`] | [`batch`], [`folios`] | [`batch::FolioBatch`], [`folios`]  |
//!
//! [`pages`], [`pte`] and [`pte_run`] compute with page frame numbers, and with PTEs as 64-bit
//! words. They touch no memory.
//!
//! Policy and [`pages`] forbid unsafe code. In [`pte`] and [`pte_run`] it is promises only; in the
//! transactions, promises and the calls that need them; in `glue`, calls into C. A mistake of
//! policy can leave pages unfreed, leave a folio locked or mapped, or drop content that is nowhere
//! else. It cannot free or unmap a page twice.

#![cfg_attr(not(CONFIG_MM_BATCH), no_std)]

pub mod anon_unmap;
pub mod batch;
pub mod contig_free;
pub mod dirty_flush;
pub mod file_unmap;
pub mod folio_batch;
pub mod folios;
pub mod free;
pub mod pages;
pub mod pte;
pub mod pte_run;
pub mod reclaim;
pub mod to_swap;
pub mod unmap;

#[cfg(CONFIG_MM_BATCH)]
mod glue;

/// What `pr_*!` and KUnit print in front of a line.
#[cfg(CONFIG_MM_BATCH)]
const __LOG_PREFIX: &[u8] = b"mm_batch\0";
