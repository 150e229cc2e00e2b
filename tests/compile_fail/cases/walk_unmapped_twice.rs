// SPDX-License-Identifier: GPL-2.0

//! error: E0382 walk
//! A walk is one stop: what was unmapped there once is not unmapped again.

use mm_batch::{file_unmap::unmap_file_run, unmap::UnmapWalk};

pub fn unmap<W: UnmapWalk>(walk: W) {
    unmap_file_run(walk, true);
    #[cfg(bad)]
    unmap_file_run(walk, true);
}
