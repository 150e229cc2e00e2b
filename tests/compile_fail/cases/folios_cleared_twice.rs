// SPDX-License-Identifier: GPL-2.0

//! error: E0382 found
//! Folios are cleared once.

use mm_batch::folios::{
    FoliosWalk,
    FoundFolios, //
};

pub fn clear<W: FoliosWalk>(found: FoundFolios<'_, W>) {
    let _cleared = found.clear();
    #[cfg(bad)]
    let _twice = found.clear();
}
