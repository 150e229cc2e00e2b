// SPDX-License-Identifier: GPL-2.0

//! `dirty_flush`, of lists of folios that are unlocked one by one to wait.

use crate::reclaimers::{
    check_kept,
    check_taken,
    GONE,
    STALE,
    TAKEN_BACK, //
};
use mm_shim::{
    random::Choice,
    reclaim::{
        list::List,
        report::Report, //
    }, //
};

fn shrink(list: List<'_>) -> Report {
    list.shrink()
}

#[test]
fn dirty_flush_random() {
    check_kept(Choice::Random, shrink, &[STALE, TAKEN_BACK]);
}

#[test]
fn dirty_flush_priorities() {
    check_kept(Choice::Priorities(20), shrink, &[STALE, TAKEN_BACK]);
}

#[test]
fn dirty_flush_zaps_random() {
    check_taken(Choice::Random, shrink, &[STALE, TAKEN_BACK, GONE]);
}

#[test]
fn dirty_flush_zaps_priorities() {
    check_taken(Choice::Priorities(20), shrink, &[STALE, TAKEN_BACK, GONE]);
}
