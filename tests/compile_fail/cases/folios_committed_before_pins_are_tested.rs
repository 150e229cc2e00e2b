// SPDX-License-Identifier: GPL-2.0

//! error: E0599 commit, SwapFolios
//! right: commit() -> share()
//! Folios do not become swap entries before it is known which are pinned.

use mm_batch::folios::{
    SwapFolios,
    SwapFoliosWalk, //
};

pub fn commit<W: SwapFoliosWalk>(folios: SwapFolios<'_, W>) {
    #[cfg(bad)]
    let _ = folios.commit();
}
