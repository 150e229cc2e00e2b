// SPDX-License-Identifier: GPL-2.0

//! Locks of one bit.
//!
//! | here                 | in 7.3                                                              |
//! |----------------------|---------------------------------------------------------------------|
//! | [`BitLock::trylock`] | `test_and_set_bit_lock()`, include/asm-generic/bitops/lock.h        |
//! | [`BitLock::unlock`]  | `clear_bit_unlock()`, same file                                     |
//! | [`BitLock::lock`]    | `bit_spin_lock()`, include/linux/bit_spinlock.h; `folio_lock()`     |
//!
//! A `Mutex` of [`crate::sync`] stands for a spin lock or a mutex that is never tried for by a bit.
//! Left out: that a spin lock disables preemption, and who may sleep. A thread that waits gives way
//! to the others, so that loom does not explore that it tries in vain for ever.

use crate::{
    smp,
    sync::{
        atomic::AtomicU64,
        step,
        thread, //
    }, //
};

const LOCKED: u32 = 0;

/// A lock of one bit, which is what `PG_locked` is, and what a page table's or a hash bucket's is.
#[derive(Debug)]
pub struct BitLock {
    word: AtomicU64,
    name: &'static str,
}

impl BitLock {
    /// One that nobody has; a failure says its name.
    pub fn new(name: &'static str) -> Self {
        Self {
            word: AtomicU64::new(0),
            name,
        }
    }

    /// Takes it, if nobody has it. Whether it did.
    pub fn trylock(&self) -> bool {
        let taken = !smp::test_and_set_bit_lock(LOCKED, &self.word);
        step!("the {} is taken: {taken}", self.name);
        taken
    }

    /// Takes it, and waits for that.
    pub fn lock(&self) {
        while !self.trylock() {
            thread::yield_now();
        }
    }

    /// Gives it back.
    ///
    /// # Panics
    ///
    /// If nobody has it.
    pub fn unlock(&self) {
        step!("the {} is given back", self.name);
        let locked = smp::clear_bit_unlock(LOCKED, &self.word);
        assert!(locked, "the {} is unlocked twice", self.name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        raced::Raced,
        sync::{
            explore,
            Arc, //
        }, //
    };

    #[test]
    fn one_has_it_at_a_time() {
        explore(|| {
            let shared = Arc::new((BitLock::new("lock"), Raced::new(0)));
            let add = |(lock, nr): &(BitLock, Raced<u32>)| {
                lock.lock();
                nr.set(nr.get() + 1);
                lock.unlock();
            };
            let theirs = shared.clone();
            let other = thread::spawn(move || add(&theirs));
            add(&shared);
            other.join().expect("the other thread panicked");
            assert_eq!(shared.1.get(), 2);
        });
    }
}
