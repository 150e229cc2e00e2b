// SPDX-License-Identifier: GPL-2.0

//! error: E0599 pageout, Locked
//! right: folio: Locked -> folio: Revalidated
//! A folio that was unlocked is looked at again before it is written out.

use mm_batch::reclaim::{
    FolioList,
    Locked,
    Revalidated, //
};

pub fn early<L: FolioList>(folio: Locked<'_, L>, _other: Option<Revalidated<'_, L>>) {
    #[cfg(bad)]
    folio.pageout();
}
