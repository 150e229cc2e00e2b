// SPDX-License-Identifier: GPL-2.0

//! Up to 32 folios go through reclaim together.
//!
//! C: `shrink_folio_list()` and `try_to_unmap_one()`, mm/vmscan.c and mm/rmap.c, 7.3, which take
//! one folio after the other.
//!
//! ```text
//! lock, check, collect ... -> references -> swap slots -> unmap -> free the clean -> unlock
//!                                                           |                        |
//!            per page table, all that it maps: count, <-----+       the next batch; behind the
//!             clear, flush, pinned?, swap entries                   last: dirty_flush, for all
//! ```
//!
//! C collects the batch (`shrink_folio_list()`, by this series), and does the rmap walks, which
//! come back to `unmap_*_folios()` for each page table. What is done once per folio without batches
//! is done once per batch: a slot of swap, a walk for references, a walk for unmapping.
//!
//! What is dirty then waits for the flush of [`crate::dirty_flush`], which is the last step, and
//! for several batches of a list: with `LRU_GEN` a list has up to 64 folios, most of which may be
//! clean. Where `dirty_flush` is off, each batch has its flush.
//!
//! Folios are neighbours where one page table maps them, with gaps or without. What does not fit
//! stays mapped or leaves the batch: C takes it by itself, as without batches, or in the next one.

#![forbid(unsafe_code)]

use crate::{
    batch::{
        Collected,
        FolioBatch, //
    },
    folios::{
        FolioSet,
        FoliosWalk,
        FoundFolios,
        SwapFoliosWalk, //
    }, //
};

/// What unmapping lazyfree folios needs of mm beyond their transaction.
///
/// Context of all methods: as of [`FoliosWalk`].
pub trait LazyfreeFoliosWalk: FoliosWalk {
    /// `smp_rmb()`. Pairs with the full order of `folio_put()` in whoever made a folio dirty and
    /// then dropped the reference.
    fn smp_rmb(&self);

    /// Those that have other references than the caller's and one for each of their mappings, with
    /// nobody adding or removing a mapping of the folio while both are counted.
    ///
    /// C: `ttu_folios_referenced()`, mm/rmap.c, by this series.
    fn referenced(&self, set: FolioSet) -> Option<FolioSet>;

    /// Those that are dirty, unless the VMA's pages may be dropped even so (C: `VM_DROPPABLE`).
    ///
    /// C: `ttu_folios_redirtied()`, mm/rmap.c, by this series.
    fn redirtied(&self, set: FolioSet) -> Option<FolioSet>;

    /// Makes lazyfree folios ordinary anonymous ones again.
    ///
    /// C: `ttu_folios_set_swapbacked()`, mm/rmap.c, by this series.
    fn set_swapbacked(&self, set: FolioSet);
}

/// Unmaps the batch's swap-backed anonymous folios that the walk's page table maps, to swap:
/// those that it has unmapped, if any. Folios that are pinned, or for whose swap entries there is
/// no room, stay mapped, and the others are unmapped all the same. If the walk's own folio stays,
/// its walk ends.
///
/// # Examples
///
/// ```
/// use mm_batch::{folio_batch::unmap_anon_folios, folios::FolioSet};
/// use mm_shim::{
///     folio::Folio,
///     folios::Together,
///     pte::{pte, DIRTY, WRITE},
///     swap::Slots,
///     unmap::{Layout, Mm},
/// };
///
/// // Two folios of one page, which have slots from 64 on, and a hole between them.
/// let slots = |i: usize| Slots::new(64 + i, &[0], None);
/// let folio = |i: usize| Folio::in_swap_cache(8 + i, 1, slots(i));
/// let folios = [folio(0), folio(1)];
/// folios.iter().for_each(|folio| folio.map(1));
/// let mm = Mm::new(Layout::anonymous(3), &[pte(8, WRITE | DIRTY), 0, pte(9, WRITE)]);
/// let unmapped = Together::new(&folios).stop(&mm, 0, |walk| unmap_anon_folios(walk));
/// assert_eq!(unmapped.map(FolioSet::bits), Some(0b11));
/// assert_eq!((mm.rss().pages, mm.rss().swapents), (0, 2));
/// ```
///
/// Context: folio locks, rmap lock and page table lock held. Does not sleep. The work is bounded by
/// one page table (512 PTEs with 4 KiB pages).
///
/// C: `try_to_unmap_one()`, mm/rmap.c, 7.3.
#[inline]
pub fn unmap_anon_folios<W: SwapFoliosWalk>(mut walk: W) -> Option<FolioSet> {
    let counted = FoundFolios::find(&mut walk)?.count_swap_entries()?;
    Some(counted.clear().share()?.commit())
}

/// Unmaps the batch's folios of files, or of shmem, that the walk's page table maps: those that it
/// has unmapped, if any.
///
/// Context: as [`unmap_anon_folios`].
///
/// C: `try_to_unmap_one()`, mm/rmap.c, 7.3.
#[inline]
pub fn unmap_file_folios<W: FoliosWalk>(mut walk: W) -> Option<FolioSet> {
    Some(FoundFolios::find(&mut walk)?.clear().vanish())
}

/// Unmaps the batch's lazyfree folios that the walk's page table maps: those that it has unmapped,
/// if any. One that was written to since `MADV_FREE` is mapped again, and counts as anonymous
/// memory again; one that somebody else has is mapped again. (`Lazyfree` of [`crate::file_unmap`]
/// says why references are read first, and how.)
///
/// Context: as [`unmap_anon_folios`].
///
/// C: `ttu_anon_folio()` and `ttu_anon_lazyfree_folio()`, mm/rmap.c, 7.3.
#[inline]
pub fn unmap_lazyfree_folios<W: LazyfreeFoliosWalk>(mut walk: W) -> Option<FolioSet> {
    let folios = FoundFolios::find(&mut walk)?.clear();
    let (walk, set) = (folios.walk(), folios.set());
    // PTEs are cleared before references are read: GUP-fast takes its reference before it reads the
    // PTE again.
    walk.smp_mb();
    let referenced = walk.referenced(set);
    // References are read before the flags: a holder that is not counted any more has set it.
    walk.smp_rmb();
    let redirtied = walk.redirtied(set);

    let clean = folios
        .restore(referenced)
        .and_then(|folios| folios.restore(redirtied));
    if let Some(redirtied) = redirtied {
        walk.set_swapbacked(redirtied);
    }
    Some(clean?.vanish())
}

/// Takes a batch through reclaim up to where its dirty folios wait for
/// [`crate::dirty_flush::shrink_waiting`]: frees what is clean, and unlocks the rest. When it
/// returns, all folios are dealt with, or wait, or C has them back, which takes them again.
///
/// # Examples
///
/// ```
/// use mm_batch::folio_batch::shrink_batch;
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
/// let list = List::new(&machine, 0..2);
/// let report = list.shrink_together(|batch| shrink_batch(batch));
/// assert_eq!((report.stat.nr_reclaimed, report.flushes), (2, 1));
/// ```
///
/// Context: process context; the folios of the batch are locked. Does not sleep.
///
/// C: the loop in `shrink_folio_list()`, mm/vmscan.c, 7.3.
#[inline]
pub fn shrink_batch<B: FolioBatch>(batch: B) {
    let placed = Collected::new(batch).check_references().alloc_swap();
    placed.unmap().free_clean().let_go();
}
