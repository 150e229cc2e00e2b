// SPDX-License-Identifier: GPL-2.0

//! `dirty_flush`, of lists of folios that are unlocked one by one to wait.

use crate::reclaimers::{
    check_kept,
    check_taken,
    of,
    Path,
    GONE,
    STALE,
    TAKEN_BACK, //
};
use mm_shim::{
    random::Choice,
    reclaim::{
        Mapping,
        Spec, //
    }, //
};
use shuttle::rand::{
    thread_rng,
    Rng, //
};

/// What is of a file is flushed for by itself, and with it the batch, so there is little of it in
/// front.
fn spec(index: usize) -> Spec {
    let kind = thread_rng().gen_range(0..if index < 64 { 64 } else { 4 });
    of(match kind {
        0 => Mapping::Shmem,
        1 => Mapping::File,
        _ => Mapping::Swap,
    })
}

const PATH: Path = Path {
    shrink: |list| list.shrink(),
    spec,
};

#[test]
fn dirty_flush_random() {
    check_kept(Choice::Random, PATH, &[STALE, TAKEN_BACK]);
}

#[test]
fn dirty_flush_priorities() {
    check_kept(Choice::Priorities(20), PATH, &[STALE, TAKEN_BACK]);
}

#[test]
fn dirty_flush_zaps_random() {
    check_taken(Choice::Random, PATH, &[STALE, TAKEN_BACK, GONE]);
}

#[test]
fn dirty_flush_zaps_priorities() {
    check_taken(Choice::Priorities(20), PATH, &[STALE, TAKEN_BACK, GONE]);
}
