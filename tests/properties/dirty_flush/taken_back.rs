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

/// What was taken back, and how many folios have waited.
fn stopped(report: &Report) -> (Option<u32>, usize) {
    let taken_back = report.events.iter().find_map(|event| match *event {
        Event::TakenBack(nr) => Some(nr),
        _ => None,
    });
    let waits = |event: &&Event| matches!(event, Event::Waits(_));
    (taken_back, report.events.iter().filter(waits).count())
}

#[test]
fn more_than_half_of_a_batch_stops_it() {
    let list = [1; 40];
    let first = |nr: usize| (0..nr).collect::<Vec<_>>();
    // Of 32.
    assert_eq!(stopped(&shrink(&list, &first(16))), (None, 40));
    let report = shrink(&list, &first(17));
    assert_eq!(stopped(&report), (Some(17), 32));
    // One for the batch, and one for each behind it.
    assert_eq!(report.flushes, 1 + 8);
    let reclaimed = |fate: &&Fate| **fate == Fate::Reclaimed;
    assert_eq!(report.fates.values().filter(reclaimed).count(), 23);
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
    let mapped: Vec<_> = (0..16).chain(32..48).collect();
    assert_eq!(stopped(&shrink(&[1; 64], &mapped)), (None, 64));
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

/// Writeback is waited for behind a batch that was taken back, too.
#[test]
fn what_is_waited_for_is_not_forgotten() {
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
        vec![Event::Waits(0), Event::Flushed(1), Event::Retried(0)],
        vec![Event::TakenBack(1)],
        written_by_itself(1, false),
        written_by_itself(2, false),
    ];
    assert_eq!(report.events, events.concat());
    assert_eq!(report.stat.nr_scanned, 4);
}
