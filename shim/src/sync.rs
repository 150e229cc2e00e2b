// SPDX-License-Identifier: GPL-2.0

//! The one place that says std, loom (`--cfg loom`) or shuttle (`--cfg shuttle`). Everything else
//! uses what is exported here.
//!
//! Models nothing of the kernel: a `Mutex` here stands for whatever lock the module that uses it
//! names. Left out: everything that loom does not know, such as a lock that spins, or a thread that
//! sleeps with a timeout. More than five threads are for shuttle.

#[cfg(loom)]
use loom as chosen;
#[cfg(shuttle)]
use shuttle as chosen;
#[cfg(not(any(loom, shuttle)))]
use std as chosen;

pub use chosen::{
    sync::{
        atomic,
        Arc,
        Mutex,
        MutexGuard, //
    },
    thread, //
};

/// A line of a replay's log: what a thread of the model did, with the values that it read or wrote.
#[cfg(loom)]
macro_rules! step {
    ($($what:tt)*) => {
        tracing::trace!(by = ?loom::thread::current().id(), $($what)*)
    };
}
#[cfg(not(loom))]
macro_rules! step {
    ($($what:tt)*) => {{
        let _ = format_args!($($what)*);
    }};
}
pub(crate) use step;

/// Runs `test`: in every interleaving with `--cfg loom`, and in one with `--cfg shuttle`, where
/// nothing of the shim may be used outside of this or of a model; once without.
///
/// For tests and examples of one thread, which are the same in both. What has several threads wants
/// `model::check()`.
pub fn explore(test: impl Fn() + Send + Sync + 'static) {
    #[cfg(loom)]
    loom::model(test);
    #[cfg(shuttle)]
    shuttle::check(test);
    #[cfg(not(any(loom, shuttle)))]
    test();
}
