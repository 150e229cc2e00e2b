// SPDX-License-Identifier: GPL-2.0

//! Plain memory, of which a model is to find that two threads get at it at once.
//!
//! Stands for a plain access in C, which is neither `READ_ONCE()` nor atomic, and which a lock or an
//! order must keep apart. Without loom nothing is found.

use crate::sync::step;
use std::sync::Mutex;

/// What [`Raced`] has loom watch.
#[cfg(loom)]
type Watched = loom::cell::UnsafeCell<()>;

/// A value that is accessed plainly. loom fails a model in which one thread writes to it while
/// another reads or writes, with nothing that orders the two.
#[derive(Debug)]
pub struct Raced<T> {
    #[cfg(loom)]
    watched: Watched,
    value: Mutex<T>,
}

#[cfg(loom)]
#[allow(unsafe_code)]
// SAFETY: What is watched is of size zero: it is never read or written. The value is in a lock.
unsafe impl<T: Send> Sync for Raced<T> {}

impl<T: Copy> Raced<T> {
    /// A plain value.
    pub fn new(value: T) -> Self {
        Self {
            #[cfg(loom)]
            watched: Watched::new(()),
            value: Mutex::new(value),
        }
    }

    /// A plain read.
    ///
    /// # Panics
    ///
    /// If another thread writes at once.
    #[track_caller]
    pub fn get(&self) -> T {
        step!("a plain read");
        #[cfg(loom)]
        self.watched.with(|_| ());
        *self.value.lock().expect("nobody panics with it")
    }

    /// A plain write.
    ///
    /// # Panics
    ///
    /// If another thread reads or writes at once.
    #[track_caller]
    pub fn set(&self, value: T) {
        step!("a plain write");
        #[cfg(loom)]
        self.watched.with_mut(|_| ());
        *self.value.lock().expect("nobody panics with it") = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::{
        explore,
        thread,
        Arc,
        Mutex as ModelMutex, //
    };

    fn two(race: bool) {
        explore(move || {
            let shared = Arc::new((Raced::new(0), ModelMutex::new(())));
            let add = move |(value, lock): &(Raced<u32>, ModelMutex<()>)| {
                let _lock = (!race).then(|| lock.lock().expect("nobody panics"));
                value.set(value.get() + 1);
            };
            let theirs = shared.clone();
            let other = thread::spawn(move || add(&theirs));
            add(&shared);
            other.join().expect("the other thread panicked");
            assert!(race || shared.0.get() == 2);
        });
    }

    #[test]
    fn what_a_lock_keeps_apart_is_no_race() {
        two(false);
    }

    #[cfg(loom)]
    #[test]
    #[should_panic(expected = "Causality violation")]
    fn a_race_is_noticed() {
        two(true);
    }
}
