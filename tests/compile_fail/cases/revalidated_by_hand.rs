// SPDX-License-Identifier: GPL-2.0

//! error: E0451 folio, mapping, Revalidated
//! What a folio is, is said by looking.

use mm_batch::reclaim::{
    FolioList,
    Locked,
    Revalidated, //
};

pub fn look<L: FolioList>(folio: Locked<'_, L>) -> Result<Revalidated<'_, L>, u32> {
    folio.revalidate()
}

#[cfg(bad)]
pub fn forge<'f, L: FolioList>(folio: Locked<'f, L>, mapping: L::Mapping) -> Revalidated<'f, L> {
    Revalidated { folio, mapping }
}
