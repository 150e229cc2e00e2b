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

/// A line of a replay's log: what a thread of the model did, with the values that it read or wrote,
/// as `format!()` takes it. `LOOM_LOG=mm_shim=trace` shows the lines of the shim and of models alike.
#[cfg(loom)]
#[macro_export]
macro_rules! step {
    ($($what:tt)*) => {
        $crate::sync::tracing::trace!(
            target: "mm_shim",
            by = %$crate::sync::current(),
            $($what)*
        )
    };
}
/// Without loom there is no log.
#[cfg(not(loom))]
#[macro_export]
macro_rules! step {
    ($($what:tt)*) => {{
        let _ = format_args!($($what)*);
    }};
}
pub use step;
#[cfg(loom)]
#[doc(hidden)]
pub use tracing;

/// The number of the running thread of a model, and its name.
#[cfg(loom)]
#[doc(hidden)]
pub fn current() -> String {
    let thread = thread::current();
    let number = format!("{:?}", thread.id());
    match thread.name() {
        Some(name) => format!("{number}, {name}"),
        None => number,
    }
}

/// A thread of a model, with a name for the log.
///
/// # Panics
///
/// If there are more threads than loom or the machine can have.
pub fn spawn<T: Send + 'static>(
    name: &str,
    run: impl FnOnce() -> T + Send + 'static,
) -> thread::JoinHandle<T> {
    let builder = thread::Builder::new().name(name.to_string());
    builder.spawn(run).expect("a thread")
}

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
