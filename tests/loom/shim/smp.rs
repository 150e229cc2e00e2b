// SPDX-License-Identifier: GPL-2.0

//! The atomics and barriers of the shim order what the kernel's do, and no more.
//!
//! What comes before is told by message passing, what comes after by store buffering
//! (Documentation/atomic_t.txt, 7.3, and the tests MP+fencewmbonceonce+fencermbonceonce and
//! SB+fencembonceonces in tools/memory-model/litmus-tests/). The other side has the weakest barrier
//! that will do: a stronger one would stand in for what is missing here.

use crate::litmus::{
    buffering,
    passing,
    race,
    BOTH,
    EARLY,
    NEITHER,
    ONE,
    SEEN,
    STALE, //
};
use mm_shim::{
    smp::{
        atomic_dec_and_test,
        atomic_inc_not_zero,
        atomic_sub_return,
        cmpxchg,
        place_to_switch,
        smp_load_acquire,
        smp_mb,
        smp_rmb,
        smp_store_release,
        smp_wmb,
        xchg, //
    },
    sync::atomic::{
        AtomicI32,
        Ordering::Relaxed, //
    }, //
};

#[derive(Default)]
struct Vars {
    count: AtomicI32,
    x: AtomicI32,
    y: AtomicI32,
}

/// The count with which each test of a fully ordered operation starts.
const START: i32 = 1;

impl Vars {
    fn counting() -> Self {
        let vars = Self::default();
        vars.count.store(START, Relaxed);
        vars
    }
}

fn is_set(v: &AtomicI32) -> bool {
    v.load(Relaxed) == 1
}

fn changed(vars: &Vars) -> bool {
    vars.count.load(Relaxed) != START
}

/// Who sees the operation sees what was written before it.
macro_rules! orders_before {
    ($test:ident, $op:expr) => {
        #[test]
        fn $test() {
            passing(
                Vars::counting,
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

/// What comes after the operation, and whoever did not see it: how the two may end.
macro_rules! after {
    ($test:ident, $op:expr, $ends:expr) => {
        #[test]
        fn $test() {
            buffering(
                Vars::counting,
                |vars| {
                    assert!($op(&vars.count));
                    is_set(&vars.y)
                },
                |vars| {
                    vars.y.store(1, Relaxed);
                    smp_mb();
                    changed(vars)
                },
                $ends,
            );
        }
    };
}

/// What comes after the operation sees what was written by whoever did not see it.
macro_rules! orders_after {
    ($test:ident, $op:expr) => {
        after!($test, $op, &[ONE, BOTH]);
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

fn exchanged(v: &AtomicI32) -> bool {
    cmpxchg(v, START, 0) == START
}
orders_before!(smp_cmpxchg_orders_before, exchanged);
orders_after!(smp_cmpxchg_orders_after, exchanged);

fn swapped(v: &AtomicI32) -> bool {
    xchg(v, 0) == START
}
orders_before!(smp_xchg_orders_before, swapped);
orders_after!(smp_xchg_orders_after, swapped);

fn released(v: &AtomicI32) -> bool {
    smp_store_release(v, START + 1);
    true
}
orders_before!(smp_store_release_orders_before, released);

// What comes after it may be done before it.
after!(
    smp_store_release_does_not_order_after,
    released,
    &[ONE, BOTH, NEITHER]
);

/// Where an operation fails, it orders nothing, before it or behind it: a model that relied on it
/// must fail.
macro_rules! failed_orders_nothing {
    ($before:ident, $behind:ident, $neither:ident, $op:expr) => {
        #[test]
        fn $before() {
            passing(
                Vars::default,
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
                Vars::default,
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
                Vars::default,
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
    exchanged
);

#[test]
fn smp_mb_orders_a_write_and_a_read() {
    buffering(
        Vars::default,
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

fn write_with_smp_wmb(vars: &Vars) {
    vars.x.store(1, Relaxed);
    smp_wmb();
    vars.y.store(1, Relaxed);
}

#[test]
fn smp_wmb_orders_writes() {
    passing(
        Vars::default,
        write_with_smp_wmb,
        read_with_smp_rmb,
        &[EARLY, SEEN],
    );
}

#[test]
fn smp_wmb_orders_no_reads() {
    let read = |vars: &Vars| {
        let first = is_set(&vars.y);
        smp_wmb();
        (first, is_set(&vars.x))
    };
    passing(
        Vars::default,
        write_with_smp_wmb,
        read,
        &[EARLY, SEEN, STALE],
    );
}

#[test]
fn smp_load_acquire_orders_reads() {
    let read = |vars: &Vars| {
        let first = smp_load_acquire(&vars.y) == 1;
        (first, is_set(&vars.x))
    };
    passing(Vars::default, write_with_smp_wmb, read, &[EARLY, SEEN]);
}

#[test]
fn smp_load_acquire_does_not_order_what_is_before() {
    buffering(
        Vars::default,
        |vars| {
            vars.x.store(1, Relaxed);
            smp_load_acquire(&vars.y) == 1
        },
        |vars| {
            vars.y.store(1, Relaxed);
            smp_mb();
            is_set(&vars.x)
        },
        &[ONE, BOTH, NEITHER],
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
        Vars::default,
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
        Vars::default,
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
        Vars::default,
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
    let inc = |vars: &Vars| atomic_inc_not_zero(&vars.count);
    let both = |here, there| {
        assert!(here && there);
        "both"
    };
    race(Vars::counting, inc, inc, both, &["both"]);
}

/// A full barrier orders nothing that comes before it among itself: others may run in between.
#[test]
fn smp_a_write_and_a_barrier_are_two_steps() {
    passing(
        Vars::default,
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
