// SPDX-License-Identifier: GPL-2.0

//! error: E0451 walk, set, FoundFolios, ClearedFolios
//! Folios are found, and cleared, by nobody but the transaction.

use mm_batch::folios::{
    ClearedFolios,
    FolioSet,
    FoliosWalk,
    FoundFolios, //
};

pub fn cleared<W: FoliosWalk>(walk: &mut W) -> Option<ClearedFolios<'_, W>> {
    Some(FoundFolios::find(walk)?.clear())
}

#[cfg(bad)]
pub fn found<W: FoliosWalk>(walk: &W, set: FolioSet) -> FoundFolios<'_, W> {
    FoundFolios { walk, set }
}

#[cfg(bad)]
pub fn forge<W: FoliosWalk>(walk: &W, set: FolioSet) -> ClearedFolios<'_, W> {
    ClearedFolios { walk, set }
}
