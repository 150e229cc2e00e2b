// SPDX-License-Identifier: GPL-2.0

//! The kernel's ordered atomics, in C11 terms that loom explores faithfully.
//!
//! loom takes a SeqCst access for an AcqRel one but knows the SeqCst fence, so a fully ordered
//! read-modify-write is a relaxed one between two fences (Documentation/atomic_t.txt says the same
//! of the kernel's: "fully ordered" is smp_mb() on both sides). [`fully_ordered`] is that, for a
//! primitive that is not here yet. tests/loom/ holds each to its ordering, and to no more: smp.rs,
//! tlb.rs for the bit lock, and acquire.rs.
//!
//! | here                    | in 7.3, include/linux/atomic/atomic-instrumented.h               |
//! |-------------------------|------------------------------------------------------------------|
//! | [`atomic_dec_and_test`] | `atomic_dec_and_test()`                                          |
//! | [`atomic_inc_not_zero`] | `atomic_add_unless(v, 1, 0)`                                     |
//! | [`atomic_sub_return`]   | `atomic_sub_return()`, `atomic_sub_and_test()`                   |
//! | [`atomic_cmpxchg`]      | `atomic_cmpxchg()`                                               |
//! | [`atomic_set_release`]  | `atomic_set_release()`                                           |
//!
//! | here                      | in 7.3, include/asm-generic/bitops/lock.h                      |
//! |---------------------------|----------------------------------------------------------------|
//! | [`test_and_set_bit_lock`] | `test_and_set_bit_lock()`                                      |
//! | [`clear_bit_unlock`]      | `clear_bit_unlock()`                                           |
//!
//! | here         | in 7.3, include/asm-generic/barrier.h                                       |
//! |--------------|-----------------------------------------------------------------------------|
//! | [`smp_mb`]   | `smp_mb()`                                                                  |
//! | [`smp_rmb`]  | `smp_rmb()`; an acquire fence, which orders writes behind it as well        |
//!
//! Left out: address, data and control dependencies, which C11 does not have (a model may raise a
//! false alarm there), and load buffering, which loom does not explore (a model may miss a bug
//! there). An atomic read-modify-write and a plain store of the same word are not kept apart by
//! loom: of a store and a concurrent addition the addition alone may be left (a false alarm).
//!
//! loom switches threads in front of an access only, so a write and a full fence behind it would be
//! one step. The read-modify-writes here have a [`place_to_switch`] between the two; a model that
//! needs [`smp_mb`] behind a write of its own must put one there, or may miss a bug.

use crate::sync::{
    atomic::{
        fence,
        AtomicI32,
        AtomicU64,
        AtomicUsize,
        Ordering::{
            Acquire,
            Relaxed,
            Release,
            SeqCst, //
        }, //
    },
    step, //
};

/// A word that threads may be switched at.
pub trait Word {
    /// An access that changes nothing, and that loom takes for one that may.
    fn touch(&self);
}

impl Word for AtomicI32 {
    fn touch(&self) {
        // Fails, or stores what is there.
        let _ = self.compare_exchange(i32::MAX, i32::MAX, Relaxed, Relaxed);
    }
}

impl Word for AtomicU64 {
    fn touch(&self) {
        let _ = self.compare_exchange(u64::MAX, u64::MAX, Relaxed, Relaxed);
    }
}

impl Word for AtomicUsize {
    fn touch(&self) {
        let _ = self.compare_exchange(usize::MAX, usize::MAX, Relaxed, Relaxed);
    }
}

/// Between a write of `v` and a full fence: here others may run, who have to do with `v`.
///
/// The fence behind it then has an acquire's effect for what is in `v` by now. That loses no
/// outcome: the same reads without it are those of an interleaving in which the fence comes first.
pub fn place_to_switch(v: &impl Word) {
    v.touch();
}

/// Makes `rmw`, one relaxed read-modify-write of `v`, fully ordered.
///
/// A load of `v` in front of it would hide what is wrong with the fence behind it: with the fence in
/// front, it is an acquire.
pub fn fully_ordered<T>(v: &AtomicI32, rmw: impl FnOnce(&AtomicI32) -> T) -> T {
    fence(SeqCst);
    let result = rmw(v);
    place_to_switch(v);
    fence(SeqCst);
    result
}

/// `atomic_dec_and_test()`: fully ordered.
pub fn atomic_dec_and_test(v: &AtomicI32) -> bool {
    fully_ordered(v, |v| v.fetch_sub(1, Relaxed)) == 1
}

/// `atomic_sub_return()`: fully ordered.
pub fn atomic_sub_return(i: i32, v: &AtomicI32) -> i32 {
    fully_ordered(v, |v| v.fetch_sub(i, Relaxed)) - i
}

/// `smp_mb()`: everything before it comes before everything behind it, on all CPUs.
pub fn smp_mb() {
    step!("smp_mb()");
    fence(SeqCst);
}

/// `smp_rmb()`: reads before it come before reads behind it.
pub fn smp_rmb() {
    step!("smp_rmb()");
    fence(Acquire);
}

/// The exchange of a compare-and-exchange, fully ordered; or what is there instead.
fn exchange(v: &AtomicI32, old: i32, new: i32) -> Result<i32, i32> {
    fence(SeqCst);
    let was = v.compare_exchange(old, new, Relaxed, Relaxed)?;
    place_to_switch(v);
    fence(SeqCst);
    Ok(was)
}

/// `atomic_cmpxchg()`: fully ordered where it exchanges, unordered where it does not.
pub fn atomic_cmpxchg(v: &AtomicI32, old: i32, new: i32) -> i32 {
    let now = v.load(Relaxed);
    if now != old {
        return now;
    }
    exchange(v, old, new).unwrap_or_else(|now| now)
}

/// `atomic_set_release()`: orders what comes before it.
pub fn atomic_set_release(v: &AtomicI32, i: i32) {
    v.store(i, Release);
}

/// `test_and_set_bit_lock()`: what comes behind it stays there if the bit was clear, else it orders
/// nothing. Whether the bit was set.
pub fn test_and_set_bit_lock(nr: u32, v: &AtomicU64) -> bool {
    let was = v.fetch_or(1 << nr, Relaxed) & (1 << nr) != 0;
    if !was {
        fence(Acquire);
    }
    was
}

/// `clear_bit_unlock()`: orders what comes before it. Whether the bit was set.
pub fn clear_bit_unlock(nr: u32, v: &AtomicU64) -> bool {
    v.fetch_and(!(1 << nr), Release) & (1 << nr) != 0
}

/// `atomic_add_unless(v, 1, 0)`: fully ordered where it adds, unordered where it does not.
///
/// The fence in front is executed as well where another thread made the count zero in between; that
/// loses no outcome, as the load may have found the zero.
pub fn atomic_inc_not_zero(v: &AtomicI32) -> bool {
    let mut old = v.load(Relaxed);
    while old != 0 {
        match exchange(v, old, old + 1) {
            Ok(_) => return true,
            Err(now) => old = now,
        }
    }
    false
}
