// SPDX-License-Identifier: GPL-2.0

//! Two threads, each with a step or two of its own on what they share, in every order: the two
//! shapes of tools/memory-model/litmus-tests/ (7.3) that tell what an operation orders.

use mm_shim::{
    model::{
        check,
        Bound, //
    },
    sync::{
        thread,
        Arc, //
    }, //
};

/// Runs `here` and `there` on what `make` makes. `end` says how it ended; each of `ends` must
/// occur, and nothing else may.
pub(crate) fn race<T, A, B>(
    make: fn() -> T,
    here: fn(&T) -> A,
    there: fn(&T) -> B,
    end: fn(A, B) -> &'static str,
    ends: &[&'static str],
) where
    T: Send + Sync + 'static,
    A: 'static,
    B: Send + 'static,
{
    check(Bound::Exhaustive, ends, move |outcomes| {
        let ours = Arc::new(make());
        let theirs = ours.clone();
        let other = thread::spawn(move || there(&theirs));
        let here = here(&ours);
        let there = other.join().expect("the other thread panicked");
        outcomes.saw(end(here, there));
    });
}

pub(crate) const EARLY: &str = "looked too early";
pub(crate) const SEEN: &str = "saw both writes";
pub(crate) const STALE: &str = "saw the second write and not the first";

/// MP, message passing: `write` does two things, and `read` looks for the second and then for the
/// first.
pub(crate) fn passing<T: Send + Sync + 'static>(
    make: fn() -> T,
    write: fn(&T),
    read: fn(&T) -> (bool, bool),
    ends: &[&'static str],
) {
    let end = |(), seen| match seen {
        (false, _) => EARLY,
        (true, true) => SEEN,
        (true, false) => STALE,
    };
    race(make, write, read, end, ends);
}

pub(crate) const ONE: &str = "one saw the other";
pub(crate) const BOTH: &str = "both saw each other";
pub(crate) const NEITHER: &str = "neither saw the other";

/// SB, store buffering: each of the two writes, and then looks for what the other wrote.
pub(crate) fn buffering<T: Send + Sync + 'static>(
    make: fn() -> T,
    here: fn(&T) -> bool,
    there: fn(&T) -> bool,
    ends: &[&'static str],
) {
    let end = |here, there| match (here, there) {
        (true, true) => BOTH,
        (false, false) => NEITHER,
        _ => ONE,
    };
    race(make, here, there, end, ends);
}
