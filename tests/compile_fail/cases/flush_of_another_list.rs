// SPDX-License-Identifier: GPL-2.0

//! error: E0521 theirs, escapes
//! right: flushed.nothing_owed() -> own
//! Nor does the flush of one list do for another.

use mm_batch::reclaim::{with_list, Collecting, FolioList, NothingOwed, Revalidated};

pub fn mix<'r, L: FolioList>(folio: Revalidated<'r, L>, own: &NothingOwed<'_, 'r>, other: L) {
    let mut folio = Some(folio);
    with_list(other, |mut theirs, lock| {
        let mut batch = Collecting::new(&theirs);
        let flushed = batch.flush(&theirs, &lock);
        #[cfg(bad)]
        let _ = folio
            .take()
            .map(|folio| folio.pageout(flushed.nothing_owed()));
        drop(flushed);
        drop(theirs.next_dirty(lock, &batch));
    });
}
