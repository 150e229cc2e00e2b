// SPDX-License-Identifier: GPL-2.0

//! Many folios and many threads, at random: more than loom can explore. Run by `make shuttle`, or
//! `RUSTFLAGS="--cfg shuttle" cargo nextest run --release --test shuttle`.
//!
//! shuttle switches threads at each access, but all that one wrote is seen by all at once: what
//! depends on an order of memory is for tests/loom.

#[cfg(shuttle)]
mod dirty_flush;
#[cfg(shuttle)]
mod folio_batch;
#[cfg(shuttle)]
mod reclaimers;

/// So that a run without the cfg says what it did not do.
#[cfg(not(shuttle))]
#[test]
#[ignore = "these need RUSTFLAGS=\"--cfg shuttle\""]
fn at_random() {}
