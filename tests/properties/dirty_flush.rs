// SPDX-License-Identifier: GPL-2.0

//! `dirty_flush`: lists of any folios, against what C makes of each, and against its loop, which
//! flushes for each dirty one.

use due::{
    assert_batches,
    batches, //
};
use mm_shim::{
    pte::{
        DIRTY,
        WRITE,
        YOUNG, //
    },
    reclaim::{
        list::List,
        pageout::{
            FOLIO_BATCH_SIZE,
            WAITING_FOLIOS,
            WAITING_PAGES, //
        },
        report::{
            Event,
            Fate,
            Report, //
        },
        Flag,
        Machine,
        Mapping,
        Spec,
        Write, //
    }, //
};
use proptest::prelude::*;

mod alone;
mod due;
mod expected;
mod fates;
mod taken_back;

const NR_CPUS: usize = 2;
const WRITABLE: u64 = WRITE | DIRTY | YOUNG;

/// A dirty folio of the swap cache that a CPU can write to.
fn dirty(nr: u32) -> Spec {
    Spec {
        nr,
        pte: Some(WRITABLE),
        translated: true,
        dirty: false,
        ..Spec::page_of(Mapping::Swap)
    }
}

fn unmapped(nr: u32) -> Spec {
    Spec {
        pte: None,
        translated: false,
        dirty: true,
        ..dirty(nr)
    }
}

fn clean(nr: u32) -> Spec {
    Spec {
        pte: Some(YOUNG),
        ..dirty(nr)
    }
}

fn spec() -> impl Strategy<Value = Spec> {
    let nr = prop_oneof![10 => Just(1u32), 3 => Just(4), 3 => Just(16), 1 => 32u32..512, 1 => Just(512), 1 => Just(1024)];
    let mapping = prop_oneof![
        12 => Just(Mapping::Swap),
        4 => Just(Mapping::Shmem),
        1 => Just(Mapping::File)
    ];
    let pte = prop_oneof![
        8 => Just(Some(WRITABLE)),
        2 => Just(Some(WRITE)),
        2 => Just(Some(YOUNG)),
        2 => Just(None)
    ];
    let flag = prop_oneof![
        30 => Just(None),
        1 => Just(Some(Flag::Writeback)),
        1 => Just(Some(Flag::Mlocked)),
        1 => Just(Some(Flag::Unevictable)),
        1 => Just(Some(Flag::Poisoned)),
        1 => Just(Some(Flag::Referenced)),
        1 => Just(Some(Flag::Stuck)),
        1 => Just(Some(Flag::WaitedFor)),
        2 => Just(Some(Flag::FlushedFirst))
    ];
    let write = prop_oneof![
        8 => Just(Write::Done),
        4 => Just(Write::Begun),
        1 => Just(Write::Refused),
        1 => Just(Write::Failed),
        2 => Just(Write::Split)
    ];
    let locked = prop::bool::weighted(0.03);
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
                let whole = mapping != Mapping::Shmem || nr == 1 || nr > 16;
                Spec {
                    mapping,
                    nr,
                    pte,
                    translated: translated && pte.is_some(),
                    dirty,
                    locked,
                    flags: flag.into_iter().collect(),
                    write: if whole && write == Write::Split {
                        Write::Done
                    } else {
                        write
                    },
                    cgroup: 0,
                }
            },
        )
}

fn specs(sizes: &'static [usize]) -> impl Strategy<Value = Vec<Spec>> {
    prop::sample::select(sizes).prop_flat_map(|nr| prop::collection::vec(spec(), nr))
}

fn written(report: &Report) -> Vec<usize> {
    let written = |event: &Event| match *event {
        Event::Written(folio) => Some(folio),
        _ => None,
    };
    report.events.iter().filter_map(written).collect()
}

fn may_wait(spec: &Spec) -> bool {
    spec.mapping == Mapping::Swap && spec.nr < 512 && !spec.flags.contains(&Flag::FlushedFirst)
}

/// Of a run in which nothing was faulted in.
fn assert_undisturbed(specs: &[Spec], report: &Report) {
    assert_batches(specs, report, &|_| false);
}

/// A CPU writes by a translation that is left, if there is one.
fn write_stale(machine: &Machine, folio: usize) {
    if folio < machine.table.nr() && !machine.mapped(folio) {
        machine.write(1, folio);
    }
}

fn assert_as_unbatched(specs: &[Spec]) {
    let (machine, reference) = (Machine::new(NR_CPUS, specs), Machine::new(NR_CPUS, specs));
    let got = List::new(&machine, 0..specs.len())
        .meanwhile(|folio, _| write_stale(&machine, folio))
        .shrink();
    let want = List::new(&reference, 0..specs.len()).shrink_unbatched();
    assert_undisturbed(specs, &got);
    expected::assert_ends_as_expected(specs, &got);
    expected::assert_ends_as_expected(specs, &want);
    assert_eq!(got.fates, want.fates);
    assert_eq!(got.stat.pgrotate(), want.stat.pgrotate());
    assert!(got.flushes <= want.flushes);
    // What waits is written behind what does not, and else in the order of the list.
    let waits = |index: &usize| got.events.contains(&Event::Waits(*index));
    let (mut got_written, mut want_written) = (written(&got), written(&want));
    let of_those = |all: &[usize]| -> Vec<_> { all.iter().copied().filter(waits).collect() };
    assert_eq!(of_those(&got_written), of_those(&want_written));
    got_written.sort_unstable();
    want_written.sort_unstable();
    assert_eq!(got_written, want_written);
    for index in 0..machine.nr_folios() {
        let (a, b) = (machine.folio(index), reference.folio(index));
        assert_eq!(a.is_freed(), b.is_freed());
        assert_eq!(a.core.is_dirty(), b.core.is_dirty());
        assert_eq!(a.core.ref_count(), b.core.ref_count());
        if got.fates.get(&index) != Some(&Fate::Dropped) {
            machine.assert_nothing_lost(index);
        }
    }
}

const SHORT: &[usize] = &[0, 1, 31, 32, 33, 64];

proptest! {
    #![proptest_config(crate::cases(256))]

    #[test]
    fn a_list_ends_as_one_by_one(specs in specs(SHORT)) {
        assert_as_unbatched(&specs);
    }
}

proptest! {
    #![proptest_config(crate::cases(8))]

    #[test]
    fn a_long_list_ends_as_one_by_one(specs in specs(&[1000])) {
        assert_as_unbatched(&specs);
    }
}

/// The folio by which a batch has 512 pages is of it. One that has so many by itself does not wait.
#[test]
fn a_flush_is_for_32_folios_or_512_pages() {
    let runs = |specs: &[Spec]| {
        let machine = Machine::new(NR_CPUS, specs);
        let report = List::new(&machine, 0..specs.len()).shrink();
        assert_undisturbed(specs, &report);
        (batches(&report.events).len(), report.flushes)
    };
    let lists = [
        (0, 0),
        (1, 1),
        (31, 1),
        (32, 1),
        (33, 2),
        (64, 2),
        (1000, 32),
    ];
    for (nr, batches) in lists {
        assert_eq!(runs(&vec![dirty(1); nr]), (batches, batches), "{nr} folios");
    }
    let lists = [
        (16, 32, 1),
        (32, 16, 1),
        (32, 17, 2),
        (33, 16, 1),
        (256, 3, 2),
        (511, 3, 2),
    ];
    for (pages, nr, batches) in lists {
        assert_eq!(
            runs(&vec![dirty(pages); nr]),
            (batches, batches),
            "{nr} of {pages} pages"
        );
    }
    assert_eq!(runs(&vec![dirty(512); 3]), (0, 3));
    assert_eq!(runs(&[dirty(512), dirty(1)]), (1, 2));
    // The flush for the large one is for all in front of it.
    assert_eq!(runs(&[dirty(1), dirty(512)]), (1, 1));
    assert_eq!(runs(&[dirty(1), dirty(1024), dirty(1)]), (1, 2));
}

/// Where nobody can write by what is owed, a folio is written before the flush, which is one for all.
#[test]
fn what_is_mapped_for_reading_is_written_unflushed() {
    let by_others = Spec {
        dirty: true,
        ..clean(1)
    };
    let specs = vec![by_others; 3];
    let machine = Machine::new(NR_CPUS, &specs);
    let report = List::new(&machine, 0..specs.len()).shrink();
    assert_undisturbed(&specs, &report);
    assert_eq!((written(&report).len(), report.flushes), (3, 1));
}

/// C flushes for each.
#[test]
fn unbatched_there_is_a_flush_for_each() {
    let machine = Machine::new(NR_CPUS, &vec![dirty(1); 62]);
    assert_eq!(List::new(&machine, 0..62).shrink_unbatched().flushes, 62);
}

/// Nothing is owed, so nothing waits: each is written as it comes.
#[test]
fn what_owes_nothing_does_not_wait() {
    let machine = Machine::new(NR_CPUS, &[unmapped(1), unmapped(4)]);
    let report = List::new(&machine, 0..2).shrink();
    let events = [written_by_itself(0, false), written_by_itself(1, false)];
    assert_eq!((report.events, report.flushes), (events.concat(), 0));
}

/// The end of a folio that has waited, or of one that has not.
fn written_by_itself(folio: usize, waited: bool) -> Vec<Event> {
    let end = [
        Event::Retried(folio),
        Event::PagedOut(folio),
        Event::Written(folio),
    ];
    end[usize::from(!waited)..].to_vec()
}

/// A folio that is a batch.
fn batch_of_one(folio: usize) -> Vec<Event> {
    let batch = [Event::Waits(folio), Event::Flushed(1)];
    [&batch[..], &written_by_itself(folio, true)].concat()
}

/// One that owes nothing, behind one that waits, is written before it.
#[test]
fn what_owes_nothing_is_written_before_what_waits() {
    // The 31st that is freed makes C flush.
    let mut specs = vec![clean(1); 33];
    (specs[0], specs[32]) = (dirty(1), unmapped(4));
    let machine = Machine::new(NR_CPUS, &specs);
    let report = List::new(&machine, 0..33).shrink();
    let events = [
        vec![Event::Waits(0)],
        written_by_itself(32, false),
        vec![Event::Flushed(1)],
        written_by_itself(0, true),
    ];
    assert_eq!(report.events, events.concat());
    assert_eq!(report.flushes, 1);
}

/// Reclaim waits for the writeback of a folio, of a legacy cgroup: nothing else waits for it, too.
#[test]
fn a_batch_is_written_before_writeback_is_waited_for() {
    let waited_for = Spec {
        flags: vec![Flag::WaitedFor],
        ..unmapped(1)
    };
    let machine = Machine::new(NR_CPUS, &[dirty(1), waited_for, dirty(1)]);
    let report = List::new(&machine, 0..3).shrink();
    let events = [
        batch_of_one(0),
        written_by_itself(1, false),
        batch_of_one(2),
    ];
    assert_eq!(report.events, events.concat());
    assert_eq!(report.stat.nr_scanned, 4);
}

/// What may not wait is flushed for while it is locked, and written at once. That flush is for those
/// that wait as well.
#[test]
fn what_may_not_wait_is_written_at_once() {
    let flushed_first = Spec {
        flags: vec![Flag::FlushedFirst],
        ..dirty(16)
    };
    let of_shmem = Spec {
        mapping: Mapping::Shmem,
        ..dirty(16)
    };
    for spec in [flushed_first, of_shmem] {
        let specs = [dirty(1), spec, dirty(1)];
        let machine = Machine::new(NR_CPUS, &specs);
        let report = List::new(&machine, 0..3).shrink();
        let events = [
            vec![Event::Waits(0)],
            written_by_itself(1, false),
            vec![Event::Waits(2), Event::Flushed(2)],
            written_by_itself(0, true),
            written_by_itself(2, true),
        ];
        assert_eq!(report.events, events.concat());
        assert_eq!(report.flushes, 2);
    }
}

/// What a split brings to the list is reclaimed as well.
#[test]
fn pages_of_a_split_are_reclaimed_too() {
    let split = Spec {
        mapping: Mapping::Shmem,
        write: Write::Split,
        ..dirty(4)
    };
    let machine = Machine::new(NR_CPUS, &[dirty(1), split, dirty(1)]);
    let report = List::new(&machine, 0..3).shrink();
    assert_eq!(report.fates.len(), 6);
    assert!(report.fates.values().all(|&fate| fate == Fate::Reclaimed));
    let stat = report.stat;
    assert_eq!(
        (stat.nr_scanned, stat.nr_reclaimed, stat.vmscan_write),
        (6, 6, 6)
    );
    assert_eq!(stat.pgrotate(), 0);
}
