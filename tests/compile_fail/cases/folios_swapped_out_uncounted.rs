// SPDX-License-Identifier: GPL-2.0

//! error: E0599 share, ClearedFolios
//! right: share() -> vanish()
//! Folios do not become swap entries that are not counted.

use mm_batch::folios::{
    FoundFolios,
    SwapFoliosWalk, //
};

pub fn uncounted<W: SwapFoliosWalk>(found: FoundFolios<'_, W>) {
    #[cfg(bad)]
    let _ = found.clear().share();
}
