// SPDX-License-Identifier: GPL-2.0

//! error: E0499 walk
//! While folios of a stop are in a state, no others are found there.

use mm_batch::folios::{
    FoliosWalk,
    FoundFolios, //
};

pub fn find<W: FoliosWalk>(mut walk: W) {
    let first = FoundFolios::find(&mut walk);
    #[cfg(bad)]
    let _second = FoundFolios::find(&mut walk);
    drop(first);
}
