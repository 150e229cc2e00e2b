// SPDX-License-Identifier: GPL-2.0

//! error: E0382 waiting
//! A folio is in a batch once.

use mm_batch::reclaim::{Collecting, FolioList, Waiting};

pub fn twice<'r, L: FolioList>(batch: &mut Collecting<'r, L>, waiting: Waiting<'r, L>) {
    let _ = batch.push(waiting);
    #[cfg(bad)]
    let _ = batch.push(waiting);
}
