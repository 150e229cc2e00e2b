// SPDX-License-Identifier: GPL-2.0

//! Unmapping a run of PTEs of a large anonymous folio in reclaim: to swap, all of it or nothing.
//!
//! C: `ttu_anon_swapbacked_folio()` and what surrounds it in `try_to_unmap_one()`, mm/rmap.c, 7.3,
//! which unmaps one page at a time.
//!
//! ```text
//! find -> clear, flush -> swap counts -> pinned? -> per sub-batch: AnonExclusive, swap entries
//!                              |            |                        -> counters, rmap, references
//!                              +------------+-> restored
//! ```
//!
//! Where nothing fails, this leaves what C leaves page by page. Where a step fails, C has converted
//! the pages before the one that failed, and this has converted none. The folio stays mapped in
//! both cases, and reclaim gives it up for now.

#![forbid(unsafe_code)]

use crate::{
    pte_run::RunLength,
    to_swap::SwapWalk,
    unmap::PteRun, //
};

/// Unmaps the run of PTEs that begins with the walk's, to swap: its length. The folio is anonymous
/// and swap-backed.
///
/// An error is the length of a run that was cleared and is mapped again ([`ClearedRun::restore`]
/// says what that leaves). The folio is to stay mapped then, and the walk is to end.
///
/// # Examples
///
/// ```
/// use mm_batch::anon_unmap::unmap_run;
/// use mm_shim::{
///     folio::Folio,
///     pte::{pte, DIRTY, WRITE},
///     swap::Slots,
///     unmap::{Layout, Mm},
/// };
///
/// // Two pages, which have slots from 64 on.
/// let folio = Folio::in_swap_cache(8, 2, Slots::new(64, &[0, 0], None));
/// folio.map(2);
/// let mm = Mm::new(Layout::anonymous(2), &[pte(8, WRITE | DIRTY), pte(9, WRITE)]);
/// let (result, _) = mm.walk(&folio, 0, |walk| unmap_run(walk));
/// assert_eq!(result.unwrap().get(), 2);
/// assert_eq!((mm.rss().pages, mm.rss().swapents), (0, 2));
/// ```
///
/// Context: folio lock, rmap lock and page table lock held. Does not sleep. The work is bounded by
/// one page table (512 PTEs with 4 KiB pages): three loops over PTEs, three over pages, and one
/// over swap slots, under the lock of their cluster.
///
/// C: `try_to_unmap_one()`, mm/rmap.c, 7.3.
///
/// [`ClearedRun::restore`]: crate::unmap::ClearedRun::restore
#[inline]
pub fn unmap_run<W: SwapWalk>(walk: W) -> Result<RunLength, RunLength> {
    let run = PteRun::longest(walk).clear();
    Ok(run.count_swap_entries()?.share()?.commit())
}
