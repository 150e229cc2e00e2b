// SPDX-License-Identifier: GPL-2.0

//! error: E0200 UnmapWalk, SwapWalk
//! Safe code has no walk of its own making, that looks at one page table and changes another, or says
//! that swap entries are counted, or no page pinned.

use core::num::NonZero;
use mm_batch::{
    pte::Pte,
    pte_run::{
        PteTable,
        RunLength, //
    },
    to_swap::{
        Sharing,
        SubBatch,
        SwapWalk, //
    },
    unmap::{
        Cleared,
        Part,
        UnmapWalk, //
    },
};

pub struct Mine<T>(T);

#[cfg(bad)]
impl<T: PteTable> UnmapWalk for Mine<T> {
    type View = T;

    fn view(&self) -> &T {
        &self.0
    }
    unsafe fn clear_flush_ptes(&self, _: RunLength) -> Cleared {
        Cleared {
            first: Pte::new(0),
            dirty: false,
        }
    }
    fn smp_mb(&self) {}
    fn folio_test_swapcache(&self) -> bool {
        true
    }
    fn warn_swapcache(&self) {}
    fn folio_mark_dirty(&self) {}
    unsafe fn flush_before_restore(&self, _: &Part<Self>) {}
    unsafe fn set_ptes(&self, _: &Part<Self>) {}
    unsafe fn end_mappings(&self, _: RunLength) {}
    unsafe fn vanish(&self, _: &Part<Self>) {}
}

#[cfg(bad)]
impl<T: PteTable> SwapWalk for Mine<T> {
    unsafe fn folio_dup_swap_pages(&self, _: RunLength) -> bool {
        true
    }
    unsafe fn folio_put_swap_pages(&self, _: RunLength) {}
    fn smp_mb_after_atomic(&self) {}
    fn folio_maybe_dma_pinned(&self) -> bool {
        false
    }
    unsafe fn page_anon_exclusive_batch(&self, _: &Part<Self>) -> SubBatch {
        SubBatch {
            sharing: Sharing::Exclusive,
            nr: NonZero::<u32>::MIN,
        }
    }
    unsafe fn clear_pages_anon_exclusive(&self, _: &Part<Self>) {}
    unsafe fn prepare_for_swap_entries(&self, _: RunLength) {}
    unsafe fn set_swp_ptes(&self, _: &Part<Self>, _: Sharing) {}
}
