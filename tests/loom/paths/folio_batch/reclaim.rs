// SPDX-License-Identifier: GPL-2.0

//! A batch of two, from the locks to the write, against those who store by a translation that is
//! left, fault a folio in, take it from its file, pin it, or reclaim it themselves.
//!
//! Where each store must be found is `Machine::assert_nothing_lost()`.
//!
//! Three racers have too many steps beside all of a batch: they are explored up to a bound. Models of
//! their own explore their parts, those that take less than a minute exhaustively: another reclaimer
//! isolates a folio, or finds it isolated, or has a folio of its own beside the batch.

use crate::paths::dirty_flush::folio;
use mm_batch::folio_batch::shrink_batch;
use mm_shim::{
    gup::pin_fast,
    model::{
        check,
        Bound, //
    },
    reclaim::{
        list::List,
        report::{
            Fate,
            Report,
            Window, //
        },
        Flag,
        Machine,
        Mapping,
        Spec, //
    },
    sync::{
        thread,
        Arc, //
    }, //
};
use std::cell::RefCell;

const RECLAIMED: &str = "both are reclaimed";
const FIRST_KEPT: &str = "the first is put back";
const MAPPED: &str = "the first is mapped again";
const OTHERS: &str = "another reclaimer has the first";

/// When the racer, who is the only CPU, comes in, and whether it is waited for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Racing {
    /// From before the batch is locked.
    Throughout,
    /// The same, and it has ended when the first was unlocked, behind the flush.
    UntilUnlocked,
    /// It comes in then.
    WhileItWaits,
}

fn two_of(mapping: Mapping) -> Vec<Spec> {
    vec![folio(mapping), folio(Mapping::Swap)]
}

fn shrink(list: List<'_>) -> Report {
    list.shrink_together(|batch| shrink_batch(batch))
}

/// How the first ended; the second is reclaimed. Nothing that was written to either is lost.
fn ended(machine: &Machine, report: &Report) -> &'static str {
    (0..2).for_each(|index| machine.assert_nothing_lost(index));
    assert_eq!(report.fates[&1], Fate::Reclaimed);
    let anon = &machine.folio(0).core.anon;
    let alone = anon.pins() == 0 || anon.is_exclusive(0);
    assert!(alone, "a page is pinned, and shared");
    match report.fates.get(&0) {
        None => OTHERS,
        Some(Fate::Reclaimed) => {
            let pins = machine.folio(0).core.anon.pins();
            assert_eq!(pins, 0, "a pinned folio is reclaimed");
            let written = machine.folio(0).test(Flag::Writeback);
            assert!(!written, "freed under writeback");
            RECLAIMED
        }
        Some(_) if report.stat.nr_unmap_fail > 0 => MAPPED,
        Some(_) => FIRST_KEPT,
    }
}

fn against(
    bound: Bound,
    racing: Racing,
    specs: fn() -> Vec<Spec>,
    racer: fn(&Machine),
    ends: &[&'static str],
) {
    check(bound, ends, move |outcomes| {
        let specs = specs();
        let machine = Arc::new(Machine::new(1, &specs));
        let started = RefCell::new(None);
        let start = || {
            let machine = machine.clone();
            started.replace(Some(thread::spawn(move || racer(&machine))));
        };
        if racing != Racing::WhileItWaits {
            start();
        }
        let list = List::new(&machine, 0..specs.len()).meanwhile(|index, window| {
            if (index, window) != (0, Window::Unlocked) {
                return;
            }
            match racing {
                Racing::Throughout => (),
                Racing::UntilUnlocked => ends_now(&started),
                Racing::WhileItWaits => start(),
            }
        });
        let report = shrink(list);
        ends_now(&started);
        outcomes.saw(ended(&machine, &report));
    });
}

/// Waits for the racer, if there is one.
fn ends_now(racer: &RefCell<Option<thread::JoinHandle<()>>>) {
    if let Some(racer) = racer.take() {
        racer.join().expect("the racer panicked");
    }
}

/// Takes the first from its file, behind which a store must fault.
fn truncate_and_store(machine: &Machine) {
    machine.truncate(0);
    machine.write(0, 0);
}

/// Faults the first in, if it is there, and writes to it.
fn fault_and_store(machine: &Machine) {
    if machine.fault(0, true) {
        machine.write(0, 0);
    }
}

/// Every write that does not fault is in what is written out, of either.
#[test]
fn folio_batch_stale_writes() {
    against(
        Bound::Exhaustive,
        Racing::Throughout,
        || two_of(Mapping::Swap),
        |machine| {
            machine.write(0, 1);
            machine.write(0, 0);
        },
        &[RECLAIMED],
    );
}

/// A page of a file or of shmem, whose PTE is none: what is stored behind the truncation must
/// fault, though it was unlocked to wait.
#[test]
fn folio_batch_shmem_is_truncated() {
    against(
        Bound::Preemptions(3),
        Racing::Throughout,
        || two_of(Mapping::Shmem),
        truncate_and_store,
        &[RECLAIMED, FIRST_KEPT],
    );
}

/// The same of the first of its steps, by which the range is unmapped, from the beginning.
#[test]
fn folio_batch_shmem_is_unmapped() {
    against(
        Bound::Exhaustive,
        Racing::Throughout,
        || two_of(Mapping::Shmem),
        |machine| {
            machine.zap(0);
            machine.write(0, 0);
        },
        &[RECLAIMED, FIRST_KEPT],
    );
}

/// The same, where the folio is taken while it waits.
#[test]
fn folio_batch_shmem_is_truncated_while_it_waits() {
    against(
        Bound::Exhaustive,
        Racing::WhileItWaits,
        || two_of(Mapping::Shmem),
        truncate_and_store,
        &[RECLAIMED, FIRST_KEPT],
    );
}

/// A flusher writes the page of a file that was unmapped, and then a CPU stores to it.
#[test]
fn folio_batch_file_is_written_back() {
    against(
        Bound::Exhaustive,
        Racing::Throughout,
        || two_of(Mapping::File),
        |machine| {
            machine.clean(0);
            machine.write(0, 0);
        },
        &[RECLAIMED, FIRST_KEPT],
    );
}

/// The first is clean, and has buffers.
fn with_buffers() -> Vec<Spec> {
    let clean = Spec {
        pte: Some(0),
        flags: vec![Flag::Private],
        ..folio(Mapping::File)
    };
    vec![clean, folio(Mapping::Swap)]
}

/// It is unlocked when its buffers have gone, and is written to, written out and unmapped then: it is
/// not freed under writeback.
#[test]
fn folio_batch_buffers_and_writeback() {
    against(
        Bound::Preemptions(3),
        Racing::WhileItWaits,
        with_buffers,
        |machine| {
            fault_and_store(machine);
            machine.write_back(0);
            machine.zap(0);
        },
        &[RECLAIMED, FIRST_KEPT, MAPPED],
    );
}

/// The same of one that is truncated, and of which somebody has a reference for a moment: as many are
/// left as if it were in the page cache.
#[test]
fn folio_batch_buffers_and_truncation() {
    against(
        Bound::Preemptions(3),
        Racing::WhileItWaits,
        with_buffers,
        |machine| {
            let theirs = machine.folio(0).core.try_get();
            machine.truncate(0);
            if theirs {
                machine.put(0, 1);
            }
        },
        &[RECLAIMED, FIRST_KEPT],
    );
}

/// It waits for its buffers alone, and is dirtied by a fault, or not.
#[test]
fn folio_batch_buffers_and_a_fault() {
    against(
        Bound::Exhaustive,
        Racing::WhileItWaits,
        with_buffers,
        fault_and_store,
        &[RECLAIMED, FIRST_KEPT, MAPPED],
    );
}

/// Who faults on one of the two takes it back, or finds it gone.
#[test]
fn folio_batch_refault() {
    against(
        Bound::Exhaustive,
        Racing::WhileItWaits,
        || two_of(Mapping::Swap),
        fault_and_store,
        &[RECLAIMED, FIRST_KEPT, MAPPED],
    );
}

/// GUP-fast of one, before it is unmapped or not at all.
#[test]
fn folio_batch_pin_and_put() {
    against(
        Bound::Preemptions(4),
        Racing::Throughout,
        || two_of(Mapping::Swap),
        |machine| {
            if let Some(pin) = machine.pin_and_write(0) {
                pin.put();
            }
        },
        &[RECLAIMED, FIRST_KEPT],
    );
}

/// The same, where the pin is kept: the folio is not reclaimed.
#[test]
fn folio_batch_pin() {
    against(
        Bound::Exhaustive,
        Racing::UntilUnlocked,
        || two_of(Mapping::Swap),
        |machine| {
            let _kept = pin_fast(&machine.table, 0, &machine.folio(0).core, true);
        },
        &[RECLAIMED, FIRST_KEPT],
    );
}

/// Somebody has a reference of one for a moment, as who pins it and sees that its PTE has changed.
#[test]
fn folio_batch_reference_for_a_moment() {
    against(
        Bound::Exhaustive,
        Racing::Throughout,
        || two_of(Mapping::Swap),
        |machine| {
            if machine.folio(0).core.try_get() {
                machine.put(0, 1);
            }
        },
        &[RECLAIMED, FIRST_KEPT],
    );
}

/// Who has a reference of the first from before writes to the page, says so, and drops it.
fn write_and_put(specs: fn() -> Vec<Spec>) {
    let ends = [RECLAIMED, FIRST_KEPT];
    check(Bound::Exhaustive, &ends, move |outcomes| {
        let machine = Arc::new(Machine::new(1, &specs()));
        assert!(machine.folio(0).core.try_get());
        let theirs = machine.clone();
        let holder = thread::spawn(move || {
            theirs.folio(0).write();
            theirs.folio(0).core.mark_dirty();
            theirs.put(0, 1);
        });
        let report = shrink(List::new(&machine, 0..2));
        holder.join().expect("the holder panicked");
        outcomes.saw(ended(&machine, &report));
    });
}

#[test]
fn folio_batch_write_and_put() {
    write_and_put(|| two_of(Mapping::Swap));
}

/// What is clean is freed under its lock, unless it is not any more.
#[test]
fn folio_batch_write_to_what_is_clean_and_put() {
    write_and_put(|| {
        let clean = Spec {
            pte: Some(0),
            ..folio(Mapping::Swap)
        };
        vec![clean, folio(Mapping::Swap)]
    });
}

/// The first is on an LRU list, so whoever isolates it has it.
fn one_on_a_list() -> Vec<Spec> {
    let first = Spec {
        flags: vec![Flag::Lru],
        ..folio(Mapping::Swap)
    };
    vec![first, folio(Mapping::Swap)]
}

/// Another reclaimer wants to isolate one of two: one of both does.
#[test]
fn folio_batch_isolated_by_one() {
    check(Bound::Exhaustive, &[RECLAIMED, OTHERS], |outcomes| {
        let machine = Arc::new(Machine::new(1, &one_on_a_list()));
        let theirs = machine.clone();
        let other = thread::spawn(move || theirs.isolate(0));
        let isolated = machine.isolate(0);
        let others = other.join().expect("the other reclaimer panicked");
        assert_ne!(isolated, others);
        let report = shrink(List::new(&machine, usize::from(!isolated)..2));
        outcomes.saw(ended(&machine, &report));
    });
}

/// Another reclaimer has a folio of its own, beside the two.
#[test]
fn folio_batch_beside_another_reclaimer() {
    check(Bound::Exhaustive, &[RECLAIMED], |outcomes| {
        let three = [(); 3].map(|()| folio(Mapping::Swap));
        let machine = Arc::new(Machine::new(1, &three));
        let theirs = machine.clone();
        let other = thread::spawn(move || List::new(&theirs, [2]).shrink_unbatched().fates[&2]);
        let report = shrink(List::new(&machine, 0..2));
        let others = other.join().expect("the other reclaimer panicked");
        assert_eq!(others, Fate::Reclaimed);
        outcomes.saw(ended(&machine, &report));
    });
}

/// Another reclaimer finds the first isolated: it has a reference for a moment, and no more. All of
/// it takes more than five minutes.
#[test]
fn folio_batch_another_finds_one_isolated() {
    against(
        Bound::Preemptions(3),
        Racing::Throughout,
        || two_of(Mapping::Swap),
        |machine| assert!(!machine.isolate(0)),
        &[RECLAIMED, FIRST_KEPT],
    );
}

/// Another reclaimer has isolated the first, and reclaims it by itself. Reclaim by batches finds that,
/// with a reference for a moment, and has a batch of the second alone. (All of it is 916,459
/// executions, and takes two minutes.)
#[test]
fn folio_batch_finds_one_isolated() {
    let ends = [RECLAIMED, FIRST_KEPT];
    check(Bound::Preemptions(6), &ends, |outcomes| {
        let machine = Arc::new(Machine::new(1, &two_of(Mapping::Swap)));
        let theirs = machine.clone();
        let other = thread::spawn(move || List::new(&theirs, [0]).shrink_unbatched().fates[&0]);
        assert!(!machine.isolate(0));
        let report = shrink(List::new(&machine, [1]));
        let others = other.join().expect("the other reclaimer panicked");
        assert_eq!(ended(&machine, &report), OTHERS);
        outcomes.saw(match others {
            Fate::Reclaimed => RECLAIMED,
            _ => FIRST_KEPT,
        });
    });
}

/// Another reclaimer isolates one of two, and reclaims it by itself; or tries to, with a reference
/// for a moment.
#[test]
fn folio_batch_another_reclaimer() {
    let ends = [RECLAIMED, FIRST_KEPT, OTHERS];
    check(Bound::Preemptions(2), &ends, |outcomes| {
        let machine = Arc::new(Machine::new(1, &one_on_a_list()));
        let theirs = machine.clone();
        let other = thread::spawn(move || {
            let isolated = theirs.isolate(0);
            if isolated {
                List::new(&theirs, [0]).shrink_unbatched();
            }
            isolated
        });
        let isolated = machine.isolate(0);
        let report = shrink(List::new(&machine, usize::from(!isolated)..2));
        let others = other.join().expect("the other reclaimer panicked");
        assert_ne!(isolated, others);
        outcomes.saw(ended(&machine, &report));
    });
}
