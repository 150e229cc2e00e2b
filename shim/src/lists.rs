// SPDX-License-Identifier: GPL-2.0

//! The allocator's end: what happens to each page, and on which list a block lands.
//!
//! What breaks a rule that the kernel relies on panics here, where the kernel would corrupt itself.
//!
//! | here                    | in 7.3, mm/page_alloc.c                                           |
//! |-------------------------|-------------------------------------------------------------------|
//! | [`Lists::prepare`]      | the result of `__free_pages_prepare()`: true, or leaked  |
//! | [`Lists::free_block`]   | `__free_frozen_pages()` with `FPI_PREPARED`                         |
//! | which list              | `pcp_allowed_order()`: up to `PAGE_ALLOC_COSTLY_ORDER` or a PMD's  |
//! | the per-CPU list        | `free_frozen_page_commit()`                                       |
//! | the buddy lists         | `__free_pages_ok()` and `free_one_page()`                         |
//! | [`Lists::pgfree`]       | `__count_vm_events(PGFREE)` in both                               |
//! | natural alignment       | the `VM_WARN_ON_ONCE()` of `split_large_buddy()`                  |
//!
//! Left out: merging of buddies, cutting a block into pageblocks, migratetypes and isolation, the
//! pcp's batch and high mark, its trylock and what happens when that fails, `FPI_NOLOCK`, and
//! allocation: a page is freed at most once in a model. One lock stands for the zone's and the
//! pcp's. PMD-sized blocks go to the pcp, as with `CONFIG_TRANSPARENT_HUGEPAGE`.

use mm_batch::pages::Pfn;
use std::collections::BTreeMap;

/// Who did something to a page: a number that the test gives to each of its threads.
pub type Side = usize;

/// Where a page is on its way to the allocator. The kernel keeps no such state: it is what would
/// have to be true of the page.
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

/// The order of a PMD-sized block on x86_64 and arm64 with 4 KiB pages (C: `PMD_ORDER`,
/// include/linux/pgtable.h, 7.3).
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

    /// The per-CPU list, in the order in which blocks came.
    pub fn pcp(&self) -> &[Block] {
        &self.pcp
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

#[cfg(test)]
mod tests {
    use super::*;

    const US: Side = 0;
    const THEM: Side = 1;

    /// Pages 8 to 15, of an allocator that takes blocks of up to 4.
    fn lists() -> Lists {
        Lists::new(Pfn::new(8), 8, 2)
    }

    /// `nr` pages, prepared.
    fn prepared(nr: usize) -> Lists {
        let mut lists = lists();
        for pfn in 8..8 + nr {
            lists.prepare(Pfn::new(pfn), US, true);
        }
        lists
    }

    #[test]
    fn blocks_are_counted_and_put_where_their_order_belongs() {
        let mut lists = Lists::new(Pfn::new(1024), 2048, 10);
        let mut pfn = 1024;
        for order in [10, 9, 8, 4, 3, 0] {
            for page in pfn..pfn + (1 << order) {
                lists.prepare(Pfn::new(page), US, true);
            }
            lists.free_block(Pfn::new(pfn), order, US);
            pfn += 1 << order;
        }
        let orders = |blocks: &[Block]| blocks.iter().map(|block| block.order).collect::<Vec<_>>();
        assert_eq!(orders(&lists.pcp), [9, 3, 0]);
        assert_eq!(orders(&lists.buddy), [10, 8, 4]);
        assert_eq!(lists.pgfree(), pfn - 1024);
        assert_eq!(lists.blocks().len(), 6);
        assert_eq!(lists.state(Pfn::new(1024)), State::Free(US));
        assert_eq!(lists.state(Pfn::new(pfn)), State::Allocated);
    }

    #[test]
    #[should_panic(expected = "a page outside of the model was touched")]
    fn a_page_outside_is_noticed() {
        lists().prepare(Pfn::new(16), US, true);
    }

    #[test]
    #[should_panic(expected = "cannot become Prepared(0)")]
    fn a_page_prepared_twice_is_noticed() {
        prepared(1).prepare(Pfn::new(8), US, true);
    }

    #[test]
    #[should_panic(expected = "cannot become Free(0)")]
    fn a_page_that_was_not_prepared_is_noticed() {
        prepared(3).free_block(Pfn::new(8), 2, US);
    }

    #[test]
    #[should_panic(expected = "cannot become Free(0)")]
    fn a_leaked_page_in_a_block_is_noticed() {
        let mut lists = prepared(1);
        lists.prepare(Pfn::new(9), US, false);
        lists.free_block(Pfn::new(8), 1, US);
    }

    #[test]
    #[should_panic(expected = "cannot become Free(0)")]
    fn a_page_freed_twice_is_noticed() {
        let mut lists = prepared(1);
        lists.free_block(Pfn::new(8), 0, US);
        lists.free_block(Pfn::new(8), 0, US);
    }

    #[test]
    #[should_panic(expected = "cannot become Free(1)")]
    fn a_page_that_another_side_prepared_is_noticed() {
        prepared(1).free_block(Pfn::new(8), 0, THEM);
    }

    #[test]
    #[should_panic(expected = "is larger than the allocator takes")]
    fn a_block_too_large_is_noticed() {
        prepared(8).free_block(Pfn::new(8), 3, US);
    }

    #[test]
    #[should_panic(expected = "is misaligned")]
    fn a_misaligned_block_is_noticed() {
        prepared(4).free_block(Pfn::new(9), 1, US);
    }

    /// The states rule it out, so the blocks are laid by hand.
    #[test]
    #[should_panic(expected = "overlap")]
    fn blocks_that_overlap_are_noticed() {
        let mut lists = lists();
        lists.pcp.push(Block { head: 8, order: 1 });
        lists.buddy.push(Block { head: 9, order: 0 });
        lists.blocks();
    }

    #[test]
    #[should_panic(expected = "was prepared and then lost")]
    fn a_lost_page_is_noticed() {
        let mut lists = prepared(2);
        lists.free_block(Pfn::new(8), 0, US);
        lists.blocks();
    }
}
