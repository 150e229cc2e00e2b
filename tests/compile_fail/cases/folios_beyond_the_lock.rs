// SPDX-License-Identifier: GPL-2.0

//! error: E0382 walk
//! A walk is one stop: what was unmapped there is over with it.

use mm_batch::{
    folio_batch::unmap_file_folios,
    folios::FoliosWalk, //
};

pub fn unmap<W: FoliosWalk>(walk: W) {
    unmap_file_folios(walk);
    #[cfg(bad)]
    unmap_file_folios(walk);
}
