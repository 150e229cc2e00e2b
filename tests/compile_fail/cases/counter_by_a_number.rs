// SPDX-License-Identifier: GPL-2.0

//! error: E0308 RunLength, i64
//! right: i64::from(nr.get()) -> nr
//! What ends is a run: nobody but the port negates its length, in any width.

use mm_batch::{pte_run::RunLength, unmap::UnmapWalk};

#[cfg(bad)]
pub fn removed<W: UnmapWalk>(walk: &W, nr: RunLength) {
    // SAFETY: Nobody's: this is not run.
    unsafe { walk.end_mappings(i64::from(nr.get())) };
}
