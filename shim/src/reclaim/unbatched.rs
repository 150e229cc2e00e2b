// SPDX-License-Identifier: GPL-2.0

//! `shrink_folio_list()`, mm/vmscan.c, as C 7.3 has it: a flush for each dirty folio, which stays
//! locked from unmapping to `pageout()`. What batches are compared with.

use super::{
    list::List,
    pageout::Dirty,
    report::{
        Event,
        Fate,
        Report, //
    }, //
};

impl List<'_> {
    /// Reclaims it one folio after the other, and ends it.
    pub fn shrink_unbatched(self) -> Report {
        assert_eq!(self.shrink_folios(Dirty::Write), None);
        self.finish()
    }

    /// Ends with a dirty folio that was unmapped and is locked still.
    pub(super) fn write_at_once(&self, index: usize) {
        self.deferred.flush_dirty(&self.machine.cpus);
        match self.folio(index).mapping() {
            Some(mapping) => {
                self.note(Event::PagedOut(index));
                self.pageout(index, mapping)
            }
            None => self.end_locked(index, Fate::Kept),
        }
    }
}
