// SPDX-License-Identifier: GPL-2.0

//! error: E0382
//! A walk is one stop: what was unmapped there once is not unmapped again.

use mm_batch::file_unmap::{unmap_run, Differences, FileUnmapWalk, Outcome};

pub fn unmap<W: FileUnmapWalk>(walk: W) -> Outcome {
    #[cfg(bad)]
    let _ = unmap_run(walk, Differences::ALL);
    unmap_run(walk, Differences::ALL)
}
