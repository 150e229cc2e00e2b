// SPDX-License-Identifier: GPL-2.0

//! `folio_batch`, of lists of which up to 32 folios are locked together.

use crate::reclaimers::{
    check_kept,
    check_taken,
    GONE,
    STALE,
    TAKEN_BACK, //
};
use mm_batch::folio_batch::shrink_batch;
use mm_shim::{
    random::Choice,
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
    check_kept(Choice::Random, shrink, &[]);
}

#[test]
fn folio_batch_priorities() {
    check_kept(Choice::Priorities(20), shrink, &[STALE, TAKEN_BACK]);
}

#[test]
fn folio_batch_zaps_random() {
    check_taken(Choice::Random, shrink, &[STALE, GONE]);
}

#[test]
fn folio_batch_zaps_priorities() {
    check_taken(Choice::Priorities(20), shrink, &[STALE, TAKEN_BACK, GONE]);
}
