// SPDX-License-Identifier: GPL-2.0

//! Where faults took most of a batch back, the rest of the list is reclaimed as by C alone.

use super::*;
use mm_shim::reclaim::report::Window;

/// Reclaims folios of so many pages, of which these are mapped again while they wait.
fn shrink(sizes: &[u32], mapped: &[usize]) -> Report {
    let specs: Vec<_> = sizes.iter().map(|&nr| dirty(nr)).collect();
    let machine = Machine::new(NR_CPUS, &specs);
    let report = List::new(&machine, 0..specs.len())
        .meanwhile(|folio, window| {
            if window == Window::Retried && mapped.contains(&folio) {
                assert!(machine.fault(folio, true));
            }
        })
        .shrink();
    assert_batches(&specs, &report, &|folio| mapped.contains(&folio));
    (0..specs.len()).for_each(|folio| machine.assert_nothing_lost(folio));
    report
}

/// What was taken back, and how many folios were given out.
fn stopped(report: &Report) -> (Option<u32>, usize) {
    let taken_back = report.events.iter().find_map(|event| match *event {
        Event::TakenBack(nr) => Some(nr),
        _ => None,
    });
    let given = |event: &&Event| matches!(event, Event::Given(..));
    (taken_back, report.events.iter().filter(given).count())
}

#[test]
fn more_than_half_of_a_batch_stops_it() {
    let list = [1; 40];
    let first = |nr: usize| (0..nr).collect::<Vec<_>>();
    // Of 31.
    assert_eq!(stopped(&shrink(&list, &first(15))), (None, 40));
    let report = shrink(&list, &first(16));
    assert_eq!(stopped(&report), (Some(16), 31));
    // One for the batch, and one for each behind it.
    assert_eq!(report.flushes, 1 + 9);
    let reclaimed = |fate: &&Fate| **fate == Fate::Reclaimed;
    assert_eq!(report.fates.values().filter(reclaimed).count(), 24);
}

/// The last batch is no other than the first.
#[test]
fn the_batch_of_an_empty_list_is_counted_too() {
    assert_eq!(stopped(&shrink(&[1; 4], &[1, 3])), (None, 4));
    assert_eq!(stopped(&shrink(&[1; 4], &[0, 1, 3])), (Some(3), 4));
    assert_eq!(stopped(&shrink(&[1], &[0])), (Some(1), 1));
}

#[test]
fn it_is_pages_that_count() {
    assert_eq!(stopped(&shrink(&[1, 1, 1, 4], &[3])), (Some(4), 4));
    assert_eq!(stopped(&shrink(&[1, 1, 1, 4], &[0, 1, 2])), (None, 4));
    assert_eq!(stopped(&shrink(&[1, 1, 2, 4], &[0, 1, 2])), (None, 4));
}

/// Each batch by itself.
#[test]
fn batches_are_not_added_up() {
    let mut list = vec![1; 31];
    list.extend([1; 31]);
    let mapped: Vec<_> = (0..15).chain(31..46).collect();
    assert_eq!(stopped(&shrink(&list, &mapped)), (None, 62));
}

/// Who was too much for a batch that was taken back waits, and has its own flush.
#[test]
fn who_waits_then_is_written_before() {
    let report = shrink(&[1, 512, 1, 1], &[0]);
    assert_eq!(stopped(&report), (Some(1), 2));
    assert_eq!(batches(&report.events), [(1, vec![0]), (512, vec![1])]);
    assert_eq!(report.fates[&1], Fate::Reclaimed);
    // And if it was taken back itself, it is more.
    assert_eq!(stopped(&shrink(&[1, 512, 1], &[0, 1])), (Some(512), 2));
    assert_eq!(stopped(&shrink(&[2, 511, 1], &[0])), (Some(2), 2));
}

/// What is pinned, or somebody has locked, was not taken back by a fault.
#[test]
fn other_refusals_do_not_count() {
    let machine = Machine::new(NR_CPUS, &vec![dirty(1); 5]);
    let report = List::new(&machine, 0..5)
        .meanwhile(|index, window| {
            let folio = machine.folio(index);
            if window == Window::Unlocked {
                match index {
                    0 => assert!(folio.trylock()),
                    1 | 4 => assert!(folio.core.try_get()),
                    2 => folio.set(Flag::Poisoned),
                    _ => (),
                }
            }
        })
        .shrink();
    assert_eq!(stopped(&report), (None, 5));
    assert_eq!(report.fates[&3], Fate::Reclaimed);
}

/// The list keeps in mind whose writeback is to be waited for; C waits for that first.
#[test]
fn who_is_waited_for_is_not_forgotten() {
    let waited_for = Spec {
        flags: vec![Flag::WaitedFor],
        ..unmapped(1)
    };
    let machine = Machine::new(NR_CPUS, &[dirty(1), waited_for, dirty(1)]);
    let report = List::new(&machine, 0..3)
        .meanwhile(|folio, window| {
            if (folio, window) == (0, Window::Unlocked) {
                assert!(machine.fault(0, true));
            }
        })
        .shrink();
    let events = [
        vec![Event::Given(0, true), Event::Unlocked(0)],
        vec![Event::Exhausted, Event::Flushed(1), Event::Retried(0)],
        vec![Event::TakenBack(1)],
        written_by_itself(1, false),
        written_by_itself(2, false),
    ];
    assert_eq!(report.events, events.concat());
    assert_eq!(report.stat.nr_scanned, 4);
}
