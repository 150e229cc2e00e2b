// SPDX-License-Identifier: GPL-2.0

//! A batch of two, from the locks to the write, against those who store by a translation that is
//! left, fault a folio in, take it from its file, pin it, or reclaim it themselves.
//!
//! Where each store must be found is `Machine::assert_nothing_lost()`.

use crate::paths::dirty_flush::folio;
use mm_batch::folio_batch::shrink_batch;
use mm_shim::{
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

/// When the racer, who is the only CPU, comes in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum From {
    /// Before the batch is locked.
    List,
    /// When the first was unlocked, behind the flush.
    Window,
}

fn two_of(mapping: Mapping) -> Vec<Spec> {
    vec![folio(mapping), folio(Mapping::Swap)]
}

/// How the first ended; the second is reclaimed.
fn ended(_: &Machine, report: &Report) -> &'static str {
    assert_eq!(report.fates[&1], Fate::Reclaimed);
    match report.fates[&0] {
        Fate::Reclaimed => RECLAIMED,
        _ if report.stat.nr_unmap_fail > 0 => MAPPED,
        _ => FIRST_KEPT,
    }
}

fn against(
    bound: Bound,
    from: From,
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
        if from == From::List {
            start();
        }
        let report = List::new(&machine, 0..specs.len())
            .meanwhile(|index, window| {
                if from == From::Window && (index, window) == (0, Window::Unlocked) {
                    start();
                }
            })
            .shrink_together(|batch, nr| shrink_batch(batch, nr));
        let racer = started.take().expect("the first waited");
        racer.join().expect("the racer panicked");
        (0..specs.len()).for_each(|index| machine.assert_nothing_lost(index));
        outcomes.saw(ended(&machine, &report));
    });
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
        From::List,
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
        From::List,
        || two_of(Mapping::Shmem),
        truncate_and_store,
        &[RECLAIMED, FIRST_KEPT],
    );
}

/// The same, of who takes it while it waits.
#[test]
fn folio_batch_shmem_is_truncated_while_it_waits() {
    against(
        Bound::Exhaustive,
        From::Window,
        || two_of(Mapping::Shmem),
        truncate_and_store,
        &[RECLAIMED, FIRST_KEPT],
    );
}

/// A flusher writes the page of a file that was unmapped, and then a CPU stores to it.
#[test]
fn folio_batch_file_is_written_back() {
    against(
        Bound::Preemptions(5),
        From::List,
        || two_of(Mapping::File),
        |machine| {
            machine.clean(0);
            machine.write(0, 0);
        },
        &[RECLAIMED, FIRST_KEPT],
    );
}

/// Clean, with buffers: it waits for them alone, and is dirtied by a fault, or not.
#[test]
fn folio_batch_buffers_and_a_fault() {
    fn with_buffers() -> Vec<Spec> {
        let clean = Spec {
            pte: Some(0),
            flags: vec![Flag::Private],
            ..folio(Mapping::File)
        };
        vec![clean, folio(Mapping::Swap)]
    }
    against(
        Bound::Exhaustive,
        From::Window,
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
        From::Window,
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
        From::List,
        || two_of(Mapping::Swap),
        |machine| {
            if let Some(pin) = machine.pin_and_write(0) {
                pin.put();
            }
        },
        &[RECLAIMED, FIRST_KEPT],
    );
}

/// Another reclaimer isolates one of two, and reclaims it by itself; or tries to, with a reference
/// for a moment.
#[test]
fn folio_batch_another_reclaimer() {
    let ends = [RECLAIMED, FIRST_KEPT, OTHERS];
    check(Bound::Preemptions(2), &ends, |outcomes| {
        let on_a_list = Spec {
            flags: vec![Flag::Lru],
            ..folio(Mapping::Swap)
        };
        let machine = Arc::new(Machine::new(1, &[on_a_list, folio(Mapping::Swap)]));
        let theirs = machine.clone();
        let other = thread::spawn(move || {
            let isolated = theirs.isolate(0);
            if isolated {
                List::new(&theirs, [0]).shrink_unbatched();
            }
            isolated
        });
        let isolated = machine.isolate(0);
        let mine = if isolated { vec![0, 1] } else { vec![1] };
        let report = List::new(&machine, mine).shrink_together(|batch, nr| shrink_batch(batch, nr));
        let others = other.join().expect("the other reclaimer panicked");
        (0..2).for_each(|index| machine.assert_nothing_lost(index));
        assert_eq!(report.fates[&1], Fate::Reclaimed);
        assert_ne!(isolated, others);
        outcomes.saw(if isolated {
            ended(&machine, &report)
        } else {
            OTHERS
        });
    });
}
