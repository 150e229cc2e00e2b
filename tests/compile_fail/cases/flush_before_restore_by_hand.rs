// SPDX-License-Identifier: GPL-2.0

//! error: E0133 flush_before_restore
//! Whether what was put off is waited for is up to who restores.

use mm_batch::unmap::{ClearedPtes, UnmapWalk};

pub fn waited<W: UnmapWalk>(walk: &W, run: &ClearedPtes<W>) {
    #[cfg(bad)]
    let _ = walk.flush_before_restore(run.part());
}
