// SPDX-License-Identifier: GPL-2.0

//! The kernel's ordered atomics, in C11 terms that loom explores faithfully.
//!
//! loom takes a SeqCst access for an AcqRel one but knows the SeqCst fence, so a fully ordered
//! read-modify-write is a relaxed one between two fences (Documentation/atomic_t.txt says the same
//! of the kernel's: "fully ordered" is smp_mb() on both sides). tests/loom/smp.rs holds them to
//! that.
//!
//! | here                    | in 7.2, include/linux/atomic/atomic-instrumented.h               |
//! |-------------------------|------------------------------------------------------------------|
//! | [`atomic_dec_and_test`] | `atomic_dec_and_test()`                                          |
//! | [`atomic_inc_not_zero`] | `atomic_add_unless(v, 1, 0)`                                     |
//! | [`atomic_sub_return`]   | `atomic_sub_return()`, `atomic_sub_and_test()`                   |
//!
//! | here         | in 7.2, include/asm-generic/barrier.h                                       |
//! |--------------|-----------------------------------------------------------------------------|
//! | [`smp_mb`]   | `smp_mb()`                                                                  |
//! | [`smp_rmb`]  | `smp_rmb()`; an acquire fence, which orders writes behind it as well        |
//!
//! Left out: address, data and control dependencies, which C11 does not have (a model may raise a
//! false alarm there), and load buffering, which loom does not explore (a model may miss a bug
//! there). loom also takes an operation and a fence behind it for one step: that the fence in front
//! of an operation is missing shows only where the one behind it is missing as well.

use crate::sync::atomic::{
    fence,
    AtomicI32,
    Ordering::{
        Acquire,
        Relaxed,
        SeqCst, //
    }, //
};

/// `atomic_dec_and_test()`: fully ordered.
pub fn atomic_dec_and_test(v: &AtomicI32) -> bool {
    fence(SeqCst);
    let old = v.fetch_sub(1, Relaxed);
    fence(SeqCst);
    old == 1
}

/// `atomic_sub_return()`: fully ordered.
pub fn atomic_sub_return(i: i32, v: &AtomicI32) -> i32 {
    fence(SeqCst);
    let old = v.fetch_sub(i, Relaxed);
    fence(SeqCst);
    old - i
}

/// `smp_mb()`: everything before it comes before everything behind it, on all CPUs.
pub fn smp_mb() {
    fence(SeqCst);
}

/// `smp_rmb()`: reads before it come before reads behind it.
pub fn smp_rmb() {
    fence(Acquire);
}

/// `atomic_add_unless(v, 1, 0)`: fully ordered where it adds, unordered where it does not.
pub fn atomic_inc_not_zero(v: &AtomicI32) -> bool {
    let mut old = v.load(Relaxed);
    while old != 0 {
        fence(SeqCst);
        match v.compare_exchange(old, old + 1, Relaxed, Relaxed) {
            Ok(_) => {
                fence(SeqCst);
                return true;
            }
            Err(now) => old = now,
        }
    }
    false
}
