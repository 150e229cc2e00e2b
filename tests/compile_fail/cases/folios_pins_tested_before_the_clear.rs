// SPDX-License-Identifier: GPL-2.0

//! error: E0599 share, CountedFolios
//! right: share() -> clear()
//! Pins are tested when no more can be taken: behind clearing.

use mm_batch::folios::{
    CountedFolios,
    SwapFoliosWalk, //
};

pub fn share<W: SwapFoliosWalk>(counted: CountedFolios<'_, W>) {
    #[cfg(bad)]
    let _ = counted.share();
}
