// SPDX-License-Identifier: GPL-2.0

//! Properties, one thread: against one-page-at-a-time oracles, on any layout.
//!
//! One that fails prints the command that runs the same cases again.
#![cfg(not(loom))]

use proptest::test_runner::{Config, RngSeed};
use std::hash::{BuildHasher, RandomState};

mod anon_unmap;
mod contig_free;
mod dirty_flush;
mod file_unmap;
mod folio_batch;
mod oracle;
mod ptes;
mod reclaim;
mod span;
mod x86;

/// So many cases, by the seed that PROPTEST_RNG_SEED= gives, or any. Failures are not kept in files: the
/// command says enough.
fn cases(nr: u32) -> Config {
    let given = Config::with_cases(nr);
    let seed = match given.rng_seed {
        RngSeed::Fixed(seed) => seed,
        RngSeed::Random => RandomState::new().hash_one(nr),
    };
    let test = std::thread::current();
    eprintln!(
        "to run these cases again: PROPTEST_RNG_SEED={seed} tests/tools/fetch/with cargo cargo nextest run {}",
        test.name().unwrap_or("")
    );
    Config {
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(seed),
        ..given
    }
}
