// SPDX-License-Identifier: GPL-2.0

//! The port of `contig_free`: a range of allocated pages, as one CPU sees it.
//!
//! | here                        | in 7.3                                                        |
//! |-----------------------------|---------------------------------------------------------------|
//! | `prepare_run()`             | the loop of `__free_contig_range_common()`, mm/page_alloc.c    |
//! | `contiguous_struct_pages()` | `memdesc_section()`, include/linux/mm.h, which that loop compares |
//! | `same_zone()`               | `page_zone_id()`, include/linux/mm.h                           |
//! | `free_page()`               | `__free_pages()` or `free_frozen_pages()` of order 0, mm/page_alloc.c |
//! | `free_prepared()`           | `__free_frozen_pages()` with `FPI_PREPARED`, mm/page_alloc.c   |
//! | [`Mm::put_page`]            | `put_page()`, include/linux/mm.h, on a page of no LRU list     |
//!
//! With sections, struct pages are contiguous only within one, as with SPARSEMEM without vmemmap: a
//! walk that leaves its section panics.
//!
//! Left out: what prepare does to a page (uncharge, poison, page_owner and the like); only its
//! result counts. The batch that prepares without the hooks is C and is tested in the kernel. A
//! zone is an interval of page frames: one that leaves and returns within a block is not modelled.
//! Sections that are holes, and pages on the LRU, are not there.
//!
//! ```
//! use mm_batch::{contig_free::free_contig_range, free::Refcounted};
//! use mm_shim::contig_free::{Cpu, Layout, Mm};
//!
//! mm_shim::sync::explore(|| {
//!     let layout = Layout::plain(512, 20);
//!     let mm = Mm::new(layout.clone());
//!     free_contig_range(&Cpu::new(&mm, 0), layout.range::<Refcounted>());
//!     let orders: Vec<u32> = mm.with_lists(|l| l.blocks().iter().map(|b| b.order).collect());
//!     assert_eq!(orders, [4, 2]);
//! });
//! ```

#![deny(unsafe_code)]

use crate::{
    lists::{
        Lists,
        Side,
        State, //
    },
    page::Page,
    sync::Mutex, //
};
use mm_batch::{
    free::{
        ContigMm,
        FreeBlock,
        Held,
        LonePage,
        PageRange,
        PreparedPages,
        Section, //
    },
    pages::Pfn, //
};
use std::{
    collections::BTreeSet,
    num::NonZero, //
};

/// The order of the largest buddy block, as on x86_64 and arm64 with 4 KiB pages.
pub const MAX_PAGE_ORDER: u32 = 10;

/// What a model starts from.
#[derive(Clone, Debug)]
pub struct Layout {
    /// First page frame number.
    pub first: usize,
    /// Number of pages.
    pub nr: usize,
    /// The references of each page: 0 is frozen. Pages beyond the vector's end have 1.
    pub counts: Vec<i32>,
    /// Page frames whose prepare fails.
    pub bad: BTreeSet<usize>,
    /// Page frames at which a zone begins.
    pub zone_starts: BTreeSet<usize>,
    /// Pages per section of SPARSEMEM without vmemmap; none if all struct pages are contiguous.
    pub section: Option<NonZero<usize>>,
}

impl Layout {
    /// `nr` pages from `first` on with one reference each, in one zone, with contiguous struct
    /// pages.
    pub fn plain(first: usize, nr: usize) -> Self {
        Self {
            first,
            nr,
            counts: Vec::new(),
            bad: BTreeSet::new(),
            zone_starts: BTreeSet::new(),
            section: None,
        }
    }

    /// The same range for the algorithm to free.
    pub fn range<H: Held>(&self) -> PageRange<H> {
        range(self.first, self.nr)
    }
}

/// A range for the algorithm to free.
///
/// # Panics
///
/// If it is empty or wraps.
#[allow(unsafe_code)]
pub fn range<H: Held>(first: usize, nr: usize) -> PageRange<H> {
    // SAFETY: A page of a model is no memory. Whether somebody owns it, the model says.
    unsafe { PageRange::owned(Pfn::new(first), nr) }.expect("a range")
}

/// Pages on their way to the allocator.
#[derive(Debug)]
pub struct Mm {
    layout: Layout,
    pages: Vec<Page>,
    lists: Mutex<Lists>,
}

impl Mm {
    /// The pages that `layout` describes.
    pub fn new(layout: Layout) -> Self {
        let count = |i: usize| layout.counts.get(i).copied().unwrap_or(1);
        Self {
            pages: (0..layout.nr).map(|i| Page::new(count(i))).collect(),
            lists: Mutex::new(Lists::new(
                Pfn::new(layout.first),
                layout.nr,
                MAX_PAGE_ORDER,
            )),
            layout,
        }
    }

    /// A page.
    ///
    /// # Panics
    ///
    /// If it is not one of this model's.
    pub fn page(&self, pfn: Pfn) -> &Page {
        &self.pages[pfn.get() - self.layout.first]
    }

    /// The number of the zone that a page is in.
    pub fn zone(&self, pfn: usize) -> usize {
        self.layout.zone_starts.range(..=pfn).count()
    }

    /// What reads the lists, at the end of a test or of a thread.
    pub fn with_lists<T>(&self, look: impl FnOnce(&Lists) -> T) -> T {
        look(&self.lists.lock().expect("a thread of the model panicked"))
    }

    /// The state of a page.
    pub fn state(&self, pfn: usize) -> State {
        self.with_lists(|lists| lists.state(Pfn::new(pfn)))
    }

    /// Prepares a page whose count is zero; whether it may be freed.
    fn prepare(&self, pfn: Pfn, side: Side) -> bool {
        assert_eq!(
            self.page(pfn).count(),
            0,
            "a page with references is prepared"
        );
        self.page(pfn).assert_quiet();
        let passes = !self.layout.bad.contains(&pfn.get());
        self.lists
            .lock()
            .expect("a thread of the model panicked")
            .prepare(pfn, side, passes);
        passes
    }

    fn free_block(&self, head: Pfn, order: u32, side: Side) {
        let last = head.get() + (1 << order) - 1;
        assert_eq!(
            self.zone(head.get()),
            self.zone(last),
            "a block crosses a zone"
        );
        self.lists
            .lock()
            .expect("a thread of the model panicked")
            .free_block(head, order, side);
    }

    /// One page of a range by itself, without the algorithm: a reference of it, or the frozen page.
    pub fn free_page(&self, pfn: Pfn, side: Side) {
        let frozen = self.page(pfn).count() == 0;
        if (frozen || self.page(pfn).put_testzero()) && self.prepare(pfn, side) {
            self.free_block(pfn, 0, side);
        }
    }

    /// `put_page()` on an order-0 page: whoever drops the last reference frees it.
    pub fn put_page(&self, pfn: Pfn, side: Side) {
        if self.page(pfn).put_testzero() && self.prepare(pfn, side) {
            self.free_block(pfn, 0, side);
        }
    }
}

/// One CPU that frees pages: the port's implementation.
#[derive(Debug)]
pub struct Cpu<'mm> {
    mm: &'mm Mm,
    side: Side,
}

impl<'mm> Cpu<'mm> {
    /// `mm`, freed by `side`.
    pub fn new(mm: &'mm Mm, side: Side) -> Self {
        Self { mm, side }
    }

    fn drop_and_prepare<H: Held>(&self, pfn: Pfn) -> bool {
        let free = if H::FROZEN {
            assert_eq!(self.mm.page(pfn).count(), 0, "a frozen page has references");
            true
        } else {
            self.mm.page(pfn).put_testzero()
        };
        free && self.mm.prepare(pfn, self.side)
    }
}

#[allow(unsafe_code)]
// SAFETY: A page of a model is no memory. The answers are the layout's.
unsafe impl ContigMm for Cpu<'_> {
    const MAX_PAGE_ORDER: u32 = MAX_PAGE_ORDER;

    fn contiguous_struct_pages(&self, first: Pfn) -> NonZero<usize> {
        match self.mm.layout.section {
            Some(section) => {
                NonZero::new(section.get() - first.get() % section).expect("less than a section")
            }
            None => NonZero::<usize>::MAX,
        }
    }

    fn free_page<H: Held>(&self, page: LonePage<H>) {
        if self.drop_and_prepare::<H>(page.pfn()) {
            self.mm.free_block(page.pfn(), 0, self.side);
        }
    }

    fn prepare_run<H: Held>(
        &self,
        pages: Section<H>,
    ) -> (Option<PreparedPages>, Option<Section<H>>) {
        let (first, nr) = (pages.frames().first(), pages.frames().nr().get());
        if let Some(section) = self.mm.layout.section {
            let last = first.get() + nr - 1;
            assert_eq!(
                first.get() / section,
                last / section,
                "a walk leaves its section"
            );
        }
        let ready = (0..nr)
            .find(|&i| !self.drop_and_prepare::<H>(first.add(i)))
            .unwrap_or(nr);
        // SAFETY: So many were prepared, and the page behind them was the last that was visited.
        unsafe { pages.visited(ready) }
    }

    unsafe fn same_zone(&self, a: Pfn, b: Pfn) -> bool {
        self.mm.zone(a.get()) == self.mm.zone(b.get())
    }

    fn free_prepared(&self, block: FreeBlock) {
        self.mm.free_block(block.head(), block.order(), self.side);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::explore;
    use mm_batch::free::{
        Frozen,
        PreparedRun,
        Refcounted, //
    };

    const US: Side = 0;

    fn with_section(pages: usize) -> Layout {
        Layout {
            section: NonZero::new(pages),
            ..Layout::plain(8, 8)
        }
    }

    #[test]
    fn a_walk_stops_after_the_page_that_ends_it() {
        explore(|| {
            let mut layout = Layout::plain(8, 4);
            layout.counts = vec![1, 1, 2];
            let mm = Mm::new(layout);
            let cpu = Cpu::new(&mm, US);
            let (section, _) = range::<Refcounted>(8, 4).split_off_section(&cpu);
            let (prepared, rest) = cpu.prepare_run(section);
            assert!(prepared.is_some());
            let rest = rest.expect("the last page").frames();
            assert_eq!((rest.first().get(), rest.nr().get()), (11, 1));
            assert_eq!(mm.state(9), State::Prepared(US));
            assert_eq!(mm.state(10), State::Allocated);
            assert_eq!(mm.page(Pfn::new(10)).count(), 1);
            assert_eq!(mm.page(Pfn::new(11)).count(), 1);
        });
    }

    /// The net: who forgets to free a prepared run has freed it.
    #[test]
    fn a_prepared_run_that_is_dropped_is_freed() {
        explore(|| {
            let mm = Mm::new(Layout::plain(8, 6));
            let cpu = Cpu::new(&mm, US);
            let (section, _) = range::<Refcounted>(8, 6).split_off_section(&cpu);
            let (run, _) = PreparedRun::first_of(&cpu, section);
            drop(run);
            assert_eq!(mm.with_lists(|lists| lists.blocks().len()), 2);
            assert_eq!(mm.state(13), State::Free(US));
        });
    }

    #[test]
    fn a_section_ends_at_a_multiple_of_its_size() {
        explore(|| {
            let mm = Mm::new(with_section(4));
            let left = |pfn| {
                Cpu::new(&mm, US)
                    .contiguous_struct_pages(Pfn::new(pfn))
                    .get()
            };
            assert_eq!([left(8), left(9), left(11), left(12)], [4, 3, 1, 4]);
        });
    }

    #[test]
    fn a_zone_goes_on_to_the_next_ones_start() {
        explore(|| {
            let mut layout = Layout::plain(8, 8);
            layout.zone_starts = [8, 12].into();
            let mm = Mm::new(layout);
            assert_eq!([8, 11, 12].map(|pfn| mm.zone(pfn)), [1, 1, 2]);
        });
    }

    #[test]
    #[should_panic(expected = "a page with references is prepared")]
    fn a_page_prepared_with_references_is_noticed() {
        explore(|| {
            Mm::new(Layout::plain(8, 1)).prepare(Pfn::new(8), US);
        });
    }

    #[test]
    #[should_panic(expected = "a block crosses a zone")]
    fn a_block_of_two_zones_is_noticed() {
        explore(|| {
            let mut layout = Layout::plain(8, 2);
            layout.counts = vec![0; 2];
            layout.zone_starts.insert(9);
            let mm = Mm::new(layout);
            mm.prepare(Pfn::new(8), US);
            mm.prepare(Pfn::new(9), US);
            mm.free_block(Pfn::new(8), 1, US);
        });
    }

    #[test]
    #[should_panic(expected = "a frozen page has references")]
    fn a_frozen_page_with_references_is_noticed() {
        explore(|| {
            let mm = Mm::new(Layout::plain(8, 2));
            let cpu = Cpu::new(&mm, US);
            let (section, _) = range::<Frozen>(8, 2).split_off_section(&cpu);
            let _ = cpu.prepare_run(section);
        });
    }

    #[test]
    #[should_panic(expected = "a walk leaves its section")]
    fn a_walk_into_the_next_section_is_noticed() {
        explore(|| {
            let (mm, without) = (Mm::new(with_section(4)), Mm::new(Layout::plain(8, 8)));
            // Only by what another mm says of its sections.
            let (section, _) = range::<Refcounted>(8, 5).split_off_section(&Cpu::new(&without, US));
            let _ = Cpu::new(&mm, US).prepare_run(section);
        });
    }
}
