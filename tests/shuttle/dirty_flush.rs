// SPDX-License-Identifier: GPL-2.0

//! `dirty_flush`, of lists of folios that are unlocked one by one to wait.

use crate::reclaimers::{
    nothing_is_freed_twice,
    nothing_is_lost,
    ALWAYS,
    GONE,
    STALE,
    TAKEN_BACK, //
};
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
    list.shrink()
}

#[test]
fn dirty_flush_random() {
    let seen = [&ALWAYS[..], &[STALE, TAKEN_BACK]].concat();
    check(Choice::Random, 500, &seen, |seen| {
        nothing_is_lost(shrink, seen)
    });
}

#[test]
fn dirty_flush_priorities() {
    let seen = [&ALWAYS[..], &[STALE, TAKEN_BACK]].concat();
    check(Choice::Priorities(20), 500, &seen, |seen| {
        nothing_is_lost(shrink, seen)
    });
}

#[test]
fn dirty_flush_zaps_random() {
    let seen = [&ALWAYS[..], &[STALE, TAKEN_BACK, GONE]].concat();
    check(Choice::Random, 500, &seen, |seen| {
        nothing_is_freed_twice(shrink, seen)
    });
}

#[test]
fn dirty_flush_zaps_priorities() {
    let seen = [&ALWAYS[..], &[STALE, TAKEN_BACK, GONE]].concat();
    check(Choice::Priorities(20), 500, &seen, |seen| {
        nothing_is_freed_twice(shrink, seen)
    });
}
