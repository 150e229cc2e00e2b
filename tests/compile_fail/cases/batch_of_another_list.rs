// SPDX-License-Identifier: GPL-2.0

//! error: E0521 theirs, escapes
//! right: &batch -> &own
//! Whether folios wait for a flush is asked of a batch of the same list.

use mm_batch::reclaim::{with_list, Collecting, FolioList, Unmapping};

pub fn mix<'r, L: FolioList>(unmapping: &Unmapping<'r, L>, other: L) {
    let batch = Collecting::new(unmapping);
    with_list(other, |mut theirs, lock| {
        let own = Collecting::new(&theirs);
        #[cfg(bad)]
        drop(theirs.next_dirty(lock, &batch));
        drop(own.nr_folios());
    });
    drop(batch.nr_folios());
}
