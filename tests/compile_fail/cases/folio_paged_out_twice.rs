// SPDX-License-Identifier: GPL-2.0

//! error: E0382 folio
//! What was written out is out of hand.

use mm_batch::reclaim::{
    FolioList,
    Revalidated, //
};

pub fn twice<L: FolioList>(folio: Revalidated<'_, L>) {
    folio.pageout();
    #[cfg(bad)]
    folio.pageout();
}
