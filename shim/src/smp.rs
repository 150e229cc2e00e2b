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
//! | [`xchg`], [`cmpxchg`]   | `atomic_xchg()`, `atomic_cmpxchg()`; `xchg()`, `cmpxchg()`       |
//!
//! | here                      | in 7.3, include/asm-generic/bitops/lock.h                      |
//! |---------------------------|----------------------------------------------------------------|
//! | [`test_and_set_bit_lock`] | `test_and_set_bit_lock()`                                      |
//! | [`clear_bit_unlock`]      | `clear_bit_unlock()`                                           |
//!
//! | here                  | in 7.3, include/asm-generic/barrier.h                              |
//! |-----------------------|--------------------------------------------------------------------|
//! | [`smp_mb`]            | `smp_mb()`                                                         |
//! | [`smp_rmb`]           | `smp_rmb()`; an acquire fence, which orders writes behind it, too  |
//! | [`smp_wmb`]           | `smp_wmb()`; a release fence, which orders reads before it, too    |
//! | [`smp_load_acquire`]  | `smp_load_acquire()`                                               |
//! | [`smp_store_release`] | `smp_store_release()`, `atomic_set_release()`                      |
//! | [`read_once`]         | `READ_ONCE()`, include/asm-generic/rwonce.h, without dependencies  |
//! | [`write_once`]        | `WRITE_ONCE()`, same file                                          |
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
        AtomicBool,
        AtomicI32,
        AtomicI64,
        AtomicU32,
        AtomicU64,
        AtomicUsize,
        Ordering,
        Ordering::{
            Acquire,
            Relaxed,
            Release,
            SeqCst, //
        }, //
    },
    step, //
};
use std::fmt::Debug;

/// A word that threads may be switched at. Its methods order nothing but what they are asked for.
pub trait Word {
    /// What it holds.
    type Value: Copy + Eq + Debug;

    /// An access that changes nothing, and that loom takes for one that may.
    fn touch(&self);

    /// A load, relaxed or acquire.
    fn read(&self, order: Ordering) -> Self::Value;

    /// A store, relaxed or release.
    fn write(&self, value: Self::Value, order: Ordering);

    /// An exchange: what was there.
    fn swap(&self, new: Self::Value) -> Self::Value;

    /// An exchange, if it holds `old`; or what is there instead.
    ///
    /// # Errors
    ///
    /// If it does not hold `old`: what it holds.
    fn exchange(&self, old: Self::Value, new: Self::Value) -> Result<Self::Value, Self::Value>;
}

macro_rules! words {
    ($($atomic:ident: $value:ty = $odd:expr),* $(,)?) => {$(
        impl Word for $atomic {
            type Value = $value;

            fn touch(&self) {
                // Fails, or stores what is there.
                let _ = self.compare_exchange($odd, $odd, Relaxed, Relaxed);
            }

            fn read(&self, order: Ordering) -> $value {
                self.load(order)
            }

            fn write(&self, value: $value, order: Ordering) {
                self.store(value, order);
            }

            fn swap(&self, new: $value) -> $value {
                self.swap(new, Relaxed)
            }

            fn exchange(&self, old: $value, new: $value) -> Result<$value, $value> {
                self.compare_exchange(old, new, Relaxed, Relaxed)
            }
        }
    )*};
}

words! {
    AtomicBool: bool = true,
    AtomicI32: i32 = i32::MAX,
    AtomicI64: i64 = i64::MAX,
    AtomicU32: u32 = u32::MAX,
    AtomicU64: u64 = u64::MAX,
    AtomicUsize: usize = usize::MAX,
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
pub fn fully_ordered<W: Word, T>(v: &W, rmw: impl FnOnce(&W) -> T) -> T {
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

/// `smp_wmb()`: writes before it come before writes behind it.
pub fn smp_wmb() {
    step!("smp_wmb()");
    fence(Release);
}

/// `READ_ONCE()`.
pub fn read_once<W: Word>(v: &W) -> W::Value {
    let value = v.read(Relaxed);
    step!("READ_ONCE() = {value:?}");
    value
}

/// `WRITE_ONCE()`.
pub fn write_once<W: Word>(v: &W, value: W::Value) {
    v.write(value, Relaxed);
    step!("WRITE_ONCE({value:?})");
}

/// `smp_load_acquire()`: what comes behind it stays there.
pub fn smp_load_acquire<W: Word>(v: &W) -> W::Value {
    let value = v.read(Acquire);
    step!("smp_load_acquire() = {value:?}");
    value
}

/// `smp_store_release()`, `atomic_set_release()`: what comes before it stays there.
pub fn smp_store_release<W: Word>(v: &W, value: W::Value) {
    v.write(value, Release);
    step!("smp_store_release({value:?})");
}

/// `xchg()`: fully ordered. What was there.
pub fn xchg<W: Word>(v: &W, new: W::Value) -> W::Value {
    let was = fully_ordered(v, |v| Word::swap(v, new));
    step!("xchg({new:?}) = {was:?}");
    was
}

/// The exchange of a compare-and-exchange, fully ordered; or what is there instead.
fn exchange<W: Word>(v: &W, old: W::Value, new: W::Value) -> Result<W::Value, W::Value> {
    fence(SeqCst);
    let was = v.exchange(old, new)?;
    place_to_switch(v);
    fence(SeqCst);
    Ok(was)
}

/// `cmpxchg()`, `atomic_cmpxchg()`: fully ordered where it exchanges, unordered where it does not.
/// What was there.
pub fn cmpxchg<W: Word>(v: &W, old: W::Value, new: W::Value) -> W::Value {
    let now = v.read(Relaxed);
    let was = if now == old {
        exchange(v, old, new).unwrap_or_else(|now| now)
    } else {
        now
    };
    step!("cmpxchg({old:?}, {new:?}) = {was:?}");
    was
}

/// `test_and_set_bit_lock()`: what comes behind it stays there if the bit was clear, else it orders
/// nothing. Whether the bit was set.
pub fn test_and_set_bit_lock(nr: u32, v: &AtomicU64) -> bool {
    let was = v.fetch_or(1 << nr, Relaxed) & (1 << nr) != 0;
    if !was {
        fence(Acquire);
    }
    step!("test_and_set_bit_lock({nr}) = {was}");
    was
}

/// `clear_bit_unlock()`: orders what comes before it. Whether the bit was set.
pub fn clear_bit_unlock(nr: u32, v: &AtomicU64) -> bool {
    let was = v.fetch_and(!(1 << nr), Release) & (1 << nr) != 0;
    step!("clear_bit_unlock({nr}) = {was}");
    was
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
