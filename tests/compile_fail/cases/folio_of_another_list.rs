// SPDX-License-Identifier: GPL-2.0

//! error: E0521
//! Folios of two lists are not in one batch: their flushes are owed by two tasks.

use mm_batch::reclaim::{with_list, Collecting, FolioList, Next};

pub fn mix<L: FolioList>(one: L, other: L) {
    with_list(one, |mut unmapping, lock| {
        let mut batch = Collecting::new(&unmapping);
        if let Next::Dirty(folio) = unmapping.next_dirty(lock, &batch) {
            let _ = batch.push(folio.wait().0);
        }
        with_list(other, |mut theirs, lock| {
            let mut own = Collecting::new(&theirs);
            if let Next::Dirty(folio) = theirs.next_dirty(lock, &own) {
                #[cfg(bad)]
                let _ = batch.push(folio.wait().0);
                #[cfg(not(bad))]
                let _ = own.push(folio.wait().0);
            }
            drop(own.nr_folios());
        });
    });
}
