// SPDX-License-Identifier: GPL-2.0

//! Two reclaimers, four CPUs, and as many folios as fill several batches, each of which may be
//! written to, faulted in, pinned, zapped, moved, truncated and written by somebody else at any
//! time.

use mm_shim::{
    pte::{
        DIRTY,
        WRITE,
        YOUNG, //
    },
    random::{
        check,
        Choice,
        Seen, //
    },
    reclaim::{
        list::List,
        report::{
            Event,
            Fate,
            Report, //
        },
        Machine,
        Mapping,
        Spec,
        Write, //
    },
    sync::{
        thread,
        Arc, //
    }, //
};
use shuttle::rand::{
    thread_rng,
    Rng, //
};

const NR_CPUS: usize = 4;
const NR_FOLIOS: usize = 80;

const RECLAIMED: &str = "reclaimed";
const KEPT: &str = "kept";
const ACTIVATED: &str = "activated";
const FULL: &str = "a batch was full";
const FAULTED: &str = "faulted in again";
pub(crate) const STALE: &str = "written without a PTE";
pub(crate) const TAKEN_BACK: &str = "most of a batch was taken back";
pub(crate) const SHARED: &str = "two batches had one flush";
pub(crate) const GONE: &str = "moved, or taken from its file";

/// What is seen in any case.
const ALWAYS: [&str; 5] = [RECLAIMED, KEPT, ACTIVATED, FULL, FAULTED];

/// Most are dirty pages that each CPU has a translation of.
pub(crate) fn of(mapping: Mapping) -> Spec {
    let mut rng = thread_rng();
    let pte = match rng.gen_range(0..10) {
        0 => None,
        1 => Some(WRITE | YOUNG),
        _ => Some(WRITE | DIRTY | YOUNG),
    };
    let nr = match rng.gen_range(0..64) {
        // Waits for nothing; and all but fills a batch.
        0 => 512,
        1..=2 => 511,
        3..=6 => 16,
        7..=14 => 4,
        _ => 1,
    };
    let write = match rng.gen_range(0..10) {
        0 => Write::Begun,
        1 => Write::Failed,
        2 if nr == 4 && mapping == Mapping::Shmem => Write::Split,
        _ => Write::Done,
    };
    Spec {
        nr,
        pte,
        translated: pte.is_some(),
        dirty: pte.is_none() || rng.gen(),
        write,
        ..Spec::page_of(mapping)
    }
}

/// What a thread does to folios beside writing to them.
type Others = fn(&Machine, usize, &Seen);

/// One instruction after the other, to whichever folio.
fn use_folios(machine: &Machine, cpu: usize, others: Others, seen: &Seen) {
    for _ in 0..40 {
        let index = thread_rng().gen_range(0..NR_FOLIOS);
        if thread_rng().gen_ratio(2, 3) {
            let mapped = machine.mapped(index);
            if machine.write(cpu, index) && !mapped {
                seen.saw(STALE);
            }
        } else {
            others(machine, index, seen);
        }
    }
}

/// What leaves the page to the mm, or to the file.
fn keep_all(machine: &Machine, index: usize, seen: &Seen) {
    let again = match thread_rng().gen_range(0..8) {
        0 => {
            machine.clean(index);
            false
        }
        1 => {
            let _kept = machine.pin_and_write(index);
            false
        }
        2 => {
            if let Some(pin) = machine.pin_and_write(index) {
                pin.put();
            }
            false
        }
        3 => machine.swapoff(index),
        4 => machine.fault_around(index),
        _ => machine.fault(index, true),
    };
    if again {
        seen.saw(FAULTED);
    }
}

/// The same, and what does not.
fn take_some(machine: &Machine, index: usize, seen: &Seen) {
    let gone = match thread_rng().gen_range(0..6) {
        0 => {
            machine.zap(index);
            false
        }
        1 => machine.truncate(index),
        2 => machine.punch_hole(index, || {
            machine.fault_around(index);
        }),
        3 => machine.uffd_move(index),
        _ => {
            keep_all(machine, index, seen);
            false
        }
    };
    if gone {
        seen.saw(GONE);
    }
}

/// How a list is reclaimed, and what each of its folios is.
#[derive(Clone, Copy)]
pub(crate) struct Path {
    pub(crate) shrink: fn(List<'_>) -> Report,
    pub(crate) spec: fn(usize) -> Spec,
}

fn reclaim(machine: &Machine, path: Path, odd: usize) -> Report {
    (path.shrink)(List::new(machine, (odd..NR_FOLIOS).step_by(2)))
}

/// Two reclaimers, each with every other folio, and all CPUs.
fn reclaim_against(path: Path, others: Others, seen: &Seen) -> (Arc<Machine>, [Report; 2]) {
    let specs: Vec<_> = (0..NR_FOLIOS).map(path.spec).collect();
    let machine = Arc::new(Machine::new(NR_CPUS, &specs));
    let cpus = (0..NR_CPUS).map(|cpu| {
        let (machine, seen) = (machine.clone(), seen.clone());
        thread::spawn(move || use_folios(&machine, cpu, others, &seen))
    });
    let cpus: Vec<_> = cpus.collect();
    let theirs = machine.clone();
    let other = thread::spawn(move || reclaim(&theirs, path, 1));
    let report = reclaim(&machine, path, 0);
    let other = other.join().expect("the other reclaimer panicked");
    for cpu in cpus {
        cpu.join().expect("a CPU panicked");
    }
    (machine, [report, other])
}

/// What each reclaimer says of its folios is so, and no store is lost, whoever made it.
fn judge(machine: &Machine, reports: &[Report; 2], seen: &Seen) {
    (0..machine.nr_folios()).for_each(|index| machine.assert_nothing_lost(index));
    for report in reports {
        for (&index, fate) in &report.fates {
            let freed = machine.folio(index).is_freed();
            seen.saw(match fate {
                Fate::Reclaimed => RECLAIMED,
                Fate::Activated => ACTIVATED,
                Fate::Kept => KEPT,
                Fate::Dropped => panic!("no folio was poisoned"),
            });
            assert!(freed || *fate != Fate::Reclaimed, "folio {index} is left");
        }
        let waited = |event: &&Event| matches!(event, Event::Waits(_));
        let runs = report
            .events
            .split(|event| matches!(event, Event::Flushed(_)));
        let longest = runs.map(|run| run.iter().filter(waited).count()).max();
        let together = |event: &Event| matches!(event, Event::Collected(_));
        // A batch comes to those that wait whole.
        let most = if report.events.iter().any(together) {
            31 + 32
        } else {
            32
        };
        assert!(longest <= Some(most), "{longest:?} folios wait");
        // Of the batch at hand, and of those that wait.
        let (mut collected, mut waits, mut batches) = (0, false, 0);
        for event in &report.events {
            match event {
                Event::Collected(_) => collected += 1,
                Event::Waits(_) => waits = true,
                Event::Ended => {
                    if collected == 32 {
                        seen.saw(FULL);
                    }
                    batches += usize::from(waits);
                    (collected, waits) = (0, false);
                }
                Event::Flushed(nr) => {
                    if *nr == 32 {
                        seen.saw(FULL);
                    }
                    if batches > 1 {
                        seen.saw(SHARED);
                    }
                    batches = 0;
                }
                Event::TakenBack(_) => seen.saw(TAKEN_BACK),
                _ => (),
            }
        }
    }
}

/// Nobody gives a page up: what is gone was reclaimed.
fn nothing_is_lost(path: Path, seen: &Seen) {
    let (machine, reports) = reclaim_against(path, keep_all, seen);
    judge(&machine, &reports, seen);
    for report in &reports {
        for (&index, fate) in &report.fates {
            let freed = machine.folio(index).is_freed();
            assert!(!freed || *fate == Fate::Reclaimed, "folio {index} is gone");
        }
    }
}

/// Pages are given up and moved: none is stored to behind that, used once it is free, or freed twice.
fn nothing_is_freed_twice(path: Path, seen: &Seen) {
    let (machine, reports) = reclaim_against(path, take_some, seen);
    judge(&machine, &reports, seen);
}

/// How often a test is run, each in another order.
const RUNS: usize = 500;

/// Checks lists of which nobody gives a page up, in which `more` is seen as well.
pub(crate) fn check_kept(choice: Choice, path: Path, more: &[&'static str]) {
    let wanted = [&ALWAYS, more].concat();
    check(choice, RUNS, &wanted, move |seen| {
        nothing_is_lost(path, seen)
    });
}

/// The same of lists of which pages are given up and moved.
pub(crate) fn check_taken(choice: Choice, path: Path, more: &[&'static str]) {
    let wanted = [&ALWAYS, more].concat();
    check(choice, RUNS, &wanted, move |seen| {
        nothing_is_freed_twice(path, seen)
    });
}
