// SPDX-License-Identifier: GPL-2.0

//! error: E0499 walk
//! Who looks at folios that are cleared does not begin anew, by which C would forget their PTEs.

use mm_batch::folios::{
    FoliosWalk,
    FoundFolios, //
};

pub fn find<W: FoliosWalk>(mut walk: W) {
    let cleared = FoundFolios::find(&mut walk).map(FoundFolios::clear);
    #[cfg(bad)]
    walk.find();
    drop(cleared);
}
