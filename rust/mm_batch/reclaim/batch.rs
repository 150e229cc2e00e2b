// SPDX-License-Identifier: GPL-2.0

//! Folios that wait for one flush.

use super::{
    folio::Unlocked,
    FolioList,
    FolioLock,
    Named,
    NothingOwed,
    Settled,
    Unmapping,
    Waiting, //
};
use crate::unmap::FlushOwed;

/// How many folios a batch has room for.
///
/// C: `FOLIO_BATCH_SIZE`, include/linux/folio_batch.h, 7.3.
pub const FOLIO_BATCH_SIZE: usize = 31;

/// Folios that were unmapped, and wait for the flush, with what they owe. Those that are left when
/// it is dropped are kept.
///
/// # Invariants
///
/// The first `nr_folios` of `folios`, and no other, were each a [`Waiting`] of `list`, but for
/// those that were taken since.
#[derive(Debug)]
pub struct Collecting<'r, L: FolioList> {
    list: Named<'r, L>,
    folios: [Option<L::Folio>; FOLIO_BATCH_SIZE],
    nr_folios: usize,
    nr_pages: u32,
    owed: Option<FlushOwed>,
}

impl<'r, L: FolioList> Collecting<'r, L> {
    /// An empty batch.
    #[inline]
    pub fn new(unmapping: &Unmapping<'r, L>) -> Self {
        // INVARIANT: It has none.
        Self {
            list: unmapping.list,
            folios: [None; FOLIO_BATCH_SIZE],
            nr_folios: 0,
            nr_pages: 0,
            owed: None,
        }
    }

    /// Its folios.
    #[inline]
    pub fn nr_folios(&self) -> usize {
        self.nr_folios
    }

    /// Their pages.
    #[inline]
    pub fn nr_pages(&self) -> u32 {
        self.nr_pages
    }

    /// Whether they have as many pages as when they came, if all are there.
    #[inline]
    fn sizes_hold(&self) -> bool {
        let there = self.folios.iter().flatten();
        let (folios, pages) = there.fold((0usize, 0u32), |(folios, pages), &folio| {
            let nr = self.list.folio_nr_pages(folio).get();
            (folios.wrapping_add(1), pages.wrapping_add(nr))
        });
        folios < self.nr_folios || pages == self.nr_pages
    }

    /// Adds a folio, behind those that are there, with what it owes; gives it back if there is no
    /// room.
    #[inline]
    pub fn push(&mut self, waiting: Waiting<'r, L>) -> Result<(), Waiting<'r, L>> {
        let Some(room) = self.folios.get_mut(self.nr_folios) else {
            return Err(waiting);
        };
        self.nr_pages = self.nr_pages.wrapping_add(waiting.nr_pages().get());
        let (folio, owed) = waiting.into_parts();
        // One flush pays for all.
        self.owed = self.owed.take().or(owed);
        // INVARIANT: One more.
        *room = Some(folio);
        self.nr_folios = self.nr_folios.wrapping_add(1);
        Ok(())
    }

    /// Pays for all of them by one flush. Until the last is taken nothing can be unmapped.
    ///
    /// Context: no folio is locked; waits for other CPUs.
    #[inline]
    pub fn flush<'b, 'u>(
        &'b mut self,
        unmapping: &'u Unmapping<'r, L>,
        none_locked: &FolioLock<'r>,
    ) -> Flushed<'b, 'u, 'r, L> {
        // Nobody splits what is isolated.
        debug_assert!(self.sizes_hold());
        let paid = unmapping.flush(self.nr_pages, self.owed.take(), none_locked);
        Flushed {
            batch: self,
            paid,
            taken: 0,
        }
    }
}

impl<L: FolioList> Drop for Collecting<'_, L> {
    #[allow(unsafe_code)]
    #[inline]
    fn drop(&mut self) {
        for folio in self.folios.iter_mut().take(self.nr_folios) {
            if let Some(folio) = folio.take() {
                // SAFETY: By the invariants; each is taken.
                drop(unsafe { Unlocked::again(self.list, folio) });
            }
        }
    }
}

/// A batch for which the flush was done. What is not taken is kept.
#[derive(Debug)]
pub struct Flushed<'b, 'u, 'r, L: FolioList> {
    batch: &'b mut Collecting<'r, L>,
    paid: NothingOwed<'u, 'r>,
    taken: usize,
}

impl<'u, 'r, L: FolioList> Flushed<'_, 'u, 'r, L> {
    /// That no flush is owed.
    #[inline]
    pub fn nothing_owed(&self) -> &NothingOwed<'u, 'r> {
        &self.paid
    }

    /// Takes the next folio, in the order in which they came.
    #[allow(unsafe_code)]
    #[inline]
    pub fn next_settled(&mut self) -> Option<Settled<'r, L>> {
        let waiting = self.batch.folios.iter_mut().take(self.batch.nr_folios);
        // From a batch that was flushed for and leaked some may be gone.
        for place in waiting.skip(self.taken) {
            self.taken = self.taken.wrapping_add(1);
            if let Some(folio) = place.take() {
                // SAFETY: By the batch's invariants; it was taken.
                let unlocked = unsafe { Unlocked::again(self.batch.list, folio) };
                return Some(Settled::new(unlocked, &self.paid));
            }
        }
        None
    }
}

impl<L: FolioList> Drop for Flushed<'_, '_, '_, L> {
    #[inline]
    fn drop(&mut self) {
        while let Some(settled) = self.next_settled() {
            drop(settled);
        }
        // INVARIANT: All were taken.
        self.batch.nr_folios = 0;
        self.batch.nr_pages = 0;
    }
}
