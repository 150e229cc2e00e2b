// SPDX-License-Identifier: GPL-2.0

//! error: E0200 ContigMm
//! Safe code has no mm of its own making, by whose answers blocks are put together.

use core::num::NonZero;
use mm_batch::{
    free::{ContigMm, FreeBlock, Held, LonePage, PreparedPages, Section},
    pages::Pfn,
};

pub struct Mine;

#[cfg(bad)]
impl ContigMm for Mine {
    const MAX_PAGE_ORDER: u32 = 0;

    fn contiguous_struct_pages(&self, _: Pfn) -> NonZero<usize> {
        NonZero::<usize>::MAX
    }
    fn free_page<H: Held>(&self, _: LonePage<H>) {}
    fn prepare_run<H: Held>(
        &self,
        pages: Section<H>,
    ) -> (Option<PreparedPages>, Option<Section<H>>) {
        (None, Some(pages))
    }
    unsafe fn same_zone(&self, _: Pfn, _: Pfn) -> bool {
        true
    }
    fn free_prepared(&self, _: FreeBlock) {}
}
