// SPDX-License-Identifier: GPL-2.0

//! The transaction with more stages than `file_unmap` has: each is undone, the last one first, with
//! the PTEs still cleared, or the last one completes them all, in front of the counters.

use mm_batch::unmap::{
    Cleared,
    ClearedPtes,
    ClearedRun,
    ForGood,
    Gone,
    LastStage,
    PteRun,
    Stage, //
};
use mm_shim::{
    folio::Folio,
    order::Event,
    pte::{
        pte,
        WRITE, //
    },
    unmap::{
        Layout,
        Mm,
        Walk, //
    }, //
};
use std::cell::RefCell;

const PFN: usize = 8;

thread_local! {
    /// What the stages did, with the number of the port's steps before.
    static DONE: RefCell<Vec<(&'static str, usize)>> = const { RefCell::new(Vec::new()) };
}

fn did(what: &'static str, ptes: &ClearedPtes<Walk<'_>>) {
    assert_eq!(ptes.walk().table().words(), [0; 4]);
    assert_eq!(ptes.part().first().raw(), pte(PFN, WRITE));
    let steps = ptes.walk().events().len();
    DONE.with_borrow_mut(|done| done.push((what, steps)));
}

struct First;

// SAFETY: It takes nothing.
unsafe impl<'m> Stage<Walk<'m>> for First {
    type Behind = Cleared;
    type Refused = ();

    unsafe fn enter(ptes: &ClearedPtes<Walk<'m>>) -> Result<Self, ()> {
        did("first", ptes);
        Ok(Self)
    }

    unsafe fn undo(self, ptes: &ClearedPtes<Walk<'m>>) {
        did("first undone", ptes);
    }
}

struct Second;

// SAFETY: It takes nothing.
unsafe impl<'m> Stage<Walk<'m>> for Second {
    type Behind = (First, Cleared);
    type Refused = ();

    unsafe fn enter(ptes: &ClearedPtes<Walk<'m>>) -> Result<Self, ()> {
        did("second", ptes);
        Ok(Self)
    }

    unsafe fn undo(self, ptes: &ClearedPtes<Walk<'m>>) {
        did("second undone", ptes);
    }
}

// SAFETY: Nor does it leave anything.
unsafe impl<'m> LastStage<Walk<'m>> for Second {
    unsafe fn complete<'r>(self, behind: Self::Behind, ptes: ForGood<'r, Walk<'m>>) -> Gone<'r> {
        let (First, Cleared { .. }) = behind;
        did("second complete", ptes.ptes());
        ptes.vanish()
    }
}

struct Never;

// SAFETY: It takes nothing.
unsafe impl<'m> Stage<Walk<'m>> for Never {
    type Behind = Both;
    type Refused = &'static str;

    unsafe fn enter(_: &ClearedPtes<Walk<'m>>) -> Result<Self, &'static str> {
        Err("never")
    }
}

fn words() -> [u64; 4] {
    [0, 1, 2, 3].map(|i| pte(PFN + i, WRITE))
}

/// A run that is in both.
type Both = (Second, (First, Cleared));

/// Runs `then` on a run that is cleared and in both stages.
fn staged<T>(
    then: impl FnOnce(ClearedRun<Walk<'_>, Both>) -> T,
) -> (T, Mm, Vec<Event>, Vec<(&'static str, usize)>) {
    let folio = Folio::new(PFN, 4);
    folio.map(4);
    let mm = Mm::new(Layout::anonymous(4), &words());
    let (result, events) = mm.walk(&folio, 0, |walk| {
        let run = PteRun::longest(walk).clear();
        let run = run.stage::<First>().expect("it refuses nothing");
        then(run.stage::<Second>().expect("it refuses nothing"))
    });
    (result, mm, events, DONE.take())
}

const ENTERED: [(&str, usize); 2] = [("first", 2), ("second", 2)];
const UNDONE: [(&str, usize); 2] = [("second undone", 2), ("first undone", 2)];

#[test]
fn stages_are_undone_before_the_ptes_are_back() {
    let (nr, mm, events, done) = staged(|run| run.restore().nr().get());
    assert_eq!(nr, 4);
    assert_eq!(done, [ENTERED, UNDONE].concat());
    assert_eq!(events.last(), Some(&Event::Restored(4)));
    assert_eq!(mm.table.words(), words());
}

/// The net.
#[test]
fn stages_are_undone_when_the_run_is_dropped() {
    let ((), mm, events, done) = staged(|run| drop(run));
    assert_eq!(done, [ENTERED, UNDONE].concat());
    assert_eq!(events.last(), Some(&Event::Restored(4)));
    assert_eq!(mm.table.words(), words());
}

#[test]
fn stages_are_undone_when_the_next_is_refused() {
    let (why, mm, _, done) = staged(|run| match run.stage::<Never>() {
        Ok(_) => "entered",
        Err((run, why)) => {
            assert_eq!(run.nr().get(), 4);
            why
        }
    });
    assert_eq!(why, "never");
    assert_eq!(done, [ENTERED, UNDONE].concat());
    assert_eq!(mm.table.words(), words());
}

#[test]
fn the_last_stage_completes_before_the_counters() {
    let (nr, mm, events, done) = staged(|run| run.commit().nr().get());
    assert_eq!(nr, 4);
    assert_eq!(done, [&ENTERED[..], &[("second complete", 2)]].concat());
    assert_eq!(events[2..4], [Event::LeftBehind(4), Event::Hiwater]);
    assert_eq!(mm.table.words(), [0; 4]);
}
