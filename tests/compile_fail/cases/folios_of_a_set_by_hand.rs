// SPDX-License-Identifier: GPL-2.0

//! error: E0061 argument
//! right: clear(set) -> clear()
//! A step is of the folios that its state has, and of no set of somebody's own.

use mm_batch::folios::{
    FolioSet,
    FoliosWalk,
    FoundFolios, //
};

pub fn clear<W: FoliosWalk>(found: FoundFolios<'_, W>, set: FolioSet) {
    let _ = set;
    #[cfg(bad)]
    let _cleared = found.clear(set);
}
