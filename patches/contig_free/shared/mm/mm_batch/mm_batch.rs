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
//!
//! What is left is of numbers only: page frames, and PTEs as words.
//!
//! Unsafe code is in `glue` and, as promises to ports and by them, in the transactions; the rest
//! forbids it. So a mistake of policy can make a run too long or too short for what was asked, or
//! lose pages, or what is in them, but frees and unmaps nothing twice.

#![cfg_attr(not(CONFIG_MM_BATCH), no_std)]

pub mod contig_free;
pub mod free;
pub mod pages;

#[cfg(CONFIG_MM_BATCH)]
mod glue;

/// What `pr_*!` and KUnit print in front of a line.
#[cfg(CONFIG_MM_BATCH)]
const __LOG_PREFIX: &[u8] = b"mm_batch\0";
