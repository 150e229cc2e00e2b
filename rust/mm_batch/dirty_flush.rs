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
//! Only anonymous folios wait, which is the list's to say (`shrink_may_wait()`, mm/vmscan.c, by
//! this series; not on arm64 where a large one may be mapped by contiguous PTEs). What may not wait
//! is flushed for while it is locked: as without batches where none waits, else the batch ends with
//! it. The same goes for a folio for which no flush is owed. So on x86 with one CPU, which has
//! nobody to interrupt, there are no batches. (arm64 puts off a flush, and waits for it, in any
//! case.)
//!
//! Those of a batch are written out in the order in which they were unmapped, as those of
//! neighbouring swap slots make one I/O. (Shmem gets its slots only then: behind what is anonymous
//! and of the same batch.)
//!
//! While a folio waits, a fault takes it back, for which it would have to wait for the folio lock
//! without batches, and the page be gone. If faults took most of a batch, reclaim works for
//! nothing; then the rest of the list is reclaimed without batches.

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

/// What is left of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "the rest of the list is to be reclaimed, without batches"]
pub enum Left {
    /// Nothing.
    Nothing,
    /// The rest of it, which may be empty, and what the list may have to wait for: to be reclaimed
    /// without batches, as faults took most of a batch back. None of it waits for a flush.
    Unbatched {
        /// The pages of that batch that were mapped again; not 0.
        taken_back: u32,
    },
}

/// Reclaims the folios of a list, with one flush for a batch of those that are dirty and may wait:
/// at most [`FOLIO_BATCH_SIZE`] folios, of at most [`BATCH_PAGES`] pages. All are dealt with when
/// it returns, and so are those that came to the list meanwhile, but for what is [`Left`].
///
/// Context: process context; may sleep. No folio of the list is locked where it waits for other
/// CPUs on behalf of a batch, and never more than one. (Unmapping may flush at once, and splitting
/// does, and what may not wait is flushed for, each with its folio locked, as without batches.)
///
/// C: the loop of `shrink_folio_list()`, mm/vmscan.c, 7.3.
#[inline]
pub fn shrink_folios<L: FolioList>(list: L) -> Left {
    with_list(list, |mut unmapping, mut lock| {
        let mut batch = Collecting::new(&unmapping);
        loop {
            let (free, taken_back) = match unmapping.next_dirty(lock, &batch) {
                Next::Dirty(folio) => collect(&mut batch, folio, &unmapping),
                Next::Done(_) if batch.nr_folios() == 0 => return Left::Nothing,
                // Behind it the list may wait for the writeback of a folio, and goes on with that.
                Next::Done(lock) => drain(&mut batch, &unmapping, lock),
            };
            if taken_back > 0 {
                return Left::Unbatched { taken_back };
            }
            lock = free;
        }
    })
}

/// Adds a folio to the batch, which is drained before if that is too much, and behind if it is full
/// then, or if there is nothing to wait for. Returns what [`drain`] does.
#[inline]
fn collect<'r, L: FolioList>(
    batch: &mut Collecting<'r, L>,
    folio: Unmapped<'r, L>,
    unmapping: &Unmapping<'r, L>,
) -> (FolioLock<'r>, u32) {
    let owed = folio.flush_owed();
    let (waiting, mut lock) = folio.wait();
    let mut taken_back = 0;
    let nr_pages = waiting.nr_pages().get();
    if batch.nr_folios() > 0 && batch.nr_pages().saturating_add(nr_pages) > BATCH_PAGES {
        (lock, taken_back) = drain(batch, unmapping, lock);
    }
    // There is room: a batch that is full is drained below.
    let full = match batch.push(waiting) {
        Ok(()) => batch.nr_folios() == FOLIO_BATCH_SIZE || batch.nr_pages() >= BATCH_PAGES,
        Err(kept) => {
            drop(kept);
            true
        }
    };
    // No batch is left where the list is not gone on with.
    if full || !owed || taken_back > 0 {
        let (free, last) = drain(batch, unmapping, lock);
        return (free, taken_back.max(last));
    }
    (lock, taken_back)
}

/// Flushes for the batch, and writes out what is still what it was. Returns how many of its pages
/// faults took back, if those are more than half of them, else 0.
#[inline]
fn drain<'r, L: FolioList>(
    batch: &mut Collecting<'r, L>,
    unmapping: &Unmapping<'r, L>,
    mut lock: FolioLock<'r>,
) -> (FolioLock<'r>, u32) {
    let half = batch.nr_pages() / 2;
    let mut taken_back = 0u32;
    let mut flushed = batch.flush(unmapping, &lock);
    while let Some(settled) = flushed.next_settled() {
        lock = match settled.lock(lock) {
            Ok(locked) => match locked.revalidate() {
                Ok(folio) => folio.pageout(flushed.nothing_owed()),
                Err(put_back) => {
                    taken_back = taken_back.saturating_add(put_back.mapped);
                    put_back.lock
                }
            },
            Err(lock) => lock,
        };
    }
    (lock, if taken_back > half { taken_back } else { 0 })
}
