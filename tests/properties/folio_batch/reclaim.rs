// SPDX-License-Identifier: GPL-2.0

//! The same from the locks to the write: each folio ends as by itself, and is counted so.

use mm_batch::{
    batch::Collected,
    folio_batch::{
        shrink_batch,
        unmap_anon_folios, //
    },
};
use mm_shim::{
    gup::pin_fast,
    pte::{
        pte_pfn,
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
            Window, //
        },
        Flag,
        Machine,
        Mapping,
        Spec,
        Write, //
    },
    tlb::Deferred, //
};
use proptest::prelude::*;
use std::mem;

const NR_CPUS: usize = 2;

fn spec() -> impl Strategy<Value = Spec> {
    let nr =
        prop_oneof![8 => Just(1u32), 2 => Just(4), 2 => Just(16), 1 => Just(256), 1 => Just(512)];
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
            Flag::Held,
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
    let lazyfree = prop::bool::weighted(0.3);
    let locked = prop::bool::weighted(0.05);
    (
        nr,
        mapping,
        pte,
        any::<bool>(),
        any::<bool>(),
        (locked, lazyfree),
        flag,
        write,
        0u8..3,
    )
        .prop_map(
            |(nr, mapping, pte, translated, dirty, (locked, lazyfree), flag, write, cgroup)| {
                let split = write == Write::Split && (mapping != Mapping::Shmem || nr != 4);
                let lazyfree = lazyfree && mapping == Mapping::Swap;
                let flag = flag.filter(|&flag| may_be(flag, mapping, lazyfree));
                // The thread that has it locked has a reference.
                let held = (lazyfree && locked).then_some(Flag::Held);
                let lazyfree = lazyfree.then_some(Flag::Lazyfree);
                Spec {
                    mapping,
                    nr,
                    pte,
                    translated: translated && pte.is_some(),
                    dirty,
                    locked,
                    flags: flag.into_iter().chain(lazyfree).chain(held).collect(),
                    write: if split { Write::Done } else { write },
                    cgroup,
                }
            },
        )
}

/// Whether there are such folios.
fn may_be(flag: Flag, mapping: Mapping, lazyfree: bool) -> bool {
    match flag {
        Flag::Private => mapping == Mapping::File,
        // It is written by nobody, and of no file.
        Flag::Writeback | Flag::WaitedFor | Flag::Unevictable => !lazyfree,
        _ => true,
    }
}

/// Fewer than 32 that are dirty, and fewer that are clean than are freed at once.
fn few_dirty_and_clean() -> impl Strategy<Value = Vec<Spec>> {
    (1usize..32, 0usize..31).prop_flat_map(|(dirty_ones, clean_ones)| {
        let mut specs = vec![dirty(); dirty_ones];
        specs.extend(vec![clean(); clean_ones]);
        Just(specs).prop_shuffle()
    })
}

/// Lists of any length that C makes, and of one that is likely.
fn specs() -> impl Strategy<Value = Vec<Spec>> {
    prop_oneof![
        31 => prop::collection::vec(spec(), 0..70),
        1 => prop::collection::vec(spec(), 0..=1000)
    ]
}

/// Two folios, the first of which was in front of the other on the list, and went back behind it,
/// though it was not in a batch when that one was taken, nor waited, if those that wait are let off.
/// (Not of those that come of splits.)
fn out_of_order(report: &Report, nr: usize, let_off: bool) -> Option<[usize; 2]> {
    let mut batch = 0;
    // In which batches each was, and which one was there when it went back.
    let (mut last, mut first, mut back) = (vec![None; nr], vec![None; nr], vec![None; nr]);
    let mut waited = vec![false; nr];
    for event in &report.events {
        match *event {
            Event::Ended => batch += 1,
            Event::Collected(index) if index < nr => {
                first[index].get_or_insert(batch);
                last[index] = Some(batch);
            }
            Event::Back(index) if index < nr => back[index] = Some(batch),
            Event::Waits(index) if index < nr => waited[index] = let_off,
            _ => (),
        }
    }
    let order: Vec<_> = report
        .back
        .iter()
        .copied()
        .filter(|&index| index < nr)
        .collect();
    order.iter().enumerate().find_map(|(i, &early)| {
        let then = first[early].or(back[early]);
        let beside = |late: usize| last[late] >= then && last[late].is_some();
        let late = order[i..]
            .iter()
            .find(|&&late| late < early && !beside(late) && !waited[late])?;
        Some([*late, early])
    })
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

    /// Fates, counters, by cgroup too, what is mapped and what is dirty are those of C's loop, which
    /// flushes for each that is dirty. The order in which folios go back to the LRU lists is the same
    /// but within a batch, but for those that end while one is collected, and but for those that wait
    /// for the flush of several batches.
    #[test]
    fn a_batch_ends_as_one_by_one(specs in specs()) {
        let of = |shrink: fn(List<'_>) -> Report| {
            let machine = Machine::new(NR_CPUS, &specs);
            let report = shrink(List::new(&machine, 0..specs.len()));
            let left = |index| {
                let folio = machine.folio(index);
                let flags = (folio.core.is_dirty(), folio.core.is_swapbacked());
                (folio.is_freed(), machine.mapped(index), flags)
            };
            let left: Vec<_> = (0..machine.nr_folios()).map(left).collect();
            (report, left)
        };
        let (single, left_singly) = of(|list| list.shrink_unbatched());
        let whole = |&index: &usize| index < specs.len();
        let back: Vec<_> = single.back.iter().copied().filter(whole).collect();
        prop_assert!(back.is_sorted(), "{back:?}");
        let waiting = of(|list| list.shrink_together(|batch| shrink_batch(batch)));
        let at_once = of(|list| list.shrink_together_unbatched(|batch| shrink_batch(batch)));
        for (let_off, (batched, left)) in [(true, waiting), (false, at_once)] {
            prop_assert_eq!(&batched.fates, &single.fates);
            prop_assert_eq!(batched.stat, single.stat);
            prop_assert_eq!(&batched.cgroups, &single.cgroups);
            prop_assert_eq!(&left, &left_singly);
            let early = out_of_order(&batched, specs.len(), let_off);
            prop_assert_eq!(early, None);
        }
    }

    /// A batch has as many folios as it may have, and is no longer, nor has it a huge one.
    #[test]
    fn a_batch_has_its_limits(specs in specs()) {
        let machine = Machine::new(NR_CPUS, &specs);
        let list = List::new(&machine, 0..specs.len());
        let report = list.shrink_together(|batch| shrink_batch(batch));
        let is_end = |event: &Event| *event == Event::Ended;
        let nr_batches = report.events.iter().filter(|event| is_end(event)).count();
        for (i, batch) in report.events.split(is_end).enumerate() {
            let collected = batch.iter().filter_map(|event| match *event {
                // What comes of a split is one page.
                Event::Collected(index) => Some(specs.get(index).map_or(1, |spec| spec.nr)),
                _ => None,
            });
            let sizes: Vec<_> = collected.collect();
            prop_assert!(sizes.len() <= 32 && sizes.iter().all(|&nr| nr < 512), "{sizes:?}");
            let in_front: u32 = sizes.iter().rev().skip(1).sum();
            prop_assert!(in_front < 512, "{sizes:?}");
            // Behind the last there is none.
            prop_assert_eq!(sizes.is_empty(), i == nr_batches);
        }
    }

    /// Where nothing is in the way, there is one flush for those that are dirty, if they are not 32 yet,
    /// be they of two batches; one for each batch with `dirty_flush` off.
    #[test]
    fn dirty_ones_have_one_flush(specs in few_dirty_and_clean()) {
        let of = |shrink: fn(List<'_>) -> Report| {
            let machine = Machine::new(NR_CPUS, &specs);
            shrink(List::new(&machine, 0..specs.len()))
        };
        let report = of(|list| list.shrink_together(|batch| shrink_batch(batch)));
        prop_assert_eq!((report.stat.nr_reclaimed, report.flushes), (specs.len() as u64, 1));
        let each = of(|list| list.shrink_together_unbatched(|batch| shrink_batch(batch)));
        prop_assert_eq!(each.stat, report.stat);
        let is_dirty = |batch: &[Spec]| batch.iter().any(|spec| spec.mapping == Mapping::Swap);
        // What is clean at the end of the list has one before it is freed.
        let clean_last = specs.chunks(32).last().is_some_and(|batch| !is_dirty(batch));
        let flushes = specs.chunks(32).filter(|batch| is_dirty(batch)).count();
        prop_assert_eq!(each.flushes, flushes + usize::from(clean_last));
    }
}

/// A clean page of a file.
fn clean() -> Spec {
    Spec {
        pte: Some(0),
        dirty: false,
        ..Spec::page_of(Mapping::File)
    }
}

/// Whether both happened, for the first time in this order.
fn is_before(report: &Report, one: Event, other: Event) -> bool {
    let at = |event| report.events.iter().position(|&each| each == event);
    at(one)
        .zip(at(other))
        .is_some_and(|(one, other)| one < other)
}

/// Reclaims a dirty page and a clean one of a file by `shrink`.
fn shrink(shrink: fn(Batch<'_, '_>)) -> Report {
    let machine = Machine::new(1, &[dirty(), clean()]);
    let report = List::new(&machine, 0..2).shrink_together(shrink);
    (0..2).for_each(|index| machine.assert_nothing_lost(index));
    report
}

/// Wherever it is dropped, it is flushed for, unlocked, and not written out: what is in it is kept.
#[test]
fn a_batch_that_is_dropped_is_put_back() {
    let end = |report: &Report, clean| {
        assert_eq!(report.fates[&0], Fate::Kept);
        assert_eq!(report.fates[&1], clean);
        assert_eq!(report.stat.nr_scanned, 2);
        assert!(!report.events.contains(&Event::PagedOut(0)));
    };
    let kept = |report: &Report| end(report, Fate::Kept);
    kept(&shrink(|batch| drop(Collected::new(batch))));
    kept(&shrink(|batch| {
        drop(Collected::new(batch).check_references())
    }));
    kept(&shrink(|batch| {
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
    let freed = shrink(|batch| {
        let unmapped = Collected::new(batch)
            .check_references()
            .alloc_swap()
            .unmap();
        drop(unmapped.free_clean());
    });
    end(&freed, Fate::Reclaimed);
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
        .shrink_together(|batch| shrink_batch(batch))
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

/// Those that are clean count as well: one that is taken back beside three is not most.
#[test]
fn most_is_of_what_was_tried() {
    let specs: Vec<_> = [clean(), clean(), clean(), dirty()].into();
    for off in [false, true] {
        let machine = Machine::new(NR_CPUS, &specs);
        let list = List::new(&machine, 0..specs.len()).meanwhile(|index, window| {
            if window == Window::Unlocked {
                assert!(machine.fault(index, true));
            }
        });
        let report = if off {
            list.shrink_together_unbatched(|batch| shrink_batch(batch))
        } else {
            list.shrink_together(|batch| shrink_batch(batch))
        };
        let taken_back = |event: &Event| matches!(event, Event::TakenBack(_));
        assert_eq!(report.stat.nr_reclaimed, 3);
        assert!(!report.events.iter().any(taken_back));
    }
}

/// What is clean need not be unlocked, and what waits is looked at again: a file's is not written out.
#[test]
fn what_is_clean_is_freed_with_its_batch() {
    let report = shrink(|batch| shrink_batch(batch));
    assert!(
        report.events.contains(&Event::Freed(1)) && report.events.contains(&Event::PagedOut(0))
    );
    assert!(report.fates.values().all(|&fate| fate == Fate::Reclaimed));
}

/// Its buffers are references that `pageout()` does not allow for.
#[test]
fn a_file_that_is_written_to_while_it_waits_is_kept() {
    let with_buffers = Spec {
        pte: Some(0),
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
            .shrink_together(|batch| shrink_batch(batch));
        assert!(!report.events.contains(&Event::Written(0)));
        let fate = if written_to {
            Fate::Kept
        } else {
            Fate::Reclaimed
        };
        assert_eq!(report.fates[&0], fate);
    }
}

/// As it may be unlocked only then: what is not anonymous is somebody else's by its file.
#[test]
fn a_batch_that_is_dropped_is_flushed_for() {
    let shmem = Spec {
        mapping: Mapping::Shmem,
        ..dirty()
    };
    let machine = Machine::new(1, &[shmem]);
    let report = List::new(&machine, [0]).shrink_together(|batch| {
        let placed = Collected::new(batch).check_references().alloc_swap();
        drop(placed.unmap());
    });
    assert!(is_before(&report, Event::Flushed(1), Event::Back(0)));
}

#[test]
fn a_clean_file_that_is_pinned_is_activated() {
    let writable = Spec {
        pte: Some(WRITE),
        ..clean()
    };
    let machine = Machine::new(1, &[writable]);
    let pin = pin_fast(&machine.table, 0, &machine.folio(0).core, true);
    assert!(pin.is_some());
    let report = List::new(&machine, [0]).shrink_together(|batch| shrink_batch(batch));
    assert_eq!(report.fates[&0], Fate::Activated);
}

/// It goes alone later.
#[test]
fn one_that_cannot_be_unmapped_does_not_keep_others_mapped() {
    let stuck = Spec {
        flags: vec![Flag::Stuck],
        ..dirty()
    };
    let machine = Machine::new(1, &[stuck, dirty()]);
    let report = List::new(&machine, 0..2).shrink_together(|batch| shrink_batch(batch));
    assert!(is_before(&report, Event::Waits(1), Event::Ended));
}

/// Each by the PTE that it had.
#[test]
fn pinned_ones_are_mapped_again() {
    let machine = Machine::new(1, &[dirty(), dirty()]);
    let pins = [0, 1].map(|i| pin_fast(&machine.table, i, &machine.folio(i).core, true));
    assert!(pins.iter().all(Option::is_some));
    let deferred = Deferred::default();
    machine.try_to_unmap_folios(&[0, 1], &deferred, |stop| unmap_anon_folios(stop));
    let pfns = [0, 1].map(|i| pte_pfn(machine.table.ptep_get(i)));
    assert_eq!(pfns, [0, 1].map(|i| machine.folio(i).core.pfn));
}

#[test]
fn those_that_are_unmapped_are_no_mms_alone() {
    let machine = Machine::new(1, &[dirty(), dirty()]);
    let alone = |index: usize| machine.folio(index).core.anon.is_exclusive(0);
    List::new(&machine, 0..2)
        .meanwhile(|index, window| assert!(window != Window::Unlocked || !alone(index)))
        .shrink_together(|batch| shrink_batch(batch));
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

/// In C's terms: its references cannot be frozen.
#[test]
fn a_clean_folio_that_somebody_has_is_kept_with_its_batch() {
    let machine = Machine::new(1, &[clean(), clean()]);
    machine.folio(0).core.get(1);
    let list = List::new(&machine, 0..2);
    let report = list.shrink_together(|batch| shrink_batch(batch));
    assert_eq!(
        [Fate::Kept, Fate::Reclaimed],
        [report.fates[&0], report.fates[&1]]
    );
    let kept = Event::Back(0);
    let ended = |events: &[Event]| events.iter().position(|&event| event == Event::Ended);
    let back = report.events.iter().position(|&event| event == kept);
    assert!(back < ended(&report.events), "{:?}", report.events);
}
