// SPDX-License-Identifier: GPL-2.0

//! error: E0382 cleared
//! Folios that have vanished are not mapped again.

use mm_batch::folios::{
    ClearedFolios,
    FoliosWalk, //
};

pub fn end<W: FoliosWalk>(cleared: ClearedFolios<'_, W>) {
    let set = cleared.vanish();
    #[cfg(bad)]
    cleared.restore(Some(set));
}
