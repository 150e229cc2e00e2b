// SPDX-License-Identifier: GPL-2.0

//! error: E0451 head, order, FreeBlock
//! A free block is only made of pages proven free: nobody else can make one.

use mm_batch::free::FreeBlock;

pub fn order(block: &FreeBlock) -> u32 {
    block.order()
}

#[cfg(bad)]
pub fn forge(head: mm_batch::pages::Pfn) -> FreeBlock {
    FreeBlock { head, order: 3 }
}
