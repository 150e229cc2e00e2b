// SPDX-License-Identifier: GPL-2.0

//! Protocols, every interleaving. Run by `make loom`, or `RUSTFLAGS="--cfg loom" cargo nextest run
//! --test loom`.

#[cfg(loom)]
mod acquire;
#[cfg(loom)]
mod anon_unmap;
#[cfg(loom)]
mod contig_free;
#[cfg(loom)]
mod dirty_flush;
#[cfg(loom)]
mod example;
#[cfg(loom)]
mod file_unmap;
#[cfg(loom)]
mod freeze;
#[cfg(loom)]
mod gup;
#[cfg(loom)]
mod ksm;
#[cfg(loom)]
mod litmus;
#[cfg(loom)]
mod locks;
#[cfg(loom)]
mod other_mm;
#[cfg(loom)]
mod ports;
#[cfg(loom)]
mod relaxed;
#[cfg(loom)]
mod smp;
#[cfg(loom)]
mod tlb;
#[cfg(loom)]
mod unlocked;
#[cfg(loom)]
mod weak;
#[cfg(loom)]
mod window;

/// So that a run without the cfg says what it did not do.
#[cfg(not(loom))]
#[test]
#[ignore = "the models need RUSTFLAGS=\"--cfg loom\""]
fn models() {}
