// SPDX-License-Identifier: GPL-2.0

//! The atomics of the shim order what the kernel's do, and no more.
//!
//! A fully ordered atomic has `smp_mb()` on both sides. What comes before it is told by message
//! passing, what comes after it by store buffering (Documentation/atomic_t.txt, 7.2, and
//! the tests MP+fencewmbonceonce+fencermbonceonce and SB+fencembonceonces in
//! tools/memory-model/litmus-tests/).

use mm_shim::{
    model::{
        check,
        Bound, //
    },
    smp::{
        atomic_dec_and_test,
        atomic_inc_not_zero, //
    },
    sync::{
        atomic::{
            fence,
            AtomicI32,
            Ordering::{
                Relaxed,
                SeqCst, //
            }, //
        },
        thread,
        Arc, //
    }, //
};

type Op = fn(&AtomicI32) -> bool;

#[derive(Default)]
struct Vars {
    count: AtomicI32,
    x: AtomicI32,
    y: AtomicI32,
}

/// Who sees the operation sees what was written before it.
fn orders_before(name: &str, op: Op) {
    const EARLY: &str = "looked too early";
    const SEEN: &str = "saw the count and the write";
    check(name, Bound::Exhaustive, &[EARLY, SEEN], move |outcomes| {
        let vars = Arc::new(Vars::default());
        vars.count.store(1, Relaxed);
        let theirs = vars.clone();
        let other = thread::spawn(move || {
            let changed = theirs.count.load(Relaxed) != 1;
            fence(SeqCst);
            (changed, theirs.x.load(Relaxed))
        });
        vars.x.store(1, Relaxed);
        op(&vars.count);
        outcomes.saw(match other.join().expect("the other thread panicked") {
            (false, _) => EARLY,
            (true, 1) => SEEN,
            (true, _) => "saw the count and not the write",
        });
    });
}

const ONE: &str = "one saw the other";
const BOTH: &str = "both saw each other";
const NEITHER: &str = "neither saw the other";

/// The operation, or with `stored` a write before it, and then a look at what another thread wrote
/// before it looked here.
fn orders_after(name: &str, op: Op, start: i32, stored: bool, ends: &[&'static str]) {
    check(name, Bound::Exhaustive, ends, move |outcomes| {
        let vars = Arc::new(Vars::default());
        vars.count.store(start, Relaxed);
        let theirs = vars.clone();
        let other = thread::spawn(move || {
            theirs.y.store(1, Relaxed);
            fence(SeqCst);
            if stored {
                theirs.x.load(Relaxed) == 1
            } else {
                theirs.count.load(Relaxed) != start
            }
        });
        if stored {
            vars.x.store(1, Relaxed);
        }
        op(&vars.count);
        let here = vars.y.load(Relaxed) == 1;
        let there = other.join().expect("the other thread panicked");
        outcomes.saw(match (here, there) {
            (true, true) => BOTH,
            (false, false) => NEITHER,
            _ => ONE,
        });
    });
}

#[test]
fn smp_dec_orders_before() {
    orders_before("smp_dec_orders_before", atomic_dec_and_test);
}

#[test]
fn smp_dec_orders_after() {
    let ends = [ONE, BOTH];
    orders_after("smp_dec_orders_after", atomic_dec_and_test, 1, false, &ends);
}

#[test]
fn smp_inc_orders_before() {
    orders_before("smp_inc_orders_before", atomic_inc_not_zero);
}

#[test]
fn smp_inc_orders_after() {
    let ends = [ONE, BOTH];
    orders_after("smp_inc_orders_after", atomic_inc_not_zero, 1, false, &ends);
}

/// Where the count is zero, nothing is ordered: a model that relied on it must fail.
#[test]
fn smp_failed_inc_orders_nothing() {
    let ends = [ONE, BOTH, NEITHER];
    orders_after(
        "smp_failed_inc_orders_nothing",
        atomic_inc_not_zero,
        0,
        true,
        &ends,
    );
}
