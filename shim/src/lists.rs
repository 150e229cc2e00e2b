// SPDX-License-Identifier: GPL-2.0

//! The allocator's end: what happens to each page, and on which list a block lands.
//!
//! Models the rules that `__free_frozen_pages()`, `free_frozen_page_commit()` and
//! `split_large_buddy()` (mm/page_alloc.c, 7.2) rely on: a block is naturally aligned, within one
//! zone, and made of pages that passed `free_pages_prepare()` and are not free already; it goes to
//! a per-CPU list if its order is up to 3 or a PMD's, else to the buddy lists. What breaks a rule
//! panics here, where the kernel would corrupt itself.
//!
//! Left out: merging of buddies, migratetypes, the pcp's high mark and its trylock. One lock stands
//! for the zone's and the pcp's.

use mm_batch::pages::Pfn;
use std::collections::BTreeMap;

/// Who did something to a page: a number that the test gives to each of its threads.
pub type Side = usize;

/// Where a page is on its way to the allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Allocated: somebody's, by its reference count or as a frozen page.
    Allocated,
    /// Its count reached zero and its prepare passed. It must become free.
    Prepared(Side),
    /// Its prepare failed: leaked on purpose (hwpoison, bad page).
    Leaked(Side),
    /// In a free block, put there by this side.
    Free(Side),
}

/// A block on a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// First page frame number.
    pub head: usize,
    /// 2^order pages.
    pub order: u32,
}

impl Block {
    /// The page frame numbers of the block.
    pub fn pfns(&self) -> std::ops::Range<usize> {
        self.head..self.head + (1 << self.order)
    }
}

/// The order of a PMD-sized block on x86_64 and arm64 with 4 KiB pages.
pub const PMD_ORDER: u32 = 9;
const PAGE_ALLOC_COSTLY_ORDER: u32 = 3;

/// The allocator's lists and counters, and the state of every page.
#[derive(Debug)]
pub struct Lists {
    states: BTreeMap<usize, State>,
    pcp: Vec<Block>,
    buddy: Vec<Block>,
    pgfree: usize,
    max_page_order: u32,
}

impl Lists {
    /// The allocator of `nr` allocated pages from `first` on.
    pub fn new(first: Pfn, nr: usize, max_page_order: u32) -> Self {
        let pfns = first.get()..first.get() + nr;
        Self {
            states: pfns.map(|pfn| (pfn, State::Allocated)).collect(),
            pcp: Vec::new(),
            buddy: Vec::new(),
            pgfree: 0,
            max_page_order,
        }
    }

    fn step(&mut self, pfn: usize, from: State, to: State) {
        let state = self
            .states
            .get_mut(&pfn)
            .expect("a page outside of the model was touched");
        assert_eq!(*state, from, "pfn {pfn:#x} cannot become {to:?}");
        *state = to;
    }

    /// `free_pages_prepare()` on a page whose count is zero: `passes` or not.
    ///
    /// # Panics
    ///
    /// If the page was prepared before.
    pub fn prepare(&mut self, pfn: Pfn, side: Side, passes: bool) {
        let to = if passes {
            State::Prepared(side)
        } else {
            State::Leaked(side)
        };
        self.step(pfn.get(), State::Allocated, to);
    }

    /// `__free_frozen_pages(page, order, FPI_PREPARED)`.
    ///
    /// # Panics
    ///
    /// If the block is misaligned or too large, or if a page of it is not prepared by this side:
    /// free already, held by somebody, leaked, or in another block.
    pub fn free_block(&mut self, head: Pfn, order: u32, side: Side) {
        let block = Block {
            head: head.get(),
            order,
        };
        assert!(
            order <= self.max_page_order,
            "{block:x?} is larger than the allocator takes"
        );
        assert_eq!(block.head % (1 << order), 0, "{block:x?} is misaligned");
        for pfn in block.pfns() {
            self.step(pfn, State::Prepared(side), State::Free(side));
        }
        self.pgfree += 1 << order;
        if order <= PAGE_ALLOC_COSTLY_ORDER || order == PMD_ORDER {
            self.pcp.push(block);
        } else {
            self.buddy.push(block);
        }
    }

    /// The blocks of both lists, by address.
    ///
    /// # Panics
    ///
    /// If two overlap, or if a page is prepared but in none.
    pub fn blocks(&self) -> Vec<Block> {
        let mut blocks: Vec<_> = self.pcp.iter().chain(&self.buddy).copied().collect();
        blocks.sort_by_key(|block| block.head);
        for pair in blocks.windows(2) {
            assert!(pair[0].pfns().end <= pair[1].head, "{pair:x?} overlap");
        }
        for (pfn, state) in &self.states {
            assert!(
                !matches!(state, State::Prepared(_)),
                "pfn {pfn:#x} was prepared and then lost"
            );
        }
        blocks
    }

    /// The pages freed so far (C: the PGFREE event).
    pub fn pgfree(&self) -> usize {
        self.pgfree
    }

    /// A page's state.
    pub fn state(&self, pfn: Pfn) -> State {
        self.states[&pfn.get()]
    }
}
