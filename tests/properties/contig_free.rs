// SPDX-License-Identifier: GPL-2.0

//! `contig_free`: any pfn, length, reference pattern, failing prepare, section and zone layout.

use crate::oracle::{
    assert_exact_and_maximal,
    free_page_by_page,
    section_of,
    CRange, //
};
use mm_batch::{
    contig_free::{
        free_contig_range,
        free_pages_bulk,
        PageArray, //
    },
    free::{
        ContigMm,
        FreeBlock,
        Frozen,
        Held,
        LonePage,
        PageRange,
        PreparedPages,
        Refcounted,
        Section, //
    },
    pages::Pfn, //
};
use mm_shim::{
    contig_free::{
        self,
        Cpu,
        Layout,
        Mm,
        MAX_PAGE_ORDER, //
    },
    lists::{
        Block,
        State, //
    }, //
};
use proptest::prelude::*;
use std::{
    cell::RefCell,
    collections::BTreeSet,
    num::NonZero,
    ops::Range, //
};

const BIGGEST: usize = 3 * 1024 + 5;

/// Where ranges begin: near 0, near block and section boundaries, anywhere.
fn first() -> impl Strategy<Value = usize> {
    prop_oneof![
        0usize..4,
        (0u32..24, 0usize..4).prop_map(|(order, off)| (1usize << order).saturating_sub(2) + off),
        0usize..1 << 40,
    ]
}

fn nr() -> impl Strategy<Value = usize> {
    prop_oneof![
        3 => 1usize..40,
        2 => (0u32..11, 0usize..3).prop_map(|(order, off)| (1usize << order).max(2) - 1 + off),
        1 => 1usize..=BIGGEST,
    ]
}

/// Some of the range's pages.
fn some_of(nr: usize) -> impl Strategy<Value = BTreeSet<usize>> {
    proptest::collection::btree_set(0..nr, 0..6)
}

fn layout<H: Held>() -> impl Strategy<Value = Layout> {
    (first(), nr())
        .prop_flat_map(|(first, nr)| {
            (
                Just(first),
                Just(nr),
                some_of(nr),
                some_of(nr),
                some_of(nr),
                proptest::option::of(10u32..13),
            )
        })
        .prop_map(move |(first, nr, raised, bad, zones, section)| {
            let count = |i| {
                if H::FROZEN {
                    0
                } else {
                    1 + i32::from(raised.contains(&i))
                }
            };
            Layout {
                first,
                nr,
                counts: (0..nr).map(count).collect(),
                bad: bad.iter().map(|i| first + i).collect(),
                zone_starts: zones.iter().map(|i| first + i).collect(),
                section: section.and_then(section_of),
            }
        })
}

fn freed<H: Held>(layout: &Layout) -> Mm {
    let mm = Mm::new(layout.clone());
    free_contig_range(&Cpu::new(&mm, 0), layout.range::<H>());
    mm
}

fn check<H: Held>(layout: &Layout) {
    let mm = freed::<H>(layout);
    let one_by_one = Mm::new(layout.clone());
    free_page_by_page(&one_by_one, layout);
    for pfn in layout.first..layout.first + layout.nr {
        assert_eq!(mm.state(pfn), one_by_one.state(pfn), "pfn {pfn:#x}");
        let pfn = Pfn::new(pfn);
        assert_eq!(mm.page(pfn).count(), one_by_one.page(pfn).count());
    }
    assert_eq!(
        mm.with_lists(|l| l.pgfree()),
        one_by_one.with_lists(|l| l.pgfree())
    );
    mm.with_lists(|lists| assert_exact_and_maximal(&mm, lists, layout));

    // Where no zone begins inside, nothing may differ from C.
    if layout
        .zone_starts
        .iter()
        .all(|&start| start == layout.first)
    {
        let c = CRange { layout };
        assert_eq!(mm.with_lists(|lists| lists.blocks()), c.blocks());
    }
}

proptest! {
    #![proptest_config(crate::cases(400))]

    #[test]
    fn refcounted_ranges(layout in layout::<Refcounted>()) {
        check::<Refcounted>(&layout);
    }

    #[test]
    fn frozen_ranges(layout in layout::<Frozen>()) {
        check::<Frozen>(&layout);
    }

    /// In one zone the blocks are C's, whatever else the layout has.
    #[test]
    fn blocks_are_those_of_c(mut layout in layout::<Refcounted>()) {
        layout.zone_starts.clear();
        check::<Refcounted>(&layout);
    }

    /// An array of pages in any order: every page is freed, runs as blocks.
    #[test]
    fn page_arrays(runs in proptest::collection::vec((0usize..512, 1usize..40), 1..8)) {
        let layout = Layout::plain(0, 1024);
        let mm = Mm::new(layout);
        let mut taken = BTreeSet::new();
        let pages: Vec<usize> = runs
            .iter()
            .flat_map(|&(first, nr)| first..first + nr)
            .filter(|&pfn| taken.insert(pfn))
            .collect();
        let mut array = Pages { mm: &mm, pfns: &pages, taken: None, runs: 0, yields: 0 };
        free_pages_bulk(&Cpu::new(&mm, 0), &mut array);
        prop_assert_eq!(array.yields, array.runs);
        for pfn in 0..1024 {
            prop_assert_eq!(mm.state(pfn) == State::Free(0), taken.contains(&pfn));
        }
        mm.with_lists(|lists| lists.blocks());
    }
}

/// `num_pages_contiguous()` on a plain array.
struct Pages<'a> {
    mm: &'a Mm,
    pfns: &'a [usize],
    /// The run that is not freed yet.
    taken: Option<Range<usize>>,
    runs: usize,
    yields: usize,
}

impl PageArray for Pages<'_> {
    fn next_run(&mut self) -> Option<PageRange<Refcounted>> {
        let first = *self.pfns.first()?;
        let nr = self
            .pfns
            .iter()
            .zip(first..)
            .take_while(|(pfn, next)| **pfn == *next)
            .count();
        self.pfns = &self.pfns[nr..];
        assert_eq!(
            self.taken.replace(first..first + nr),
            None,
            "no chance to sleep"
        );
        self.runs += 1;
        Some(contig_free::range(first, nr))
    }

    fn cond_resched(&mut self) {
        let mut run = self.taken.take().expect("a run was taken");
        let free = |pfn| self.mm.state(pfn) == State::Free(0);
        assert!(run.all(free), "a run waits while others have the CPU");
        self.yields += 1;
    }
}

#[test]
fn a_page_still_held_is_left_to_its_holder() {
    let mut layout = Layout::plain(512, 16);
    layout.counts = vec![1; 16];
    layout.counts[5] = 2;
    let mm = freed::<Refcounted>(&layout);
    assert_eq!(mm.state(512 + 5), State::Allocated);
    assert_eq!(mm.page(Pfn::new(512 + 5)).count(), 1);
    mm.put_page(Pfn::new(512 + 5), 1);
    assert_eq!(mm.state(512 + 5), State::Free(1));
    mm.with_lists(|lists| {
        assert_eq!(lists.pgfree(), 16);
        lists.blocks();
    });
}

#[test]
fn the_largest_range_of_the_benchmarks() {
    let layout = Layout::plain(4096, BIGGEST);
    let blocks = freed::<Refcounted>(&layout).with_lists(|lists| lists.blocks());
    let orders: Vec<u32> = blocks.iter().map(|block| block.order).collect();
    assert_eq!(orders, [10, 10, 10, 2, 0]);
}

#[test]
fn a_zone_border_inside_a_block_splits_it() {
    let mut layout = Layout::plain(1024, 1024);
    layout.zone_starts.insert(1024 + 512);
    let blocks = freed::<Refcounted>(&layout).with_lists(|lists| lists.blocks());
    assert_eq!(blocks.len(), 2);
    assert!(blocks.iter().all(|block| block.order == 9));
}

/// What is asked of the port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    Section(usize),
    Page(usize),
    Prepare { first: usize, nr: usize },
    Zone(usize, usize),
    Block(Block),
}

/// The model, and what was asked of it.
struct Asked<'m> {
    cpu: Cpu<'m>,
    calls: RefCell<Vec<Call>>,
}

impl Asked<'_> {
    fn note(&self, call: Call) {
        self.calls.borrow_mut().push(call);
    }
}

// SAFETY: Each answer is the model's.
unsafe impl ContigMm for Asked<'_> {
    const MAX_PAGE_ORDER: u32 = MAX_PAGE_ORDER;

    fn contiguous_struct_pages(&self, first: Pfn) -> NonZero<usize> {
        self.note(Call::Section(first.get()));
        self.cpu.contiguous_struct_pages(first)
    }

    fn free_page<H: Held>(&self, page: LonePage<H>) {
        self.note(Call::Page(page.pfn().get()));
        self.cpu.free_page(page);
    }

    fn prepare_run<H: Held>(
        &self,
        pages: Section<H>,
    ) -> (Option<PreparedPages>, Option<Section<H>>) {
        let frames = pages.frames();
        self.note(Call::Prepare {
            first: frames.first().get(),
            nr: frames.nr().get(),
        });
        self.cpu.prepare_run(pages)
    }

    unsafe fn same_zone(&self, a: Pfn, b: Pfn) -> bool {
        self.note(Call::Zone(a.get(), b.get()));
        // SAFETY: By the function's requirement.
        unsafe { self.cpu.same_zone(a, b) }
    }

    fn free_prepared(&self, block: FreeBlock) {
        self.note(Call::Block(Block {
            head: block.head().get(),
            order: block.order(),
        }));
        self.cpu.free_prepared(block);
    }
}

fn calls<H: Held>(layout: &Layout) -> Vec<Call> {
    let mm = Mm::new(layout.clone());
    let port = Asked {
        cpu: Cpu::new(&mm, 0),
        calls: RefCell::default(),
    };
    free_contig_range(&port, layout.range::<H>());
    port.calls.into_inner()
}

/// What is to be asked: of each section once, of each page behind one that is not free once for all
/// that is left of the section, of each block for its zone once, and once for each that was halved.
fn calls_by_page(layout: &Layout) -> Vec<Call> {
    let end = layout.first + layout.nr;
    if layout.nr == 1 {
        return vec![Call::Page(layout.first)];
    }
    let (mm, c) = (Mm::new(layout.clone()), CRange { layout });
    let section = |pfn: usize| layout.section.map_or(0, |nr| pfn / nr);
    let (mut calls, mut prepared) = (Vec::new(), layout.first);
    for pfn in layout.first..end {
        if pfn == layout.first || section(pfn - 1) != section(pfn) {
            calls.push(Call::Section(pfn));
            prepared = pfn;
        }
        if pfn == prepared {
            let section_end = (pfn..end)
                .find(|&i| section(i) != section(pfn))
                .unwrap_or(end);
            let nr = section_end - pfn;
            calls.push(Call::Prepare { first: pfn, nr });
            let free_end = (pfn..section_end)
                .find(|&i| !c.page_is_free(i))
                .unwrap_or(section_end);
            calls.extend(calls_for_blocks(&mm, pfn, free_end));
            prepared = free_end + 1;
        }
    }
    calls
}

/// The same, for pages that are prepared.
fn calls_for_blocks(mm: &Mm, mut head: usize, end: usize) -> Vec<Call> {
    let mut calls = Vec::new();
    while head < end {
        let fits = |order: &u32| head % (1 << order) == 0 && head + (1 << order) <= end;
        let same = |order: &u32| mm.zone(head) == mm.zone(head + (1 << order) - 1);
        let largest = (0..=MAX_PAGE_ORDER).rev().find(fits).expect("a page fits");
        let order = (0..=largest)
            .rev()
            .find(same)
            .expect("a page is of one zone");
        let asked = (order.max(1)..=largest).rev();
        calls.extend(asked.map(|order| Call::Zone(head, head + (1 << order) - 1)));
        calls.push(Call::Block(Block { head, order }));
        head += 1 << order;
    }
    calls
}

proptest! {
    #![proptest_config(crate::cases(400))]

    /// How long sections, runs and blocks are, and that each is had once, is all that batching is.
    #[test]
    fn of_the_port_is_asked_what_must_be(
        refcounted in layout::<Refcounted>(),
        frozen in layout::<Frozen>(),
    ) {
        prop_assert_eq!(calls::<Refcounted>(&refcounted), calls_by_page(&refcounted));
        prop_assert_eq!(calls::<Frozen>(&frozen), calls_by_page(&frozen));
    }
}

/// As C does: one page does not go through the preparation of a run.
#[test]
fn one_page_is_freed_as_such() {
    assert_eq!(calls::<Refcounted>(&Layout::plain(8, 1)), [Call::Page(8)]);
    let pair = Block { head: 8, order: 1 };
    assert_eq!(
        calls::<Refcounted>(&Layout::plain(8, 2)),
        [
            Call::Section(8),
            Call::Prepare { first: 8, nr: 2 },
            Call::Zone(8, 9),
            Call::Block(pair),
        ]
    );
}
