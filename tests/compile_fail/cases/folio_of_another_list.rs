// SPDX-License-Identifier: GPL-2.0

//! error: E0521 theirs, escapes
//! right: batch.push -> own.push
//! Folios of two lists are not in one batch: their flushes are owed by two tasks.

use mm_batch::reclaim::{with_list, Collecting, FolioList, Next, Unmapping};

pub fn mix<'r, L: FolioList>(unmapping: &Unmapping<'r, L>, other: L) {
    let mut batch = Collecting::new(unmapping);
    with_list(other, |mut theirs, lock| {
        let mut own = Collecting::new(&theirs);
        if let Next::Dirty(folio) = theirs.next_dirty(lock, &own) {
            #[cfg(bad)]
            let _ = batch.push(folio.wait().0);
        }
    });
    drop(batch.nr_folios());
}
