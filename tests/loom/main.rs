// SPDX-License-Identifier: GPL-2.0

//! Protocols, every interleaving. Run by `make loom`, or `RUSTFLAGS="--cfg loom" cargo nextest run
//! --test loom`.
#![cfg(loom)]

mod contig_free;
