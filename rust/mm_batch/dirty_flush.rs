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
//! C collects the batch (`shrink_wait()`, mm/vmscan.c, by this series): anonymous folios for which
//! a flush is owed, at most 32 folios; a batch also ends with the folio by which it has 512 pages
//! or more. (What [`crate::folio_batch`] lets go of comes to it whole, and may be flushed for.)
//! What may not wait, such as a folio of 512 pages, is flushed for while it is locked, and written
//! out at once, as without batches. So on x86 with one CPU, which has no other CPU to interrupt,
//! there are no batches. (arm64 puts off a flush, and waits for it, in any case.)
//!
//! The folios of a batch are written out in the order in which they were unmapped, as those of
//! neighbouring swap slots make one I/O.
//!
//! While a folio waits, a fault takes it back. Without batches the fault would have to wait for the
//! folio lock, and the page would be gone. If faults took most of a batch, reclaim works for
//! nothing, and the rest of the list is reclaimed without batches.

#![forbid(unsafe_code)]

use crate::reclaim::{
    Flushed,
    FolioList, //
};

/// Flushes for a batch, and writes out those of its folios that are still what they were. All are
/// dealt with when it returns.
///
/// Returns how many of its pages faults took back, if these are more than half of `nr_tried`, else
/// 0. So many pages were taken through reclaim with these: those of the batch, at least 1, or more.
///
/// # Examples
///
/// ```
/// use mm_batch::dirty_flush::shrink_waiting;
/// use mm_shim::{
///     pte::{DIRTY, WRITE},
///     reclaim::{list::List, Machine, Mapping, Spec},
/// };
///
/// // Two dirty pages that a CPU can write to.
/// let page = Spec {
///     pte: Some(WRITE | DIRTY),
///     translated: true,
///     ..Spec::page_of(Mapping::Swap)
/// };
/// let machine = Machine::new(1, &[page.clone(), page]);
/// let list = List::new(&machine, 0..2).by(|waiting, nr_tried| shrink_waiting(waiting, nr_tried));
/// let report = list.shrink();
/// assert_eq!((report.stat.nr_reclaimed, report.flushes), (2, 1));
/// ```
///
/// Context: process context; may sleep. No folio of the list is locked during the flush, and at
/// most one at a time behind it.
///
/// C: the end of the loop in `shrink_folio_list()`, mm/vmscan.c, 7.3.
#[inline]
pub fn shrink_waiting<L: FolioList>(list: L, nr_tried: u32) -> u32 {
    let mut taken_back = 0u32;
    let mut flushed = Flushed::flush(list);
    while let Some(folio) = flushed.next_locked() {
        match folio.revalidate() {
            Ok(folio) => folio.pageout(),
            Err(mapped) => taken_back = taken_back.saturating_add(mapped),
        }
    }
    if taken_back > nr_tried / 2 {
        taken_back
    } else {
        0
    }
}
