// SPDX-License-Identifier: GPL-2.0

//! The tokens of reclaim: what is dropped, wherever it is, is put back, unlocked.

use mm_batch::reclaim::Flushed;
use mm_shim::{
    pte::{
        DIRTY,
        WRITE, //
    },
    reclaim::{
        list::{
            List,
            Port, //
        },
        report::{
            Event,
            Fate,
            Report, //
        },
        Machine,
        Mapping,
        Spec, //
    }, //
};
use std::mem;

/// Reclaims three folios, for each of which a flush is owed, by `shrink`. None is left, or locked.
fn shrink(shrink: fn(Port<'_, '_>)) -> Report {
    let dirty = Spec {
        pte: Some(WRITE | DIRTY),
        translated: true,
        ..Spec::page_of(Mapping::Swap)
    };
    let machine = Machine::new(1, &[dirty.clone(), dirty.clone(), dirty]);
    List::new(&machine, 0..3)
        .by(|port, _| {
            shrink(port);
            0
        })
        .shrink()
}

fn assert_kept(report: &Report) {
    assert!(report.fates.values().all(|&fate| fate == Fate::Kept));
    let paged_out = |event: &Event| matches!(event, Event::PagedOut(_));
    assert!(!report.events.iter().any(paged_out));
}

#[test]
fn a_list_that_is_dropped_behind_its_flush_keeps_its_folios() {
    assert_kept(&shrink(|list| drop(Flushed::flush(list))));
}

#[test]
fn what_is_not_taken_is_kept() {
    let report = shrink(|list| {
        let mut flushed = Flushed::flush(list);
        let locked = flushed.next_locked().expect("three wait");
        locked.revalidate().expect("nothing has happened").pageout();
    });
    let fates = [Fate::Reclaimed, Fate::Kept, Fate::Kept];
    assert!(report.fates.values().eq(&fates));
}

/// Locked again, or looked at again, and dropped: the next can be locked then.
#[test]
fn one_that_is_locked_again_is_kept_if_it_is_dropped() {
    assert_kept(&shrink(|list| {
        let mut flushed = Flushed::flush(list);
        for looked_at in [false, true, false] {
            let locked = flushed.next_locked().expect("three wait");
            if looked_at {
                drop(locked.revalidate().expect("nothing has happened"));
            }
        }
        assert!(flushed.next_locked().is_none());
    }));
}

/// C finds it on its list then, puts it back, and warns.
#[test]
#[should_panic(expected = "a folio is left waiting")]
fn what_a_leaked_list_leaves_is_noticed() {
    shrink(|list| mem::forget(Flushed::flush(list)));
}

#[test]
#[should_panic(expected = "a folio is left waiting")]
fn a_list_that_is_not_looked_at_is_noticed() {
    shrink(|_list| ());
}

/// The price of a plain borrow: another one can be locked then.
#[test]
#[should_panic(expected = "two folios are locked")]
fn a_locked_folio_that_is_leaked_stays_locked() {
    shrink(|list| {
        let mut flushed = Flushed::flush(list);
        mem::forget(flushed.next_locked());
        let _second = flushed.next_locked();
    });
}
