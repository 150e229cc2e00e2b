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
//! Where nothing fails, this leaves what C leaves page by page. Where something does, C has
//! converted the pages in front, and this none: the folio stays mapped in both cases, and reclaim
//! gives it up for now.

#![forbid(unsafe_code)]

use crate::{
    pte_run::RunLength,
    to_swap::{
        Shareable,
        SwapCounted,
        SwapWalk, //
    },
    unmap::{
        PteRun,
        UnmappedRun, //
    }, //
};

/// What unmapping an anonymous folio needs beyond [`SwapWalk`].
///
/// Context of all methods: folio lock and page table lock held; none sleeps.
pub trait AnonUnmapWalk: SwapWalk {
    /// Says, once, that a swap-backed folio is not in the swap cache (C: the `WARN_ON_ONCE()` of
    /// `ttu_anon_folio()`, mm/rmap.c, 7.3).
    fn warn_not_in_swapcache(&self);
}

/// What became of a run.
#[derive(Debug)]
#[must_use = "the walk ends if the folio stays mapped"]
pub enum Outcome {
    /// These became swap entries.
    Unmapped(UnmappedRun),
    /// So many pages were cleared and mapped again ([`ClearedRun::restore`] says what that leaves):
    /// the folio is to stay mapped, and the walk is to end.
    ///
    /// [`ClearedRun::restore`]: crate::unmap::ClearedRun::restore
    Kept(RunLength),
    /// Nothing was touched: the folio has no swap to go to. It is to stay mapped.
    NoSwap,
}

/// Unmaps the run of PTEs that begins with the walk's, to swap. The folio is swap-backed.
///
/// Context: folio lock and page table lock held. The latter for at most one page table (512 PTEs
/// with 4 KiB pages), over which three loops go, and three over its pages; the lock of their swap
/// cluster is taken under it, and held for one loop over as many slots. Does not sleep.
///
/// C: `try_to_unmap_one()`, mm/rmap.c, 7.3.
#[inline]
pub fn unmap_run<W: AnonUnmapWalk>(walk: W) -> Outcome {
    if !walk.folio_test_swapcache() {
        walk.warn_not_in_swapcache();
        return Outcome::NoSwap;
    }
    match to_swap(PteRun::longest(walk)) {
        Ok(run) => Outcome::Unmapped(run),
        Err(nr) => Outcome::Kept(nr),
    }
}

/// The run, unmapped, or how long it is, kept.
#[inline]
fn to_swap<W: SwapWalk>(run: PteRun<W>) -> Result<UnmappedRun, RunLength> {
    let kept = |run: PteRun<W>| run.nr();
    let run = run.clear();
    let run = run.stage::<SwapCounted>().map_err(|(run, _)| kept(run))?;
    let run = run.stage::<Shareable>().map_err(|(run, _)| kept(run))?;
    Ok(run.commit())
}
