// SPDX-License-Identifier: GPL-2.0

//! `folio_batch`, of lists of which up to 32 folios are locked together.

use crate::reclaimers::{
    nothing_is_freed_twice,
    nothing_is_lost,
    ALWAYS,
    GONE,
    STALE,
    TAKEN_BACK, //
};
use mm_batch::folio_batch::shrink_batch;
use mm_shim::{
    random::{
        check,
        Choice, //
    },
    reclaim::{
        list::List,
        report::Report, //
    }, //
};

fn shrink(list: List<'_>) -> Report {
    list.shrink_together(|batch, nr_pages| shrink_batch(batch, nr_pages))
}

#[test]
fn folio_batch_random() {
    let seen = ALWAYS;
    check(Choice::Random, 500, &seen, |seen| {
        nothing_is_lost(shrink, seen)
    });
}

#[test]
fn folio_batch_priorities() {
    let seen = [&ALWAYS[..], &[STALE, TAKEN_BACK]].concat();
    check(Choice::Priorities(20), 500, &seen, |seen| {
        nothing_is_lost(shrink, seen)
    });
}

#[test]
fn folio_batch_zaps_random() {
    let seen = [&ALWAYS[..], &[STALE, GONE]].concat();
    check(Choice::Random, 500, &seen, |seen| {
        nothing_is_freed_twice(shrink, seen)
    });
}

#[test]
fn folio_batch_zaps_priorities() {
    let seen = [&ALWAYS[..], &[STALE, TAKEN_BACK, GONE]].concat();
    check(Choice::Priorities(20), 500, &seen, |seen| {
        nothing_is_freed_twice(shrink, seen)
    });
}
