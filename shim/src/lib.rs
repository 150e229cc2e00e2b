// SPDX-License-Identifier: GPL-2.0

//! Linux mm in user space: enough of it to run `mm_batch`'s algorithms against, and no more.
//!
//! It is a model. Each module says what of the kernel it models, by function and source file, and
//! what it leaves out. A passing test says that the algorithm is right against this model, under
//! the memory model of loom, within the bound that the test prints; it is no proof about the
//! kernel.
//!
//! | module          | models                                              | as                   |
//! |-----------------|-----------------------------------------------------|----------------------|
//! | [`page`]        | a page's reference count and what its holders wrote | trusted model        |
//! | [`lists`]       | the allocator's end: who may be freed, and how      | trusted model        |
//! | [`contig_free`] | `ContigMm`: counts, prepare, zones, sections        | trusted model        |
//! | [`pte`]         | PTEs, and what hardware does to them meanwhile      | trusted model        |
//! | [`folio`]       | a folio's counts, flags and lock, another mm        | trusted model        |
//! | [`lock`]        | locks of one bit                                    | trusted model        |
//! | [`percpu`]      | per-CPU data, preemption                            | trusted model        |
//! | [`raced`]       | plain memory, which must not be raced for           | loom's own check     |
//! | [`anon`]        | AnonExclusive, how often a folio is pinned          | trusted model        |
//! | [`gup`]         | GUP-fast, that takes a reference or a pin           | trusted model        |
//! | [`swap`]        | the swap slots of a folio, and their counts         | trusted model        |
//! | [`unmap`]       | `UnmapWalk`: a VMA's PTEs under their lock, rss     | trusted model        |
//! | [`file_unmap`]  | `LazyfreeWalk`: what the folio and the VMA are      | trusted model        |
//! | [`anon_unmap`]  | `SwapWalk`: from PTEs to swap entries               | trusted model        |
//! | [`folios`]      | `FoliosWalk` and what is beyond it: a batch of folios at a page table | trusted model |
//! | [`fault`]       | a swap fault that brings a page back                | trusted model        |
//! | [`tlb`]         | TLBs with translations that are stale, their flush  | trusted model        |
//! | [`reclaim`]     | `FolioList`: isolated folios, reclaim and all others | trusted model       |
//! | [`smp`]         | the kernel's barriers and ordered atomics           | mapping to C11       |
//! | [`sync`]        | std, loom or shuttle                                | facade               |
//! | [`check`]       | nothing: runs a model, replays it, logs a run        | tested with itself   |
//!
//! Each check of [`page`], [`lists`], [`pte`], [`folio`] and [`reclaim`], and of `model`, is made
//! blind by a patch of tests/mutants/, and a test notices. What these models leave in any order is
//! held to that by weak.rs, relaxed.rs and acquire.rs of tests/loom/shim/, and each method of a port by
//! ports.rs; [`smp`] and [`tlb`] to what they order by smp.rs and tlb.rs, and their locks are held
//! for as long as they must be by locks.rs and window.rs.
//!
//! # A model of your own
//!
//! tests/loom/example.rs is a whole one in 38 lines: copy it and go on from there. It needs no
//! make:
//!
//! ```text
//! RUSTFLAGS="--cfg loom" cargo nextest run --release --test loom example
//! ```
//!
//! Without the cfg everything runs on std, and `model` is not there. When a model fails, it prints
//! the one command that runs that very interleaving again; with `LOOM_LOG=mm_shim=trace` in front,
//! that shows each operation of the shim, by whom and with which values, and with `LOOM_LOG=trace`
//! loom's own steps as well.
//!
//! Unsafe code is where a port is implemented. To make a token of the algorithms is a promise, which
//! here the model checks: where the kernel would corrupt itself, a test fails.

#![deny(unsafe_code)]

#[forbid(unsafe_code)]
pub mod anon;
pub mod anon_unmap;
#[forbid(unsafe_code)]
pub mod check;
pub mod contig_free;
#[forbid(unsafe_code)]
pub mod fault;
#[forbid(unsafe_code)]
pub mod file_unmap;
#[forbid(unsafe_code)]
pub mod folio;
pub mod folios;
#[forbid(unsafe_code)]
pub mod gup;
#[forbid(unsafe_code)]
pub mod lists;
#[forbid(unsafe_code)]
pub mod lock;
#[forbid(unsafe_code)]
pub mod page;
#[forbid(unsafe_code)]
pub mod percpu;
#[forbid(unsafe_code)]
pub mod pte;
pub mod raced;
pub mod reclaim;
#[forbid(unsafe_code)]
pub mod smp;
#[forbid(unsafe_code)]
pub mod swap;
#[forbid(unsafe_code)]
pub mod sync;
#[forbid(unsafe_code)]
pub mod tlb;
pub mod unmap;

#[cfg(loom)]
pub use check::model;
pub use check::order;
#[cfg(shuttle)]
pub use check::random;
