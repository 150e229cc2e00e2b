// SPDX-License-Identifier: GPL-2.0

//! error: E0521 theirs, escapes
//! right: next_dirty(lock -> next_dirty(own
//! The lock of one list is not that of another: the folio that it stands for may be locked still.

use mm_batch::reclaim::{with_list, Collecting, FolioList};

pub fn mix<L: FolioList>(one: L, other: L) {
    with_list(one, |_, lock| {
        with_list(other, |mut theirs, own| {
            let none = Collecting::new(&theirs);
            #[cfg(bad)]
            let _ = theirs.next_dirty(lock, &none);
        });
    });
}
