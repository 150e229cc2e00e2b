// SPDX-License-Identifier: GPL-2.0

//! One TLB flush for a batch of dirty folios in reclaim.
//!
//! C: `shrink_folio_list()`, mm/vmscan.c, 7.3, which flushes for each by itself.
//!
//! ```text
//! unmap, unlock, collect ... -> flush once -> for each, in turn: trylock -> still what it was?
//!                                                                   |             |     |
//!                                                                  kept         kept  written
//! ```
//!
//! Those of a batch are written out in the order in which they were unmapped, as those of
//! neighbouring swap slots make one I/O. (Shmem gets its slots only then: behind what is anonymous
//! and of the same batch.) Where the task owes no flush for anything dirty, a folio does not wait,
//! unless one in front of it does: then the batch ends with it. So on x86 with one CPU, which has
//! nobody to interrupt, there are no batches. (arm64 puts off a flush, and waits for it, in any
//! case.)

#![forbid(unsafe_code)]

use crate::reclaim::{
    with_list,
    Collecting,
    FolioList,
    FolioLock,
    Next,
    Unmapped,
    Unmapping,
    FOLIO_BATCH_SIZE, //
};

/// How many pages a batch may have, unless its one folio has more: as many as a page table of 4 KiB
/// pages maps. So long are folios isolated and unmapped that are not written yet.
pub const BATCH_PAGES: u32 = 512;

/// Reclaims the folios of a list, with one flush for a batch of those that are dirty: at most
/// [`FOLIO_BATCH_SIZE`] folios, of at most [`BATCH_PAGES`] pages. All are dealt with when it
/// returns, and so are those that came to the list meanwhile.
///
/// Context: process context; may sleep. No folio is locked where it waits for other CPUs on behalf
/// of a batch, and never more than one. (Unmapping may flush at once, and splitting does, and what
/// must not be unlocked before it is flushed for is, each with its folio locked, as without
/// batches.)
///
/// C: the loop of `shrink_folio_list()`, mm/vmscan.c, 7.3.
#[inline]
pub fn shrink_folios<L: FolioList>(list: L) {
    with_list(list, |mut unmapping, mut lock| {
        let mut batch = Collecting::new(&unmapping);
        loop {
            lock = match unmapping.next_dirty(lock, &batch) {
                Next::Dirty(folio) => collect(&mut batch, folio, &unmapping),
                Next::Done(_) if batch.nr_folios() == 0 => return,
                // What is written may be split, and its parts be on the list.
                Next::Done(lock) => drain(&mut batch, &unmapping, lock),
            };
        }
    })
}

/// Adds a folio to the batch, which is drained before if that is too much, and behind if it is full
/// then, or if there is nothing to wait for.
#[inline]
fn collect<'r, L: FolioList>(
    batch: &mut Collecting<'r, L>,
    folio: Unmapped<'r, L>,
    unmapping: &Unmapping<'r, L>,
) -> FolioLock<'r> {
    let owed = folio.flush_owed();
    let (waiting, mut lock) = folio.wait();
    let nr_pages = waiting.nr_pages().get();
    if batch.nr_folios() > 0 && batch.nr_pages().saturating_add(nr_pages) > BATCH_PAGES {
        lock = drain(batch, unmapping, lock);
    }
    // There is room: a batch that is full is drained below.
    let full = match batch.push(waiting) {
        Ok(()) => batch.nr_folios() == FOLIO_BATCH_SIZE || batch.nr_pages() >= BATCH_PAGES,
        Err(kept) => {
            drop(kept);
            true
        }
    };
    if full || !owed {
        lock = drain(batch, unmapping, lock);
    }
    lock
}

/// Flushes for the batch, and writes out what is still what it was.
fn drain<'r, L: FolioList>(
    batch: &mut Collecting<'r, L>,
    unmapping: &Unmapping<'r, L>,
    mut lock: FolioLock<'r>,
) -> FolioLock<'r> {
    let mut flushed = batch.flush(unmapping, &lock);
    while let Some(settled) = flushed.next_settled() {
        lock = match settled.lock(lock) {
            Ok(locked) => match locked.revalidate() {
                Ok(folio) => folio.pageout(flushed.nothing_owed()),
                Err(lock) => lock,
            },
            Err(lock) => lock,
        };
    }
    lock
}
