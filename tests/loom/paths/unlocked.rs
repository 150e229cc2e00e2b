// SPDX-License-Identifier: GPL-2.0

//! A folio that reclaim, or khugepaged, has unmapped and unlocked: a CPU stores by a translation that
//! is left, and somebody else gets the lock, finds nothing mapped, and goes by that.
//!
//! In every execution each store that did not fault is where it is looked for:
//! `Machine::assert_nothing_lost()`. Where a model fails, it prints the command that runs that very
//! interleaving again: `make loom T=<model> REPLAY=<file>`. To see one fail, take out what mends it:
//! `git apply $(find tests -name <name>.patch)`, by a name that stands with the model, and `make loom
//! T=<model>`; `make mutants T=<name>` does that and sees that it fails.

use crate::paths::dirty_flush::{
    against,
    folio,
    one,
    From, //
};
use mm_shim::{
    model::{
        check,
        Bound, //
    },
    reclaim::{
        list::List,
        report::{
            Fate,
            Report, //
        },
        Flag,
        Machine,
        Mapping,
        Spec,
        Write, //
    },
    sync::{
        thread,
        Arc, //
    },
    tlb::Deferred, //
};

const RECLAIMED: &str = "written out, and reclaimed";
const PUT_BACK: &str = "put back";

/// A loop of reclaim.
pub(crate) type Shrink = fn(List<'_>) -> Report;

pub(crate) const OFF: Shrink = |list| list.shrink_unbatched();
const BATCHED: Shrink = |list| list.shrink();

/// Reclaims the folios against a racer, who is the only CPU; `end` says how it ended, of what the
/// racer says.
pub(crate) fn shrink_against(
    shrink: Shrink,
    specs: fn() -> Vec<Spec>,
    racer: fn(&Machine) -> bool,
    end: fn(&Machine, &Report, bool) -> &'static str,
    ends: &[&'static str],
) {
    check(Bound::Preemptions(3), ends, move |outcomes| {
        let specs = specs();
        let machine = Arc::new(Machine::new(1, &specs));
        let theirs = machine.clone();
        let racer = thread::spawn(move || racer(&theirs));
        let report = shrink(List::new(&machine, 0..specs.len()));
        let raced = racer.join().expect("the racer panicked");
        (0..specs.len()).for_each(|index| machine.assert_nothing_lost(index));
        outcomes.saw(end(&machine, &report, raced));
    });
}

/// A dirty page of a file, which reclaim unmaps and activates, is written out by a flusher, who finds
/// it unmapped; and then a CPU stores to it. Linux 7.3 loses that.
///
/// mutants: unlocked-dirty-is-not-flushed-for, unlocked-dirty-is-not-flushed-for-in-a-batch
fn written_back(shrink: Shrink) {
    shrink_against(
        shrink,
        || vec![folio(Mapping::File)],
        |machine| {
            machine.clean(0);
            machine.write(0, 0)
        },
        |_, report, _| match report.fates[&0] {
            Fate::Reclaimed => RECLAIMED,
            _ => PUT_BACK,
        },
        &[RECLAIMED, PUT_BACK],
    );
}

#[test]
fn unlocked_file_is_written_back() {
    written_back(OFF);
}

#[test]
fn unlocked_file_is_written_back_in_a_batch() {
    written_back(BATCHED);
}

/// The same, of a CPU that stores at any time: what it stored before the flush is in what the flusher
/// writes.
#[test]
fn unlocked_file_is_written_back_and_stored_to() {
    check(Bound::Preemptions(2), &[RECLAIMED, PUT_BACK], |outcomes| {
        let machine = Arc::new(Machine::new(1, &[folio(Mapping::File)]));
        let theirs = machine.clone();
        let flusher = thread::spawn(move || theirs.clean(0));
        let theirs = machine.clone();
        let cpu = thread::spawn(move || theirs.write(0, 0) && theirs.write(0, 0));
        let report = List::new(&machine, [0]).shrink_unbatched();
        flusher.join().expect("the flusher panicked");
        cpu.join().expect("the CPU panicked");
        machine.assert_nothing_lost(0);
        outcomes.saw(match report.fates[&0] {
            Fate::Reclaimed => RECLAIMED,
            _ => PUT_BACK,
        });
    });
}

const PUNCHED: &str = "the hole was punched";
const LEFT: &str = "it was not";

/// A hole is punched, and a fault in the next page maps the folio again in between; then reclaim
/// unmaps it, and the hole finds it unmapped. What the CPU stores behind the hole must fault.
fn punch_hole(machine: &Machine) -> bool {
    let index = machine.nr_folios() - 1;
    let between = || {
        if machine.fault_around(index) {
            machine.write(0, index);
        }
    };
    let punched = machine.punch_hole(index, between);
    machine.write(0, index);
    punched
}

fn punched(_: &Machine, _: &Report, punched: bool) -> &'static str {
    if punched {
        PUNCHED
    } else {
        LEFT
    }
}

#[test]
fn unlocked_shmem_is_punched() {
    shrink_against(
        OFF,
        || vec![folio(Mapping::Shmem)],
        punch_hole,
        punched,
        &[PUNCHED, LEFT],
    );
}

/// mutants: reclaim-shmem-waits
#[test]
fn unlocked_shmem_is_punched_in_a_batch() {
    shrink_against(
        BATCHED,
        || vec![folio(Mapping::Shmem)],
        punch_hole,
        punched,
        &[PUNCHED, LEFT],
    );
}

/// Behind a page that waits it is unlocked, as one that is flushed for.
///
/// mutants: reclaim-shmem-waits
#[test]
fn unlocked_shmem_is_punched_behind_a_batch() {
    shrink_against(
        BATCHED,
        || vec![folio(Mapping::Swap), folio(Mapping::Shmem)],
        punch_hole,
        punched,
        &[PUNCHED, LEFT],
    );
}

/// As the hole, but that the range is unmapped once more in the end.
#[test]
fn unlocked_shmem_is_truncated_in_a_batch() {
    shrink_against(
        BATCHED,
        || vec![folio(Mapping::Shmem)],
        |machine| {
            let truncated = machine.truncate(0);
            machine.write(0, 0);
            truncated
        },
        punched,
        &[PUNCHED, LEFT],
    );
}

const MOVED: &str = "moved";
const MOVED_AND_RECLAIMED: &str = "moved, and reclaimed";
const STAYED: &str = "not moved";

/// A page that waits is moved to another address; what is stored to the old one must fault.
///
/// mutants: reclaim-move-does-not-flush
#[test]
fn unlocked_anon_is_moved() {
    against(
        Bound::Preemptions(3),
        From::Window,
        one,
        |machine| {
            machine.uffd_move(0);
            machine.write(0, 0);
        },
        |machine, report| {
            machine.assert_nothing_lost(0);
            match (machine.table.ptep_get(0), report.fates[&0]) {
                (0, Fate::Reclaimed) => MOVED_AND_RECLAIMED,
                (0, _) => MOVED,
                _ => STAYED,
            }
        },
        &[MOVED, MOVED_AND_RECLAIMED, STAYED],
    );
}

/// A page in swap is moved while its range is unmapped: one of both finds its entry.
#[test]
fn unlocked_anon_is_moved_or_unmapped() {
    check(Bound::Preemptions(3), &[MOVED, STAYED], |outcomes| {
        let machine = Arc::new(Machine::new(1, &one()));
        let deferred = Deferred::default();
        machine.try_to_unmap(0, &deferred);
        deferred.flush(&machine.cpus);
        let theirs = machine.clone();
        let zap = thread::spawn(move || theirs.zap(0));
        let moved = machine.uffd_move(0);
        zap.join().expect("who unmaps the range panicked");
        outcomes.saw(if moved { MOVED } else { STAYED });
    });
}

const MAPPED: &str = "mapped again";
const GONE: &str = "reclaimed";
const KEPT: &str = "kept";

/// The swap device goes while the page waits, which maps it read-only, and a CPU stores by its old
/// translation.
#[test]
fn unlocked_anon_meets_swapoff() {
    against(
        Bound::Preemptions(3),
        From::Window,
        one,
        |machine| {
            machine.swapoff(0);
            machine.write(0, 0);
        },
        |machine, report| {
            machine.assert_nothing_lost(0);
            match report.fates[&0] {
                Fate::Activated => MAPPED,
                Fate::Reclaimed => GONE,
                _ => KEPT,
            }
        },
        &[MAPPED, GONE, KEPT],
    );
}

const BY_RECLAIM: &str = "reclaim isolated it";
const BY_KHUGEPAGED: &str = "khugepaged had it";

/// khugepaged unmaps a page of shmem, and fails. Reclaim, which owes nothing, writes it out; then a
/// CPU stores to it.
///
/// mutants: reclaim-khugepaged-flushes-behind-the-unlock
#[test]
fn unlocked_by_khugepaged() {
    check(
        Bound::Preemptions(3),
        &[BY_RECLAIM, BY_KHUGEPAGED],
        |outcomes| {
            let spec = Spec {
                flags: vec![Flag::Lru],
                write: Write::Begun,
                ..folio(Mapping::Shmem)
            };
            let machine = Arc::new(Machine::new(1, &[spec]));
            let theirs = machine.clone();
            let khugepaged = thread::spawn(move || theirs.collapse_file(0));
            let isolated = machine.isolate(0);
            if isolated {
                List::new(&machine, [0]).shrink_unbatched();
                machine.write(0, 0);
            }
            khugepaged.join().expect("khugepaged panicked");
            machine.assert_nothing_lost(0);
            outcomes.saw(if isolated { BY_RECLAIM } else { BY_KHUGEPAGED });
        },
    );
}
