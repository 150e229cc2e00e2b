// SPDX-License-Identifier: GPL-2.0

//! The log accepts what is in order, and objects to each change of that.
//!
//! What is in order is a table. From each of its lines, every line is made in which one event is left
//! out, comes twice, or comes later, two are swapped, or one is about a page more or less: all of
//! these are objected to, but for what the table says may be left out. So is a lock that goes early.

use super::{
    Event::*,
    Flag::*,
    *, //
};
use mm_batch::to_swap::Sharing::{
    Exclusive,
    MaybeShared, //
};

/// An event, and whether there are runs without it.
#[derive(Clone, Copy)]
enum Step {
    Must(Event),
    May(Event),
}
use Step::{
    May,
    Must, //
};

impl Step {
    const fn event(&self) -> Event {
        match *self {
            Must(event) | May(event) => event,
        }
    }
}

const fn asked(at: u32, of: u32, sharing: Sharing, nr: u32) -> Step {
    Must(SharingAsked {
        at,
        of,
        sharing,
        nr,
    })
}

const UNMAPPED: [Step; 1] = [Must(Unmapped(4))];
const BACK: [Step; 2] = [Must(FlushedAgain(4)), Must(Restored(4))];

/// What is in order: each line but for the end that it may have in common with others.
const LINES: &[(&[Step], &[Step])] = &[
    // A file's run.
    (
        &[Must(Cleared(4)), May(MarkedDirty), Must(LeftBehind(4))],
        &UNMAPPED,
    ),
    // A lazyfree one, which is discarded,
    (
        &[
            Must(Cleared(4)),
            Must(Asked(Swapcache, false)),
            Must(Ordered),
            Must(RefsCounted),
            Must(ReadOrdered),
            Must(Asked(Dirty, false)),
            Must(LeftBehind(4)),
        ],
        &UNMAPPED,
    ),
    // which may be though it is dirty,
    (
        &[
            Must(Cleared(4)),
            May(MarkedDirty),
            Must(Asked(Swapcache, false)),
            Must(Ordered),
            Must(RefsCounted),
            Must(ReadOrdered),
            Must(Asked(Dirty, true)),
            Must(Asked(Droppable, true)),
            Must(LeftBehind(4)),
        ],
        &UNMAPPED,
    ),
    // or which was written to.
    (
        &[
            Must(Cleared(4)),
            May(MarkedDirty),
            Must(Asked(Swapcache, false)),
            Must(Ordered),
            Must(RefsCounted),
            Must(ReadOrdered),
            Must(Asked(Dirty, true)),
            Must(Asked(Droppable, false)),
            Must(FlushedAgain(4)),
            Must(Restored(4)),
            May(MadeSwapbacked),
        ],
        &[],
    ),
    // One that is given up.
    (&[Must(Cleared(4))], &BACK),
    // To swap, where there is none, or lazyfree, where there is.
    (
        &[
            Must(Cleared(4)),
            Must(Asked(Swapcache, false)),
            Must(Warned),
        ],
        &BACK,
    ),
    (
        &[Must(Cleared(4)), Must(Asked(Swapcache, true)), Must(Warned)],
        &BACK,
    ),
    // To swap, with counts that are not to be had,
    (
        &[
            Must(Cleared(4)),
            May(MarkedDirty),
            Must(Asked(Swapcache, true)),
            Must(NotDup(4)),
        ],
        &BACK,
    ),
    // or given back,
    (
        &[
            Must(Cleared(4)),
            Must(Asked(Swapcache, true)),
            Must(SwapDup(4)),
            Must(SwapPut(4)),
        ],
        &BACK,
    ),
    // with a page that is pinned,
    (
        &[
            Must(Cleared(4)),
            Must(Asked(Swapcache, true)),
            Must(SwapDup(4)),
            asked(0, 4, MaybeShared, 3),
            Must(Ordered),
            Must(PinTested(true)),
            Must(SwapPut(4)),
        ],
        &BACK,
    ),
    // with none that is exclusive,
    (
        &[
            Must(Cleared(4)),
            Must(Asked(Swapcache, true)),
            Must(SwapDup(4)),
            asked(0, 4, MaybeShared, 4),
            Must(Prepared(4)),
            Must(SwapPtes(4, MaybeShared)),
        ],
        &UNMAPPED,
    ),
    // with the first,
    (
        &[
            Must(Cleared(4)),
            Must(Asked(Swapcache, true)),
            Must(SwapDup(4)),
            asked(0, 4, Exclusive, 1),
            Must(Ordered),
            Must(PinTested(false)),
            Must(Prepared(4)),
            Must(Shared(1)),
            Must(OrderedBehind),
            Must(SwapPtes(1, Exclusive)),
            asked(1, 3, MaybeShared, 3),
            Must(SwapPtes(3, MaybeShared)),
        ],
        &UNMAPPED,
    ),
    // and with some behind others.
    (
        &[
            Must(Cleared(4)),
            Must(Asked(Swapcache, true)),
            Must(SwapDup(4)),
            asked(0, 4, MaybeShared, 1),
            Must(Ordered),
            Must(PinTested(false)),
            Must(Prepared(4)),
            Must(SwapPtes(1, MaybeShared)),
            asked(1, 3, Exclusive, 2),
            Must(Shared(2)),
            Must(OrderedBehind),
            Must(SwapPtes(2, Exclusive)),
            asked(3, 1, MaybeShared, 1),
            Must(SwapPtes(1, MaybeShared)),
        ],
        &UNMAPPED,
    ),
];

const CLEARED: [Event; 1] = [Cleared(4)];
const COUNTED: [Event; 3] = [Cleared(4), Asked(Swapcache, true), SwapDup(4)];

const fn sharing(sharing: Sharing, nr: u32) -> Event {
    asked(0, 4, sharing, nr).event()
}

/// More than one change away from what is in order: how it begins, and to the last of what follows
/// is objected.
const OBJECTED: &[(&[Event], &[Event])] = &[
    (&[], &[Asked(Dirty, false)]),
    (&[], &[Asked(Droppable, false)]),
    (&[], &[Ordered]),
    (&[], &[MadeSwapbacked]),
    (&CLEARED, &[Asked(Swapcache, false), LeftBehind(4)]),
    (
        &CLEARED,
        &[Asked(Swapcache, true), NotDup(4), LeftBehind(4)],
    ),
    (&CLEARED, &[Asked(Swapcache, true), FlushedAgain(4)]),
    (
        &CLEARED,
        &[
            Asked(Swapcache, false),
            Ordered,
            RefsCounted,
            ReadOrdered,
            FlushedAgain(4),
        ],
    ),
    (&CLEARED, &[FlushedAgain(4), Restored(4), MadeSwapbacked]),
    (&CLEARED, &[FlushedAgain(4), Restored(4), Cleared(4)]),
    (&COUNTED, &[LeftBehind(4)]),
    (&COUNTED, &[FlushedAgain(4)]),
    // A barrier and a test for pins that nobody needs, and some that are not there.
    (&COUNTED, &[Ordered]),
    (&COUNTED, &[sharing(MaybeShared, 4), Ordered]),
    (&COUNTED, &[sharing(MaybeShared, 3), Prepared(4)]),
    (&COUNTED, &[sharing(Exclusive, 4), Prepared(4)]),
    (&COUNTED, &[sharing(Exclusive, 4), PinTested(false)]),
    (&COUNTED, &[sharing(Exclusive, 4), Ordered, Prepared(4)]),
    (
        &COUNTED,
        &[sharing(Exclusive, 4), Ordered, PinTested(true), Prepared(4)],
    ),
    (&COUNTED, &[sharing(Exclusive, 5)]),
    // Behind what is final.
    (
        &COUNTED,
        &[sharing(MaybeShared, 4), Prepared(4), SwapPut(4)],
    ),
    (
        &COUNTED,
        &[
            sharing(MaybeShared, 3),
            Ordered,
            PinTested(false),
            Prepared(4),
            SwapPtes(3, MaybeShared),
            Unmapped(4),
        ],
    ),
    (
        &COUNTED,
        &[
            sharing(MaybeShared, 3),
            Ordered,
            PinTested(false),
            Prepared(4),
            SwapPtes(3, MaybeShared),
            SwapPut(4),
        ],
    ),
    (
        &COUNTED,
        &[
            sharing(MaybeShared, 3),
            Ordered,
            PinTested(false),
            Prepared(4),
            SwapPtes(3, MaybeShared),
            SwapPtes(1, MaybeShared),
        ],
    ),
    (
        &COUNTED,
        &[
            sharing(Exclusive, 4),
            Ordered,
            PinTested(false),
            Prepared(4),
            Shared(4),
            SwapPut(4),
        ],
    ),
];

fn lines() -> impl Iterator<Item = Vec<Step>> {
    LINES.iter().map(|(line, end)| [*line, *end].concat())
}

fn events(line: &[Step]) -> Vec<Event> {
    line.iter().map(Step::event).collect()
}

/// Where they lead; `None` if one is objected to.
fn stage(events: &[Event]) -> Option<Stage> {
    let start = Log::default().stage;
    events
        .iter()
        .try_fold(start, |stage, &event| stage.next(event))
}

fn accepted(events: &[Event]) -> bool {
    stage(events).is_some_and(Stage::is_over)
}

#[test]
fn what_is_in_order_is_accepted() {
    for line in lines() {
        let events = events(&line);
        let mut log = Log::default();
        events.iter().for_each(|&event| log.note(event));
        log.unlock();
        assert_eq!(log.events(), events);
    }
}

#[test]
fn an_event_that_is_left_out_is_noticed() {
    for line in lines() {
        for (i, step) in line.iter().enumerate() {
            let mut events = events(&line);
            events.remove(i);
            let may = matches!(step, May(_));
            assert_eq!(
                accepted(&events),
                may,
                "without {:?}: {events:?}",
                step.event()
            );
        }
    }
}

/// At once, or at any time later.
#[test]
fn an_event_that_comes_twice_is_noticed() {
    for line in lines() {
        for i in 0..line.len() {
            for again in i + 1..=line.len() {
                let mut events = events(&line);
                let event = events[i];
                events.insert(again, event);
                let other_line = matches!(event, Asked(Swapcache, true)) && i == 0;
                assert!(
                    !accepted(&events) || other_line,
                    "{event:?} twice: {events:?}"
                );
            }
        }
    }
}

#[test]
fn events_that_are_swapped_are_noticed() {
    for line in lines() {
        for i in 0..line.len() {
            for j in i + 1..line.len() {
                let mut events = events(&line);
                events.swap(i, j);
                let same = events[i] == events[j];
                assert!(!accepted(&events) || same, "{events:?}");
            }
        }
    }
}

/// Or earlier.
#[test]
fn an_event_that_comes_late_is_noticed() {
    for line in lines() {
        for i in 0..line.len() {
            for j in (0..line.len()).filter(|&j| j != i) {
                let mut events = events(&line);
                let event = events.remove(i);
                events.insert(j, event);
                assert!(!accepted(&events), "{event:?}: {events:?}");
            }
        }
    }
}

/// The same event about other pages, or pages that are otherwise.
fn otherwise(event: Event) -> Vec<Event> {
    let numbered = |make: fn(u32) -> Event, nr: u32| vec![make(nr - 1), make(nr + 1)];
    let other = |sharing| match sharing {
        Exclusive => MaybeShared,
        MaybeShared => Exclusive,
    };
    match event {
        Cleared(n) => numbered(Cleared, n),
        LeftBehind(n) => numbered(LeftBehind, n),
        Unmapped(n) => numbered(Unmapped, n),
        FlushedAgain(n) => numbered(FlushedAgain, n),
        Restored(n) => numbered(Restored, n),
        SwapDup(n) => numbered(SwapDup, n),
        NotDup(n) => numbered(NotDup, n),
        SwapPut(n) => numbered(SwapPut, n),
        Prepared(n) => numbered(Prepared, n),
        Shared(n) => numbered(Shared, n),
        SwapPtes(n, sharing) => vec![
            SwapPtes(n - 1, sharing),
            SwapPtes(n + 1, sharing),
            SwapPtes(n, other(sharing)),
        ],
        SharingAsked {
            at,
            of,
            sharing,
            nr,
        } => {
            let asked = |at, of, sharing, nr| asked(at, of, sharing, nr).event();
            vec![
                asked(at + 1, of, sharing, nr),
                asked(at, of - 1, sharing, nr),
                asked(at, of + 1, sharing, nr),
                asked(at + 1, of - 1, sharing, nr),
                asked(at, of, sharing, nr - 1),
                asked(at, of, sharing, nr + 1),
                asked(at, of, other(sharing), nr),
            ]
        }
        PinTested(false) => vec![PinTested(true)],
        Asked(Dirty, is) => vec![Asked(Dirty, !is)],
        _ => vec![],
    }
}

#[test]
fn an_event_of_other_pages_is_noticed() {
    for line in lines() {
        // Nothing more is asked of an answer where a pin is.
        let pinned = events(&line).contains(&PinTested(true));
        for i in 0..line.len() {
            let about_answers = |event: &Event| match (event, line[i].event()) {
                (
                    SharingAsked { at, of, .. },
                    SharingAsked {
                        at: was_at,
                        of: was_of,
                        ..
                    },
                ) => (*at, *of) == (was_at, was_of),
                _ => false,
            };
            for event in otherwise(line[i].event()) {
                if pinned && about_answers(&event) {
                    continue;
                }
                let mut events = events(&line);
                events[i] = event;
                assert!(!accepted(&events), "{event:?}: {events:?}");
            }
        }
    }
}

/// Nothing is over before its end, but what has not begun, and what is mapped again.
#[test]
fn a_lock_that_goes_too_early_is_noticed() {
    for line in lines() {
        let events = events(&line);
        let begins = |event: &Event| !matches!(event, Asked(..));
        let begun = events.iter().position(begins).expect("it does something");
        for nr in 0..events.len() {
            let not_begun = nr <= begun
                && nr.checked_sub(1).map(|i| events[i]) != Some(Asked(Swapcache, false));
            let back = events[..nr].last() == Some(&Restored(4));
            assert_eq!(
                accepted(&events[..nr]),
                not_begun || back,
                "{:?}",
                &events[..nr]
            );
        }
    }
}

#[test]
fn what_is_far_from_order_is_noticed() {
    for (begin, then) in OBJECTED {
        let events = [*begin, *then].concat();
        let (last, before) = events.split_last().expect("an event");
        let stage = stage(before).unwrap_or_else(|| panic!("{before:?} is in order"));
        assert_eq!(stage.next(*last), None, "{events:?}");
    }
}

#[test]
fn nothing_comes_behind_the_end() {
    let all: Vec<_> = lines().flat_map(|line| events(&line)).collect();
    for line in lines() {
        let end = stage(&events(&line)).expect("it is in order");
        for &event in &all {
            assert_eq!(end.next(event), None, "{event:?} behind {end:?}");
        }
    }
}

#[test]
#[should_panic(expected = "LeftBehind(2) may not follow Cleared(4): [Cleared(4)]")]
fn an_objection_says_what_came_before() {
    let mut log = Log::default();
    log.note(Cleared(4));
    log.note(LeftBehind(2));
}

#[test]
#[should_panic(expected = "the page table lock goes while a run is Cleared(4)")]
fn a_lock_that_goes_says_where_the_run_is() {
    let mut log = Log::default();
    log.note(Cleared(4));
    log.unlock();
}
