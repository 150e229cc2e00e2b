// SPDX-License-Identifier: GPL-2.0

//! The same from the locks to the write: each folio ends as by itself, and is counted so.

use mm_batch::{
    batch::Collected,
    folio_batch::shrink_batch, //
};
use mm_shim::{
    pte::{
        DIRTY,
        WRITE,
        YOUNG, //
    },
    reclaim::{
        batch::Batch,
        list::List,
        report::{
            Event,
            Fate,
            Report,
            Stat,
            Window, //
        },
        Flag,
        Machine,
        Mapping,
        Spec,
        Write, //
    }, //
};
use proptest::prelude::*;
use std::mem;

const NR_CPUS: usize = 2;

fn spec() -> impl Strategy<Value = Spec> {
    let nr = prop_oneof![8 => Just(1u32), 2 => Just(4), 2 => Just(16), 1 => Just(512)];
    let mapping = prop_oneof![
        4 => Just(Mapping::Swap),
        2 => Just(Mapping::Shmem),
        3 => Just(Mapping::File)
    ];
    let pte = prop::sample::select(vec![
        Some(WRITE | DIRTY | YOUNG),
        Some(WRITE | DIRTY),
        Some(WRITE),
        Some(YOUNG),
        None,
    ]);
    let flag = prop_oneof![
        20 => Just(None),
        9 => prop::sample::select(vec![
            Flag::Writeback,
            Flag::Mlocked,
            Flag::Unevictable,
            Flag::Poisoned,
            Flag::Referenced,
            Flag::Stuck,
            Flag::WaitedFor,
            Flag::NoSlots,
            Flag::Private,
        ])
        .prop_map(Some)
    ];
    let write = prop_oneof![
        6 => Just(Write::Done),
        2 => Just(Write::Begun),
        1 => Just(Write::Refused),
        1 => Just(Write::Failed),
        1 => Just(Write::Split)
    ];
    let locked = prop::bool::weighted(0.05);
    (
        nr,
        mapping,
        pte,
        any::<bool>(),
        any::<bool>(),
        locked,
        flag,
        write,
    )
        .prop_map(
            |(nr, mapping, pte, translated, dirty, locked, flag, write)| {
                let split = write == Write::Split && (mapping != Mapping::Shmem || nr != 4);
                // Buffers are of files.
                let flag = flag.filter(|&flag| flag != Flag::Private || mapping == Mapping::File);
                Spec {
                    mapping,
                    nr,
                    pte,
                    translated: translated && pte.is_some(),
                    dirty,
                    locked,
                    flags: flag.into_iter().collect(),
                    write: if split { Write::Done } else { write },
                }
            },
        )
}

/// A dirty page that a CPU can write to.
fn dirty() -> Spec {
    Spec {
        pte: Some(WRITE | DIRTY),
        translated: true,
        ..Spec::page_of(Mapping::Swap)
    }
}

proptest! {
    #![proptest_config(crate::cases(1024))]

    /// Fates, counters and contents are those of C's loop, which flushes for each that is dirty. But
    /// a folio that was dirty by its PTE alone, and was unmapped by the batch, counts as dirty where
    /// it is taken by itself.
    #[test]
    fn a_batch_ends_as_one_by_one(specs in prop::collection::vec(spec(), 1..70)) {
        let of = |shrink: fn(List<'_>) -> Report| {
            let machine = Machine::new(NR_CPUS, &specs);
            let report = shrink(List::new(&machine, 0..specs.len()));
            let folios = (0..machine.nr_folios()).map(|index| machine.folio(index));
            let stored: Vec<_> = folios
                .map(|folio| (folio.is_freed(), folio.core.is_dirty()))
                .collect();
            (report, stored)
        };
        let (batched, stored) = of(|list| list.shrink_together(|batch, nr| shrink_batch(batch, nr)));
        let (single, stored_singly) = of(|list| list.shrink_unbatched());
        prop_assert_eq!(&batched.fates, &single.fates);
        prop_assert!(batched.stat.nr_dirty >= single.stat.nr_dirty);
        let nr_dirty = single.stat.nr_dirty;
        prop_assert_eq!(Stat { nr_dirty, ..batched.stat }, single.stat);
        prop_assert_eq!(stored, stored_singly);
    }

    /// Where nothing is in the way, there is one flush for 32.
    #[test]
    fn a_batch_has_one_flush(nr in 1usize..33) {
        let machine = Machine::new(NR_CPUS, &vec![dirty(); nr]);
        let list = List::new(&machine, 0..nr);
        let report = list.shrink_together(|batch, nr| shrink_batch(batch, nr));
        prop_assert_eq!((report.stat.nr_reclaimed, report.flushes), (nr as u64, 1));
    }
}

/// Reclaims a dirty page and a clean one of a file by `shrink`.
fn shrink(shrink: fn(Batch<'_, '_>)) -> Report {
    let clean = Spec {
        pte: Some(0),
        dirty: false,
        ..Spec::page_of(Mapping::File)
    };
    let machine = Machine::new(1, &[dirty(), clean]);
    let report = List::new(&machine, 0..2).shrink_together(|batch, _| {
        shrink(batch);
        0
    });
    (0..2).for_each(|index| machine.assert_nothing_lost(index));
    report
}

/// Wherever it is dropped, it is flushed for, unlocked, and not written out: what was unmapped and
/// is dirty is kept, and the rest is taken by itself.
#[test]
fn a_batch_that_is_dropped_is_let_go() {
    let kept = |report: &Report| {
        assert_eq!(report.fates[&0], Fate::Kept);
        assert_eq!(report.fates[&1], Fate::Reclaimed);
        assert!(!report.events.contains(&Event::PagedOut(0)));
    };
    let single = |report: &Report| assert!(report.events.contains(&Event::PagedOut(0)));
    single(&shrink(|batch| drop(Collected::new(batch))));
    single(&shrink(|batch| {
        drop(Collected::new(batch).check_references())
    }));
    single(&shrink(|batch| {
        drop(Collected::new(batch).check_references().alloc_swap());
    }));
    kept(&shrink(|batch| {
        drop(
            Collected::new(batch)
                .check_references()
                .alloc_swap()
                .unmap(),
        );
    }));
    kept(&shrink(|batch| {
        let unmapped = Collected::new(batch)
            .check_references()
            .alloc_swap()
            .unmap();
        drop(unmapped.flush_dirty());
    }));
    kept(&shrink(|batch| {
        let unmapped = Collected::new(batch)
            .check_references()
            .alloc_swap()
            .unmap();
        drop(unmapped.flush_dirty().free_clean());
    }));
}

/// Dirty folios of so many pages, of which faults take back these while they wait.
fn taken_back(sizes: &[u32], back: impl Fn(usize) -> bool) -> Report {
    let specs: Vec<_> = sizes.iter().map(|&nr| Spec { nr, ..dirty() }).collect();
    let machine = Machine::new(NR_CPUS, &specs);
    List::new(&machine, 0..specs.len())
        .meanwhile(|index, window| {
            if back(index) && window == Window::Unlocked {
                assert!(machine.fault(index, true));
            }
        })
        .shrink_together(|batch, nr| shrink_batch(batch, nr))
}

/// One flush for the first 32, and for the others one, or one each.
#[test]
fn a_batch_most_of_which_is_taken_back_is_the_last() {
    let report = taken_back(&[1; 40], |index| index < 16);
    assert_eq!((report.flushes, report.stat.nr_reclaimed), (2, 24));
    let report = taken_back(&[1; 40], |index| index < 17);
    assert_eq!((report.flushes, report.stat.nr_reclaimed), (1 + 8, 23));
}

#[test]
fn it_is_pages_that_are_taken_back() {
    let was_most = |back: fn(usize) -> bool| {
        let events = taken_back(&[1, 1, 1, 4], back).events;
        events
            .iter()
            .any(|event| matches!(event, Event::TakenBack(_)))
    };
    assert!(was_most(|index| index == 3));
    assert!(!was_most(|index| index < 3));
}

/// What is clean need not be unlocked, and what waits is looked at again: a file's is not written out.
#[test]
fn what_is_clean_is_freed_with_its_batch() {
    let report = shrink(|batch| {
        shrink_batch(batch, 2);
    });
    assert!(
        report.events.contains(&Event::Freed(1)) && report.events.contains(&Event::PagedOut(0))
    );
    assert!(report.fates.values().all(|&fate| fate == Fate::Reclaimed));
}

#[test]
fn a_file_that_is_written_to_while_it_waits_is_kept() {
    let with_buffers = Spec {
        dirty: false,
        flags: vec![Flag::Private],
        ..Spec::page_of(Mapping::File)
    };
    for written_to in [false, true] {
        let machine = Machine::new(1, std::slice::from_ref(&with_buffers));
        let report = List::new(&machine, [0])
            .meanwhile(|index, window| {
                if written_to && window == Window::Retried {
                    machine.folio(index).core.mark_dirty();
                }
            })
            .shrink_together(|batch, nr| shrink_batch(batch, nr));
        assert_eq!(report.events.contains(&Event::PagedOut(0)), !written_to);
        let fate = if written_to {
            Fate::Kept
        } else {
            Fate::Reclaimed
        };
        assert_eq!(report.fates[&0], fate);
    }
}

/// C finds its batch then, unlocks it, and warns.
#[test]
#[should_panic(expected = "a batch ends while a batch is locked")]
fn a_batch_that_is_leaked_is_noticed() {
    shrink(|batch| mem::forget(Collected::new(batch)));
}

#[test]
#[should_panic(expected = "a batch ends while a batch is locked")]
fn a_batch_that_is_not_looked_at_is_noticed() {
    shrink(|_batch| ());
}
