// SPDX-License-Identifier: GPL-2.0

//! error: E0451 held, mapping, Revalidated
//! Who says what a folio is has looked.

use mm_batch::reclaim::{FolioList, Locked, PutBack, Revalidated};

pub fn look<'r, L: FolioList>(folio: Locked<'r, L>) -> Result<Revalidated<'r, L>, PutBack<'r>> {
    folio.revalidate()
}

#[cfg(bad)]
pub fn forge<'r, L: FolioList>(one: Revalidated<'r, L>, mapping: L::Mapping) -> Revalidated<'r, L> {
    Revalidated { mapping, ..one }
}
