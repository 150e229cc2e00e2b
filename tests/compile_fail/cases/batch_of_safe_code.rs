// SPDX-License-Identifier: GPL-2.0

//! error: E0200 FolioBatch
//! Safe code has no batch of its own making, by whose locks folios are unmapped.

use mm_batch::{
    batch::FolioBatch,
    reclaim::FolioList, //
};

pub struct Mine<L>(pub fn() -> L);

#[cfg(bad)]
impl<L: FolioList> FolioBatch for Mine<L> {
    type List = L;

    fn check_references(&self) {}
    fn alloc_swap(&self) {}
    unsafe fn unmap(&self) {}
    fn flush_dirty(&self) {}
    unsafe fn free_clean(&self) {}
    unsafe fn let_go(&self) -> L {
        (self.0)()
    }
}
