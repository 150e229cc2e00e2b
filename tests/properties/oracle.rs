// SPDX-License-Identifier: GPL-2.0

//! What a range free must amount to, said twice in other words than the algorithm's.

use mm_batch::{
    free::ContigMm,
    pages::Pfn, //
};
use mm_shim::{
    contig_free::{
        Cpu,
        Layout,
        Mm,
        MAX_PAGE_ORDER, //
    },
    lists::{
        Block,
        Lists,
        State, //
    }, //
};
use std::num::NonZero;

/// The one-page loop: the state and the counters that a range free must end in.
pub(crate) fn free_page_by_page(mm: &Mm, layout: &Layout) {
    for pfn in layout.first..layout.first + layout.nr {
        mm.free_page(Pfn::new(pfn), 0);
    }
}

/// What C 7.3's `__free_contig_range_common()` does, page by page as it does it, with the pages'
/// sections.
pub(crate) struct CRange<'a> {
    pub(crate) layout: &'a Layout,
}

impl CRange<'_> {
    /// The blocks, in the order in which C frees them.
    pub(crate) fn blocks(&self) -> Vec<Block> {
        let mut blocks = Vec::new();
        let mut start: Option<(usize, usize)> = None;
        let end = self.layout.first + self.layout.nr;
        for pfn in self.layout.first..end {
            let section = self.layout.section.map_or(0, |nr| pfn / nr);
            if !self.page_is_free(pfn) {
                if let Some((first, _)) = start.take() {
                    Self::cut(first, pfn, &mut blocks);
                }
            } else if let Some((first, of)) = start {
                if of != section {
                    Self::cut(first, pfn, &mut blocks);
                    start = Some((pfn, section));
                }
            } else {
                start = Some((pfn, section));
            }
        }
        if let Some((first, _)) = start {
            Self::cut(first, end, &mut blocks);
        }
        blocks
    }

    pub(crate) fn page_is_free(&self, pfn: usize) -> bool {
        let count = self
            .layout
            .counts
            .get(pfn - self.layout.first)
            .copied()
            .unwrap_or(1);
        count <= 1 && !self.layout.bad.contains(&pfn)
    }

    fn cut(first: usize, end: usize, blocks: &mut Vec<Block>) {
        let mut pfn = first;
        while pfn < end {
            let mut order = if pfn == 0 {
                MAX_PAGE_ORDER
            } else {
                pfn.trailing_zeros()
            };
            order = order.min((end - pfn).ilog2()).min(MAX_PAGE_ORDER);
            blocks.push(Block { head: pfn, order });
            pfn += 1 << order;
        }
    }
}

/// The pages that may be freed are exactly those in blocks; every block is as large as it can be.
pub(crate) fn assert_exact_and_maximal(mm: &Mm, lists: &Lists, layout: &Layout) {
    let blocks = lists.blocks();
    let free = |pfn: usize| {
        (layout.first..layout.first + layout.nr).contains(&pfn)
            && matches!(lists.state(Pfn::new(pfn)), State::Free(_))
    };
    let in_blocks: usize = blocks.iter().map(|block| 1 << block.order).sum();
    let freed = (layout.first..layout.first + layout.nr)
        .filter(|&pfn| free(pfn))
        .count();
    assert_eq!(in_blocks, freed);
    assert_eq!(lists.pgfree(), freed);

    for block in &blocks {
        // The block that twice the size would have been: aligned, all free, of one zone?
        let order = block.order + 1;
        let head = block.head & !((1 << order) - 1);
        let twice = head..head + (1 << order);
        let larger = order <= MAX_PAGE_ORDER
            && twice.clone().all(free)
            && mm.zone(twice.start) == mm.zone(twice.end - 1);
        assert!(!larger, "{block:x?} could have been of order {order}");
    }
}

/// The layout's pages per section, if it has sections, are never left by a walk: the shim checks
/// it.
pub(crate) fn section_of(order: u32) -> Option<NonZero<usize>> {
    NonZero::new(1 << order)
}

const _: () = assert!(<Cpu<'_> as ContigMm>::MAX_PAGE_ORDER == MAX_PAGE_ORDER);
