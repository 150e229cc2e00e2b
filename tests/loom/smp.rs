// SPDX-License-Identifier: GPL-2.0

//! The atomics and barriers of the shim order what the kernel's do, and no more.
//!
//! What comes before is told by message passing, what comes after by store buffering
//! (Documentation/atomic_t.txt, 7.3, and the tests MP+fencewmbonceonce+fencermbonceonce and
//! SB+fencembonceonces in tools/memory-model/litmus-tests/). The other side has the weakest barrier
//! that will do: a stronger one would stand in for what is missing here.

use mm_shim::{
    model::{
        check,
        Bound, //
    },
    smp::{
        atomic_cmpxchg,
        atomic_dec_and_test,
        atomic_inc_not_zero,
        atomic_set_release,
        atomic_sub_return,
        place_to_switch,
        smp_mb,
        smp_rmb, //
    },
    sync::{
        atomic::{
            AtomicI32,
            Ordering::Relaxed, //
        },
        thread,
        Arc, //
    }, //
};

#[derive(Default)]
struct Vars {
    count: AtomicI32,
    x: AtomicI32,
    y: AtomicI32,
}

impl Vars {
    fn counting(start: i32) -> Arc<Self> {
        let vars = Self::default();
        vars.count.store(start, Relaxed);
        Arc::new(vars)
    }
}

fn is_set(v: &AtomicI32) -> bool {
    v.load(Relaxed) == 1
}

pub(crate) const EARLY: &str = "looked too early";
pub(crate) const SEEN: &str = "saw both writes";
pub(crate) const STALE: &str = "saw the second write and not the first";

/// Message passing: `write` sets x, and then what `read` looks at before it looks at x.
fn passing(start: i32, write: fn(&Vars), read: fn(&Vars) -> (bool, bool), ends: &[&'static str]) {
    check(Bound::Exhaustive, ends, move |outcomes| {
        let vars = Vars::counting(start);
        let theirs = vars.clone();
        let other = thread::spawn(move || read(&theirs));
        write(&vars);
        outcomes.saw(match other.join().expect("the other thread panicked") {
            (false, _) => EARLY,
            (true, true) => SEEN,
            (true, false) => STALE,
        });
    });
}

pub(crate) const ONE: &str = "one saw the other";
pub(crate) const BOTH: &str = "both saw each other";
pub(crate) const NEITHER: &str = "neither saw the other";

/// Store buffering: each of the two writes, and then looks for what the other wrote.
fn buffering(start: i32, here: fn(&Vars) -> bool, there: fn(&Vars) -> bool, ends: &[&'static str]) {
    check(Bound::Exhaustive, ends, move |outcomes| {
        let vars = Vars::counting(start);
        let theirs = vars.clone();
        let other = thread::spawn(move || there(&theirs));
        let seen_here = here(&vars);
        let seen_there = other.join().expect("the other thread panicked");
        outcomes.saw(match (seen_here, seen_there) {
            (true, true) => BOTH,
            (false, false) => NEITHER,
            _ => ONE,
        });
    });
}

/// The count with which each test of a fully ordered operation starts.
const START: i32 = 1;

fn changed(vars: &Vars) -> bool {
    vars.count.load(Relaxed) != START
}

/// Who sees the operation sees what was written before it.
macro_rules! orders_before {
    ($test:ident, $op:expr) => {
        #[test]
        fn $test() {
            passing(
                START,
                |vars| {
                    vars.x.store(1, Relaxed);
                    assert!($op(&vars.count));
                },
                |vars| {
                    let changed = changed(vars);
                    smp_rmb();
                    (changed, is_set(&vars.x))
                },
                &[EARLY, SEEN],
            );
        }
    };
}

/// What comes after the operation sees what was written by whoever did not see it.
macro_rules! orders_after {
    ($test:ident, $op:expr) => {
        #[test]
        fn $test() {
            buffering(
                START,
                |vars| {
                    assert!($op(&vars.count));
                    is_set(&vars.y)
                },
                |vars| {
                    vars.y.store(1, Relaxed);
                    smp_mb();
                    changed(vars)
                },
                &[ONE, BOTH],
            );
        }
    };
}

orders_before!(smp_dec_orders_before, atomic_dec_and_test);
orders_after!(smp_dec_orders_after, atomic_dec_and_test);

fn sub(v: &AtomicI32) -> bool {
    atomic_sub_return(2, v) == START - 2
}
orders_before!(smp_sub_orders_before, sub);
orders_after!(smp_sub_orders_after, sub);

orders_before!(smp_inc_orders_before, atomic_inc_not_zero);
orders_after!(smp_inc_orders_after, atomic_inc_not_zero);

fn cmpxchg(v: &AtomicI32) -> bool {
    atomic_cmpxchg(v, START, 0) == START
}
orders_before!(smp_cmpxchg_orders_before, cmpxchg);
orders_after!(smp_cmpxchg_orders_after, cmpxchg);

fn set(v: &AtomicI32) -> bool {
    atomic_set_release(v, START + 1);
    true
}
orders_before!(smp_set_orders_before, set);

#[test]
fn smp_set_does_not_order_after() {
    buffering(
        START,
        |vars| {
            atomic_set_release(&vars.count, START + 1);
            is_set(&vars.y)
        },
        |vars| {
            vars.y.store(1, Relaxed);
            smp_mb();
            changed(vars)
        },
        &[ONE, BOTH, NEITHER],
    );
}

/// Where an operation fails, it orders nothing, before it or behind it: a model that relied on it
/// must fail.
macro_rules! failed_orders_nothing {
    ($before:ident, $behind:ident, $neither:ident, $op:expr) => {
        #[test]
        fn $before() {
            passing(
                0,
                |vars| {
                    vars.x.store(1, Relaxed);
                    assert!(!$op(&vars.count));
                    vars.y.store(1, Relaxed);
                },
                |vars| {
                    let first = is_set(&vars.y);
                    smp_rmb();
                    (first, is_set(&vars.x))
                },
                &[EARLY, SEEN, STALE],
            );
        }

        #[test]
        fn $behind() {
            passing(
                0,
                |vars| {
                    vars.x.store(1, Relaxed);
                    smp_mb();
                    vars.y.store(1, Relaxed);
                },
                |vars| {
                    let first = is_set(&vars.y);
                    assert!(!$op(&vars.count));
                    (first, is_set(&vars.x))
                },
                &[EARLY, SEEN, STALE],
            );
        }

        #[test]
        fn $neither() {
            buffering(
                0,
                |vars| {
                    vars.x.store(1, Relaxed);
                    assert!(!$op(&vars.count));
                    is_set(&vars.y)
                },
                |vars| {
                    vars.y.store(1, Relaxed);
                    smp_mb();
                    is_set(&vars.x)
                },
                &[ONE, BOTH, NEITHER],
            );
        }
    };
}

failed_orders_nothing!(
    smp_failed_inc_orders_no_writes,
    smp_failed_inc_orders_no_reads,
    smp_failed_inc_orders_nothing,
    atomic_inc_not_zero
);
failed_orders_nothing!(
    smp_failed_cmpxchg_orders_no_writes,
    smp_failed_cmpxchg_orders_no_reads,
    smp_failed_cmpxchg_orders_nothing,
    cmpxchg
);

#[test]
fn smp_mb_orders_a_write_and_a_read() {
    buffering(
        0,
        |vars| {
            vars.x.store(1, Relaxed);
            smp_mb();
            is_set(&vars.y)
        },
        |vars| {
            vars.y.store(1, Relaxed);
            smp_mb();
            is_set(&vars.x)
        },
        &[ONE, BOTH],
    );
}

fn read_with_smp_rmb(vars: &Vars) -> (bool, bool) {
    let first = is_set(&vars.y);
    smp_rmb();
    (first, is_set(&vars.x))
}

#[test]
fn smp_rmb_orders_reads() {
    passing(
        0,
        |vars| {
            vars.x.store(1, Relaxed);
            smp_mb();
            vars.y.store(1, Relaxed);
        },
        read_with_smp_rmb,
        &[EARLY, SEEN],
    );
}

#[test]
fn smp_rmb_orders_no_writes() {
    passing(
        0,
        |vars| {
            vars.x.store(1, Relaxed);
            smp_rmb();
            vars.y.store(1, Relaxed);
        },
        read_with_smp_rmb,
        &[EARLY, SEEN, STALE],
    );
}

#[test]
fn smp_rmb_does_not_order_a_write_and_a_read() {
    buffering(
        0,
        |vars| {
            vars.x.store(1, Relaxed);
            smp_rmb();
            is_set(&vars.y)
        },
        |vars| {
            vars.y.store(1, Relaxed);
            smp_mb();
            is_set(&vars.x)
        },
        &[ONE, BOTH, NEITHER],
    );
}

/// Who is overtaken by another tries again.
#[test]
fn smp_two_increments_are_two() {
    check(Bound::Exhaustive, &["both"], |outcomes| {
        let vars = Vars::counting(1);
        let theirs = vars.clone();
        let other = thread::spawn(move || atomic_inc_not_zero(&theirs.count));
        let ours = atomic_inc_not_zero(&vars.count);
        assert!(ours && other.join().expect("the other thread panicked"));
        outcomes.saw("both");
    });
}

/// A full barrier orders nothing that comes before it among itself: others may run in between.
#[test]
fn smp_a_write_and_a_barrier_are_two_steps() {
    passing(
        0,
        |vars| {
            vars.x.store(1, Relaxed);
            vars.count.fetch_add(1, Relaxed);
            place_to_switch(&vars.count);
            smp_mb();
        },
        |vars| {
            let first = is_set(&vars.count);
            smp_mb();
            (first, is_set(&vars.x))
        },
        &[EARLY, SEEN, STALE],
    );
}
