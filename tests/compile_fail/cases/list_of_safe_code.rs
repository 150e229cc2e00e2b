// SPDX-License-Identifier: GPL-2.0

//! error: E0200 FolioList
//! Safe code has no list of its own making, by whose answers folios are written out.

use core::num::NonZero;
use mm_batch::reclaim::{
    AfterFlush,
    FolioList, //
};

pub struct Mine;

#[cfg(bad)]
impl FolioList for Mine {
    type Folio = ();
    type Mapping = ();

    fn try_to_unmap_flush_dirty(&self) {}
    fn next_waiting(&self, _: &AfterFlush) -> Option<()> {
        None
    }
    fn folio_nr_pages(&self, _: &()) -> NonZero<u32> {
        NonZero::<u32>::MIN
    }
    fn folio_trylock(&self, _: &(), _: &AfterFlush) -> bool {
        true
    }
    fn folio_contain_hwpoisoned_page(&self, _: &()) -> bool {
        true
    }
    fn folio_mapped(&self, _: &()) -> bool {
        true
    }
    fn folio_maybe_dma_pinned(&self, _: &()) -> bool {
        true
    }
    fn folio_evictable(&self, _: &()) -> bool {
        true
    }
    fn folio_test_writeback(&self, _: &()) -> bool {
        true
    }
    fn no_other_references(&self, _: &()) -> bool {
        true
    }
    fn folio_mapping(&self, _: &()) -> Option<()> {
        None
    }
    unsafe fn pageout(&self, _: (), _: ()) {}
    unsafe fn keep(&self, _: ()) {}
    unsafe fn keep_locked(&self, _: ()) {}
    unsafe fn activate_locked(&self, _: ()) {}
    unsafe fn unmap_failed_locked(&self, _: ()) {}
}
