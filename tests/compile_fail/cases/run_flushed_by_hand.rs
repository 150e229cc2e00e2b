// SPDX-License-Identifier: GPL-2.0

//! error: E0133 flush_tlb
//! The TLB is not flushed, or a flush put off, for the part of a run by hand.

use mm_batch::unmap::{ClearedPtes, UnmapWalk};

pub fn flushed<W: UnmapWalk>(walk: &W, run: &ClearedPtes<W>) {
    #[cfg(bad)]
    let _ = walk.flush_tlb(run.part());
}
