// SPDX-License-Identifier: GPL-2.0

//! The tokens of reclaim: what is dropped, wherever it is, is put back, unlocked.

use mm_batch::reclaim::{
    with_list,
    Collecting,
    FolioLock,
    Next,
    Unmapping,
    Waiting,
    FOLIO_BATCH_SIZE, //
};
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

fn dirty(pte: Option<u64>) -> Spec {
    Spec {
        pte,
        translated: pte.is_some(),
        ..Spec::page_of(Mapping::Swap)
    }
}

const OWING: Option<u64> = Some(WRITE | DIRTY);

/// Reclaims folios with these PTEs by `shrink`; the list must be empty then, and nobody have a lock.
fn shrink(
    ptes: &[Option<u64>],
    shrink: impl for<'r> FnOnce(Unmapping<'r, Port<'_, '_>>, FolioLock<'r>),
) -> Report {
    let specs: Vec<_> = ptes.iter().map(|&pte| dirty(pte)).collect();
    let machine = Machine::new(1, &specs);
    let mut list = List::new(&machine, 0..ptes.len());
    with_list(list.port(), shrink);
    list.finish()
}

fn assert_kept(report: &Report) {
    assert!(report.fates.values().all(|&fate| fate == Fate::Kept));
    assert!(!report
        .events
        .iter()
        .any(|event| matches!(event, Event::PagedOut(_))));
}

/// The next folio, which waits.
fn waiting<'r, 'l, 'm>(
    unmapping: &mut Unmapping<'r, Port<'l, 'm>>,
    lock: FolioLock<'r>,
    batch: &Collecting<'r, Port<'l, 'm>>,
) -> (Waiting<'r, Port<'l, 'm>>, FolioLock<'r>) {
    match unmapping.next_dirty(lock, batch) {
        Next::Dirty(folio) => folio.wait(),
        Next::Done(_) => panic!("there is one"),
    }
}

/// A batch of the next three.
fn three<'r, 'l, 'm>(
    unmapping: &mut Unmapping<'r, Port<'l, 'm>>,
    mut lock: FolioLock<'r>,
) -> (Collecting<'r, Port<'l, 'm>>, FolioLock<'r>) {
    let mut batch = Collecting::new(unmapping);
    for _ in 0..3 {
        let (folio, unlocked) = waiting(unmapping, lock, &batch);
        lock = unlocked;
        assert!(batch.push(folio).is_ok());
    }
    (batch, lock)
}

#[test]
fn one_that_owes_is_kept_if_it_is_dropped() {
    let report = shrink(&[OWING], |mut unmapping, lock| {
        let none = Collecting::new(&unmapping);
        let next = unmapping.next_dirty(lock, &none);
        assert!(matches!(next, Next::Dirty(folio) if folio.flush_owed()));
    });
    assert_kept(&report);
}

/// It is given out, as one waits; though the flush that this one waits for was done for another.
#[test]
fn one_that_owes_nothing_is_kept_if_it_is_dropped() {
    let report = shrink(&[OWING, None], |mut unmapping, lock| {
        let mut batch = Collecting::new(&unmapping);
        let (first, lock) = waiting(&mut unmapping, lock, &batch);
        assert!(batch.push(first).is_ok());
        drop(Collecting::new(&unmapping).flush(&unmapping, &lock));
        let next = unmapping.next_dirty(lock, &batch);
        assert!(matches!(next, Next::Dirty(folio) if !folio.flush_owed()));
    });
    assert_kept(&report);
}

/// The flush is owed for the one in front of it.
#[test]
fn one_behind_one_that_waits_is_given_out() {
    let report = shrink(&[OWING, None], |mut unmapping, lock| {
        let mut batch = Collecting::new(&unmapping);
        let (first, lock) = waiting(&mut unmapping, lock, &batch);
        assert!(batch.push(first).is_ok());
        let next = unmapping.next_dirty(lock, &batch);
        assert!(matches!(next, Next::Dirty(folio) if folio.flush_owed()));
    });
    assert_kept(&report);
}

#[test]
fn one_that_owes_nothing_is_not_given_out_if_none_waits() {
    let report = shrink(&[None], |mut unmapping, lock| {
        let none = Collecting::new(&unmapping);
        assert!(matches!(unmapping.next_dirty(lock, &none), Next::Done(_)));
    });
    assert_eq!(report.fates[&0], Fate::Reclaimed);
}

#[test]
fn one_that_waits_is_kept_if_it_is_dropped() {
    let report = shrink(&[OWING; 2], |mut unmapping, lock| {
        let none = Collecting::new(&unmapping);
        let (first, lock) = waiting(&mut unmapping, lock, &none);
        drop(first);
        // Unlocked, so that the next can be locked.
        let (_second, _lock) = waiting(&mut unmapping, lock, &none);
    });
    assert_kept(&report);
}

#[test]
fn a_batch_that_is_dropped_keeps_its_folios() {
    let report = shrink(&[OWING; 2], |mut unmapping, mut lock| {
        let mut batch = Collecting::new(&unmapping);
        for nr in 1..=2 {
            let (folio, unlocked) = waiting(&mut unmapping, lock, &batch);
            lock = unlocked;
            assert!(batch.push(folio).is_ok());
            assert_eq!((batch.nr_folios(), batch.nr_pages()), (nr, nr as u32));
        }
    });
    assert_kept(&report);
}

#[test]
fn what_is_not_taken_of_a_batch_is_kept() {
    let report = shrink(&[OWING; 3], |mut unmapping, lock| {
        let (mut batch, lock) = three(&mut unmapping, lock);
        let mut flushed = batch.flush(&unmapping, &lock);
        let first = flushed.next_settled().expect("three wait");
        let locked = first.lock(lock).expect("nobody else locks");
        let folio = locked.revalidate().expect("nothing has happened");
        folio.pageout(flushed.nothing_owed());
        drop(flushed);
        assert_eq!((batch.nr_folios(), batch.nr_pages()), (0, 0));
    });
    assert_eq!(report.fates[&0], Fate::Reclaimed);
    assert_eq!(
        (report.fates[&1], report.fates[&2]),
        (Fate::Kept, Fate::Kept)
    );
}

/// None but the token itself is lost.
#[test]
fn what_was_not_taken_of_a_leaked_batch_comes_with_the_next() {
    let report = shrink(&[OWING; 3], |mut unmapping, lock| {
        let (mut batch, lock) = three(&mut unmapping, lock);
        let mut leaked = batch.flush(&unmapping, &lock);
        drop(leaked.next_settled());
        mem::forget(leaked);
        let mut flushed = batch.flush(&unmapping, &lock);
        let taken: Vec<_> = std::iter::from_fn(|| flushed.next_settled()).collect();
        assert_eq!(taken.len(), 2);
    });
    assert_kept(&report);
}

/// Locked again, or looked at again, and dropped.
#[test]
fn one_that_is_locked_again_is_kept_if_it_is_dropped() {
    for looked_at in [false, true] {
        let report = shrink(&[OWING], |mut unmapping, lock| {
            let mut batch = Collecting::new(&unmapping);
            let (folio, lock) = waiting(&mut unmapping, lock, &batch);
            assert!(batch.push(folio).is_ok());
            let mut flushed = batch.flush(&unmapping, &lock);
            let folio = flushed.next_settled().expect("one waits");
            let locked = folio.lock(lock).expect("nobody else locks");
            if looked_at {
                drop(locked.revalidate().expect("nothing has happened"));
            }
        });
        assert_kept(&report);
    }
}

#[test]
fn a_full_batch_gives_the_folio_back() {
    const NR: usize = FOLIO_BATCH_SIZE + 1;
    let report = shrink(&[OWING; NR], |mut unmapping, mut lock| {
        let mut batch = Collecting::new(&unmapping);
        for i in 0..NR {
            let (folio, unlocked) = waiting(&mut unmapping, lock, &batch);
            lock = unlocked;
            assert_eq!(batch.push(folio).is_ok(), i < FOLIO_BATCH_SIZE);
        }
        assert_eq!(batch.nr_pages() as usize, FOLIO_BATCH_SIZE);
    });
    assert_kept(&report);
}
