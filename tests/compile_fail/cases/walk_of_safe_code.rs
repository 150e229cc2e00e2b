// SPDX-License-Identifier: GPL-2.0

//! error: E0200 UnmapWalk
//! Safe code has no walk of its own making, that looks at one page table and changes another.

use mm_batch::{
    pte::Pte,
    pte_run::{
        PteTable,
        RunLength, //
    },
    unmap::{
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
    unsafe fn get_and_clear_ptes(&self, _: RunLength) -> Pte {
        Pte::new(0)
    }
    unsafe fn flush_tlb(&self, _: &Part<Self>) {}
    fn smp_mb(&self) {}
    fn folio_test_swapcache(&self) -> bool {
        true
    }
    fn warn_swapcache(&self) {}
    fn folio_mark_dirty(&self) {}
    unsafe fn flush_before_restore(&self, _: &Part<Self>) {}
    unsafe fn set_ptes(&self, _: &Part<Self>) {}
    unsafe fn leave_behind(&self, _: &Part<Self>) {}
    fn update_hiwater_rss(&self) {}
    unsafe fn add_mm_counter(&self, _: RunLength) {}
    unsafe fn folio_remove_rmap_ptes(&self, _: RunLength) {}
    unsafe fn folio_put_refs(&self, _: RunLength) {}
}
