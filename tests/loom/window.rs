// SPDX-License-Identifier: GPL-2.0

//! What whoever comes in while a folio waits, unlocked, finds: the model of the others keeps to what
//! the kernel's others may rely on.

use mm_shim::{
    model::{
        check,
        Bound, //
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
            Window, //
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
    }, //
};
use std::cell::RefCell;

/// Reclaims one dirty page, with a racer from when it is unlocked on.
fn in_window(
    bound: Bound,
    ends: &[&'static str],
    spec: fn() -> Spec,
    racer: fn(&Machine),
    judge: fn(&Machine, Fate) -> &'static str,
) {
    check(bound, ends, move |outcomes| {
        let machine = Arc::new(Machine::new(1, &[spec()]));
        let started = RefCell::new(None);
        let report = List::new(&machine, 0..1)
            .meanwhile(|_, window| {
                if window == Window::Unlocked {
                    let theirs = machine.clone();
                    started.replace(Some(thread::spawn(move || racer(&theirs))));
                }
            })
            .shrink();
        let started = started.take().expect("the folio was never unlocked");
        started.join().expect("the racer panicked");
        outcomes.saw(judge(&machine, report.fates[&0]));
    });
}

fn page_of(mapping: Mapping) -> Spec {
    Spec {
        pte: Some(WRITE | DIRTY | YOUNG),
        translated: true,
        dirty: false,
        ..Spec::page_of(mapping)
    }
}

const FREED: &str = "freed";
const LEFT: &str = "left";

/// Somebody else has begun to write it.
#[test]
fn window_not_freed_under_writeback() {
    in_window(
        Bound::Preemptions(3),
        &[FREED, LEFT],
        || page_of(Mapping::Shmem),
        |machine| {
            if machine.fault(0, true) {
                machine.zap(0);
                machine.write_back(0);
            }
        },
        |machine, fate| {
            if fate != Fate::Reclaimed {
                return LEFT;
            }
            assert!(
                !machine.folio(0).test(Flag::Writeback),
                "freed under writeback"
            );
            FREED
        },
    );
}

/// A zap takes a swap entry away whose page's flush reclaim still owes.
#[test]
fn window_a_zap_has_flushed() {
    in_window(
        Bound::Exhaustive,
        &["zapped"],
        || page_of(Mapping::Swap),
        |machine| {
            machine.zap(0);
            assert!(!machine.write(0, 0), "written to behind a zap");
        },
        |_, _| "zapped",
    );
}

/// Who has the lock finds it dirty, or being written, and never neither.
#[test]
fn window_writeback_is_set_under_the_lock() {
    in_window(
        Bound::Preemptions(3),
        &["looked"],
        || Spec {
            write: Write::Begun,
            ..page_of(Mapping::Shmem)
        },
        |machine| {
            let folio = machine.folio(0);
            if !folio.core.try_get() {
                return;
            }
            if folio.trylock() {
                assert!(
                    folio.core.is_dirty() || folio.test(Flag::Writeback),
                    "neither dirty nor under writeback"
                );
                folio.unlock();
            }
            machine.put(0, 1);
        },
        |_, _| "looked",
    );
}
