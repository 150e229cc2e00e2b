// SPDX-License-Identifier: GPL-2.0

//! `dirty_flush` against CPUs that write by translations that are left, and against those who fault
//! a folio in, pin it, or take it away while it waits, unlocked.
//!
//! In every execution: whatever was written without a fault is in what is written out, or the folio
//! is still there, and dirty; a folio that is pinned or mapped is not reclaimed; and each is freed
//! once, with no translation of it left, or not at all.

use mm_shim::{
    model::{
        check,
        Bound,
        Outcomes, //
    },
    pte::{
        DIRTY,
        WRITE,
        YOUNG, //
    },
    reclaim::{
        list::List,
        report::{
            Fate,
            Report,
            Window, //
        },
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

const RECLAIMED: &str = "reclaimed";
const KEPT: &str = "kept";
const MAPPED: &str = "activated, as it is mapped";
const PINNED: &str = "activated, as it is pinned";
const GONE: &str = "freed with its last reference";

/// A page that a CPU can write to, and has a translation of.
pub(crate) fn folio(mapping: Mapping) -> Spec {
    Spec {
        pte: Some(WRITE | DIRTY | YOUNG),
        translated: true,
        dirty: false,
        ..Spec::page_of(mapping)
    }
}

pub(crate) fn one() -> Vec<Spec> {
    vec![folio(Mapping::Swap)]
}

pub(crate) fn one_of_shmem() -> Vec<Spec> {
    vec![folio(Mapping::Shmem)]
}

/// Dirty by itself, not by its PTE: no flush is owed, unless a write makes that dirty.
fn one_by_a_clean_pte() -> Vec<Spec> {
    vec![Spec {
        pte: Some(WRITE | YOUNG),
        dirty: true,
        ..folio(Mapping::Swap)
    }]
}

fn two() -> Vec<Spec> {
    vec![folio(Mapping::Swap), folio(Mapping::Swap)]
}

/// What a racer does, who is the only CPU.
type Racer = fn(&Machine);
type Judge = fn(&Machine, &Report) -> &'static str;

/// When a racer comes in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum From {
    /// The folio is mapped, and on the list.
    List,
    /// The last was unmapped, and unlocked just now, and waits for the flush.
    Window,
}

/// Reclaims the folios against a racer.
pub(crate) fn against(
    bound: Bound,
    from: From,
    specs: fn() -> Vec<Spec>,
    racer: Racer,
    judge: Judge,
    ends: &[&'static str],
) {
    check(bound, ends, move |outcomes: &Outcomes| {
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
                let last = index + 1 == specs.len();
                if last && from == From::Window && window == Window::Unlocked {
                    start();
                }
            })
            .shrink();
        let racer = started.take().expect("a folio waited");
        racer.join().expect("the racer panicked");
        outcomes.saw(judge(&machine, &report));
    });
}

/// How the last folio ended; of the writes to all of them none may be lost.
fn kept_its_writes(machine: &Machine, report: &Report) -> &'static str {
    (0..machine.nr_folios()).for_each(|index| machine.assert_nothing_lost(index));
    ended(machine, report)
}

/// How it ended, of which nothing is to be read any more.
fn ended(machine: &Machine, report: &Report) -> &'static str {
    let (&last, &fate) = report.fates.last_key_value().expect("there is one");
    let folio = machine.folio(last);
    let pinned = folio.core.anon.pins() > 0;
    match fate {
        Fate::Reclaimed => {
            assert!(folio.is_freed() && !machine.mapped(last) && !pinned);
            RECLAIMED
        }
        Fate::Activated if report.stat.nr_unmap_fail > 0 => MAPPED,
        Fate::Activated => PINNED,
        Fate::Kept if folio.is_freed() => GONE,
        Fate::Kept => KEPT,
        Fate::Dropped => panic!("it was not poisoned"),
    }
}

const NONE: &str = "no write was made";
const FIRST: &str = "one was";
const BOTH: &str = "both were";

/// All are reclaimed; how many writes were made.
fn writes(machine: &Machine, report: &Report) -> &'static str {
    assert_eq!(kept_its_writes(machine, report), RECLAIMED);
    let written: usize = (0..machine.nr_folios())
        .map(|index| machine.folio(index).core.written())
        .sum();
    [NONE, FIRST, BOTH][written]
}

fn write_twice(machine: &Machine) {
    machine.write(0, 0);
    machine.write(0, 0);
}

/// Every write that does not fault is in what is written out.
#[test]
fn dirty_flush_stale_writes() {
    against(
        Bound::Exhaustive,
        From::List,
        one,
        write_twice,
        writes,
        &[NONE, FIRST, BOTH],
    );
}

/// Where no flush is owed, the folio is written at once: a CPU that has not written by its
/// translation faults, and one that has makes reclaim flush.
#[test]
fn dirty_flush_writes_by_a_clean_pte() {
    against(
        Bound::Exhaustive,
        From::List,
        one_by_a_clean_pte,
        write_twice,
        writes,
        &[NONE, FIRST, BOTH],
    );
}

/// Two folios wait for one flush.
#[test]
fn dirty_flush_stale_writes_to_two() {
    fn write(machine: &Machine) {
        machine.write(0, 1);
        machine.write(0, 0);
    }
    against(
        Bound::Exhaustive,
        From::List,
        two,
        write,
        writes,
        &[NONE, FIRST, BOTH],
    );
}

/// Who faults waits for the folio and maps it again: it is not written out then. Or it finds
/// nothing, as it was reclaimed.
#[test]
fn dirty_flush_refault() {
    fn refault(machine: &Machine) {
        if machine.fault(0, true) {
            machine.write(0, 0);
        }
    }
    against(
        Bound::Exhaustive,
        From::Window,
        one,
        refault,
        kept_its_writes,
        &[RECLAIMED, KEPT, MAPPED],
    );
}

/// The same, where the thread wrote by a translation before.
#[test]
fn dirty_flush_write_and_refault() {
    fn write(machine: &Machine) {
        if !machine.write(0, 0) && machine.fault(0, true) {
            machine.write(0, 0);
        }
    }
    against(
        Bound::Preemptions(5),
        From::Window,
        one,
        write,
        kept_its_writes,
        &[RECLAIMED, KEPT, MAPPED],
    );
}

/// Mapped for a moment: what was written meanwhile is either seen or the folio is kept.
#[test]
fn dirty_flush_refault_and_zap() {
    fn refault(machine: &Machine) {
        if machine.fault(1, true) {
            machine.write(0, 1);
            machine.zap(1);
        }
    }
    against(
        Bound::Preemptions(5),
        From::Window,
        two,
        refault,
        kept_its_writes,
        &[RECLAIMED, KEPT, MAPPED],
    );
}

/// A pin from before it is unmapped, or none.
#[test]
fn dirty_flush_pin() {
    fn pin(machine: &Machine) {
        let _kept = machine.pin_and_write(0);
    }
    against(
        Bound::Preemptions(5),
        From::List,
        one,
        pin,
        kept_its_writes,
        &[RECLAIMED, KEPT, PINNED],
    );
}

/// A pin that is dropped: what was written by it is in what is written out.
#[test]
fn dirty_flush_pin_and_put() {
    fn pin(machine: &Machine) {
        if let Some(pin) = machine.pin_and_write(0) {
            pin.put();
        }
    }
    against(
        Bound::Preemptions(5),
        From::List,
        one,
        pin,
        kept_its_writes,
        &[RECLAIMED, KEPT, PINNED],
    );
}

/// Faulted in, pinned, and unmapped again while it waits: nothing but the pin is left to see.
#[test]
fn dirty_flush_refault_pin_and_zap() {
    fn pin(machine: &Machine) {
        if machine.fault(0, false) {
            let _kept = machine.pin_and_write(0);
            machine.zap(0);
        }
    }
    against(
        Bound::Preemptions(5),
        From::Window,
        one,
        pin,
        kept_its_writes,
        &[RECLAIMED, KEPT, MAPPED, PINNED],
    );
}

/// The same of a pin that is dropped, of a file, which does not lose what was written by it: reclaim
/// sees that, as it freezes the references before it asks for the dirty flag.
#[test]
fn dirty_flush_refault_pin_zap_and_put() {
    fn pin(machine: &Machine) {
        if machine.fault(0, false) {
            let pin = machine.pin_and_write(0);
            machine.zap(0);
            if let Some(pin) = pin {
                pin.put();
            }
        }
    }
    against(
        Bound::Preemptions(5),
        From::List,
        one_of_shmem,
        pin,
        kept_its_writes,
        &[RECLAIMED, KEPT],
    );
}

/// The mm unmaps it, with its swap entry, whose slot is free then.
#[test]
fn dirty_flush_slot_free() {
    against(
        Bound::Preemptions(5),
        From::Window,
        one,
        |machine| machine.zap(0),
        ended,
        &[RECLAIMED, KEPT, GONE],
    );
}

/// The file is cut.
#[test]
fn dirty_flush_truncate() {
    against(
        Bound::Preemptions(3),
        From::List,
        one_of_shmem,
        |machine| {
            machine.truncate(0);
        },
        ended,
        &[RECLAIMED, KEPT, GONE],
    );
}

/// Two tasks reclaim, each a folio of its own, and somebody writes to both: a flush of one is a
/// flush for both.
#[test]
fn dirty_flush_two_reclaimers() {
    check(Bound::Preemptions(3), &[NONE, FIRST, BOTH], |outcomes| {
        let machine = Arc::new(Machine::new(1, &two()));
        let theirs = machine.clone();
        let writer = thread::spawn(move || {
            theirs.write(0, 0);
            theirs.write(0, 1);
        });
        let theirs = machine.clone();
        let reclaimer = thread::spawn(move || List::new(&theirs, [1]).shrink().fates[&1]);
        let mut report = List::new(&machine, [0]).shrink();
        writer.join().expect("the writer panicked");
        let fate = reclaimer.join().expect("the other reclaimer panicked");
        report.fates.insert(1, fate);
        assert_eq!(fate, Fate::Reclaimed);
        outcomes.saw(writes(&machine, &report));
    });
}

/// The same, with a fault of one folio.
#[test]
fn dirty_flush_two_reclaimers_and_a_refault() {
    let ends = [RECLAIMED, KEPT, MAPPED];
    check(Bound::Preemptions(3), &ends, |outcomes| {
        let machine = Arc::new(Machine::new(1, &two()));
        let theirs = machine.clone();
        let racer = thread::spawn(move || {
            if !theirs.write(0, 0) && theirs.fault(0, true) {
                theirs.write(0, 0);
            }
        });
        let theirs = machine.clone();
        let reclaimer = thread::spawn(move || List::new(&theirs, [1]).shrink().fates[&1]);
        let report = List::new(&machine, [0]).shrink();
        racer.join().expect("the racer panicked");
        let other = reclaimer.join().expect("the other reclaimer panicked");
        assert_eq!(other, Fate::Reclaimed);
        outcomes.saw(kept_its_writes(&machine, &report));
    });
}
