// SPDX-License-Identifier: GPL-2.0

//! `contig_free` against speculative references.
//!
//! Who walks pages by PFN (compaction, memory failure, page_idle) takes a reference on a page that
//! it does not own, if the count is not zero, looks, and drops it. So the last reference may be the
//! range's or the walker's: whoever drops it frees the page, and nobody else.

use mm_batch::{
    contig_free::free_contig_range,
    free::Refcounted,
    pages::Pfn, //
};
use mm_shim::{
    contig_free::{
        self,
        Cpu,
        Layout,
        Mm, //
    },
    lists::State,
    model::{
        check,
        Bound,
        Outcomes, //
    },
    sync::{
        explore,
        thread,
        Arc, //
    }, //
};

const RANGE: usize = 0;
const FIRST: usize = 8;

fn range_free(mm: &Mm, first: usize, nr: usize, side: usize) {
    let range = contig_free::range::<Refcounted>(first, nr);
    for pfn in first..first + nr {
        mm.page(Pfn::new(pfn)).write();
    }
    free_contig_range(&Cpu::new(mm, side), range);
}

/// A walker by PFN: try to get the page, touch it, put it.
fn speculate(mm: &Mm, pfn: usize, side: usize) {
    let pfn = Pfn::new(pfn);
    if mm.page(pfn).try_get() {
        mm.page(pfn).write();
        mm.put_page(pfn, side);
    }
}

/// Every page is free, freed once; whose the raced page was is the outcome.
fn all_free(mm: &Mm, nr: usize, raced: usize, outcomes: &Outcomes) {
    for pfn in FIRST..FIRST + nr {
        assert!(
            matches!(mm.state(pfn), State::Free(_)),
            "pfn {pfn:#x} was lost"
        );
        assert_eq!(mm.page(Pfn::new(pfn)).count(), 0);
    }
    mm.with_lists(|lists| {
        lists.blocks();
        assert_eq!(lists.pgfree(), nr);
    });
    outcomes.saw(match mm.state(raced) {
        State::Free(RANGE) => "range freed it",
        _ => "racer freed it",
    });
}

fn against_one(nr: usize, raced: usize) {
    check(
        Bound::Exhaustive,
        &["range freed it", "racer freed it"],
        move |outcomes| {
            let mm = Arc::new(Mm::new(Layout::plain(FIRST, nr)));
            let racer = {
                let mm = mm.clone();
                thread::spawn(move || speculate(&mm, raced, RANGE + 1))
            };
            range_free(&mm, FIRST, nr, RANGE);
            racer.join().expect("the racer panicked");
            all_free(&mm, nr, raced, outcomes);
        },
    );
}

#[test]
fn contig_free_one_racer_first() {
    against_one(4, FIRST);
}

#[test]
fn contig_free_one_racer_middle() {
    against_one(4, FIRST + 1);
}

#[test]
fn contig_free_one_racer_last() {
    against_one(4, FIRST + 3);
}

/// A lone page takes the single-page path.
#[test]
fn contig_free_one_racer_lone() {
    against_one(1, FIRST);
}

/// Two walkers on one page: the last reference may be any of three.
#[test]
fn contig_free_two_racers() {
    const NR: usize = 2;
    let outcomes = ["range freed it", "racer freed it"];
    check(Bound::Preemptions(3), &outcomes, |outcomes| {
        let mm = Arc::new(Mm::new(Layout::plain(FIRST, NR)));
        let racers: Vec<_> = (1..=2)
            .map(|side| {
                let mm = mm.clone();
                thread::spawn(move || speculate(&mm, FIRST, RANGE + side))
            })
            .collect();
        range_free(&mm, FIRST, NR, RANGE);
        for racer in racers {
            racer.join().expect("a racer panicked");
        }
        all_free(&mm, NR, FIRST, outcomes);
    });
}

/// Two ranges that meet in the middle of an aligned block, freed at once: neither takes the other's
/// pages.
#[test]
fn contig_free_two_ranges() {
    const HALF: usize = 2;
    let ends = ["the lower half came first", "the upper half came first"];
    check(Bound::Exhaustive, &ends, move |outcomes| {
        let mm = Arc::new(Mm::new(Layout::plain(FIRST, 2 * HALF)));
        let other = {
            let mm = mm.clone();
            thread::spawn(move || range_free(&mm, FIRST + HALF, HALF, 1))
        };
        range_free(&mm, FIRST, HALF, RANGE);
        other.join().expect("the other range panicked");
        for pfn in FIRST..FIRST + 2 * HALF {
            assert_eq!(mm.state(pfn), State::Free(usize::from(pfn >= FIRST + HALF)));
        }
        let first = mm.with_lists(|lists| {
            assert_eq!(lists.blocks().len(), 2);
            lists.pcp()[0].head
        });
        outcomes.saw(ends[usize::from(first != FIRST)]);
    });
}

/// The range's reference may be the last, and then nobody writes to the page any more.
#[test]
#[should_panic(expected = "a holder's write came after the page was free")]
fn contig_free_notices_a_write_behind_the_put() {
    explore(|| {
        let mut layout = Layout::plain(FIRST, 1);
        layout.counts = vec![2];
        let mm = Arc::new(Mm::new(layout));
        let other = {
            let mm = mm.clone();
            thread::spawn(move || {
                mm.put_page(Pfn::new(FIRST), 1);
                mm.page(Pfn::new(FIRST)).write();
            })
        };
        range_free(&mm, FIRST, 1, RANGE);
        other.join().expect("the other thread panicked");
    });
}
