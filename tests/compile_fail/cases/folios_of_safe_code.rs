// SPDX-License-Identifier: GPL-2.0

//! error: E0200 FoliosWalk, SwapFoliosWalk
//! Safe code has no stop of its own making, by whose answers PTEs are cleared.

use mm_batch::folios::{
    FolioSet,
    FoliosWalk,
    SwapFoliosWalk, //
};

pub struct Mine;

#[cfg(bad)]
impl FoliosWalk for Mine {
    fn find(&mut self) -> Option<FolioSet> {
        None
    }
    unsafe fn clear_flush(&self, _: FolioSet) {}
    fn smp_mb(&self) {}
    unsafe fn restore(&self, _: FolioSet) {}
    unsafe fn end_mappings(&self, _: FolioSet) {}
    unsafe fn vanish(&self, _: FolioSet) {}
}

#[cfg(bad)]
impl SwapFoliosWalk for Mine {
    unsafe fn dup_swap(&self, set: FolioSet) -> Option<FolioSet> {
        Some(set)
    }
    unsafe fn put_swap(&self, _: FolioSet) {}
    fn exclusive(&self, _: FolioSet) -> Option<FolioSet> {
        None
    }
    fn maybe_dma_pinned(&self, _: FolioSet) -> Option<FolioSet> {
        None
    }
    unsafe fn clear_anon_exclusive(&self, _: FolioSet) {}
    fn smp_mb_after_atomic(&self) {}
    unsafe fn prepare_for_swap_entries(&self, _: FolioSet) {}
    unsafe fn set_swp_ptes(&self, _: FolioSet) {}
}
