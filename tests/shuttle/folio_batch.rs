// SPDX-License-Identifier: GPL-2.0

//! `folio_batch`, of lists of which up to 32 folios are locked together.

use crate::reclaimers::{
    check_kept,
    check_taken,
    of,
    Path,
    GONE,
    SHARED,
    STALE,
    TAKEN_BACK, //
};
use mm_batch::folio_batch::shrink_batch;
use mm_shim::{
    pte::DIRTY,
    random::Choice,
    reclaim::{
        Flag,
        Mapping,
        Spec, //
    }, //
};
use shuttle::rand::{
    thread_rng,
    Rng, //
};

/// Of all kinds, everywhere. Some of files have buffers; some are clean, used, or without slots.
fn spec(_: usize) -> Spec {
    let mut rng = thread_rng();
    let mapping = match rng.gen_range(0..8) {
        0..=1 => Mapping::Shmem,
        2..=3 => Mapping::File,
        _ => Mapping::Swap,
    };
    let flag = match rng.gen_range(0..64) {
        0..=15 if mapping == Mapping::File => Some(Flag::Private),
        0 => Some(Flag::Referenced),
        1 => Some(Flag::Writeback),
        2 => Some(Flag::NoSlots),
        _ => None,
    };
    let spec = of(mapping);
    let clean = spec.pte.is_some() && rng.gen_ratio(1, 3);
    Spec {
        pte: spec
            .pte
            .map(|bits| if clean { bits & !DIRTY } else { bits }),
        dirty: spec.dirty && !clean,
        flags: flag.into_iter().collect(),
        ..spec
    }
}

const PATH: Path = Path {
    shrink: |list| list.shrink_together(|batch| shrink_batch(batch)),
    spec,
};

#[test]
fn folio_batch_random() {
    check_kept(Choice::Random, PATH, &[SHARED]);
}

#[test]
fn folio_batch_priorities() {
    check_kept(Choice::Priorities(20), PATH, &[SHARED, STALE, TAKEN_BACK]);
}

#[test]
fn folio_batch_zaps_random() {
    check_taken(Choice::Random, PATH, &[SHARED, STALE, GONE]);
}

#[test]
fn folio_batch_zaps_priorities() {
    check_taken(Choice::Priorities(20), PATH, &[SHARED, STALE, GONE]);
}
