// SPDX-License-Identifier: GPL-2.0

//! Protocols, every interleaving. Run by `make loom`, or `RUSTFLAGS="--cfg loom" cargo nextest run
//! --test loom`.

#[cfg(loom)]
mod example;
#[cfg(loom)]
mod litmus;
#[cfg(loom)]
mod paths;
#[cfg(loom)]
mod shim;

/// So that a run without the cfg says what it did not do.
#[cfg(not(loom))]
#[test]
#[ignore = "the models need RUSTFLAGS=\"--cfg loom\""]
fn models() {}
