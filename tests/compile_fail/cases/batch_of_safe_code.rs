// SPDX-License-Identifier: GPL-2.0

//! error: E0200 FolioBatch
//! Safe code has no batch of its own making, by whose locks folios are unmapped.

use mm_batch::batch::FolioBatch;

pub struct Mine;

#[cfg(bad)]
impl FolioBatch for Mine {
    fn check_references(&self) {}
    fn alloc_swap(&self) {}
    fn unmap(&self) {}
    fn free_clean(&self) {}
    fn may_wait(&self) -> bool {
        true
    }
    fn flush_dirty(&self) {}
    unsafe fn let_go(&self) {}
    unsafe fn put_back(&self) {}
}
