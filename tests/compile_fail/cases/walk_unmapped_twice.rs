// SPDX-License-Identifier: GPL-2.0

//! error: E0382 walk
//! A walk is one stop: what was unmapped there once is not unmapped again.

use mm_batch::file_unmap::{
    unmap_run,
    FileUnmapWalk, //
};

pub fn unmap<W: FileUnmapWalk>(walk: W) {
    let _ = unmap_run(walk, true);
    #[cfg(bad)]
    let _ = unmap_run(walk, true);
}
