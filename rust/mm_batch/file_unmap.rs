// SPDX-License-Identifier: GPL-2.0

//! Unmapping a run of PTEs of a large folio in reclaim: of a file, of shmem, or lazyfree.
//!
//! C: the present-PTE path of `try_to_unmap_one()` with `folio_unmap_pte_batch()`, mm/rmap.c, 7.3.
//! What C leaves, this leaves: PTEs, markers, rss, mapcount, references, the folio's flags. In how
//! it gets there it differs once (`mixed` of [`unmap_file_run`]), which a test can switch off.
//!
//! ```text
//! file, shmem:  find -> clear, flush -> markers, counters, rmap, references
//! lazyfree:     find -> clear, flush -> may it be discarded? -> counters, rmap, references
//!                                            |
//!                                            +-> restored; swap-backed again if it was written to
//! ```

#![forbid(unsafe_code)]

use crate::{
    pte_run::RunLength,
    unmap::{
        MixedRun,
        PteRun,
        UnmapWalk, //
    }, //
};

/// What unmapping a lazyfree folio needs of mm beyond a run's transaction.
///
/// Context of all methods: folio lock and page table lock held; none sleeps.
pub trait LazyfreeWalk: UnmapWalk {
    /// `smp_rmb()`. Pairs with the full order of `folio_put()` in whoever made the folio dirty and
    /// then dropped the reference.
    fn smp_rmb(&self);

    /// The folio's references beyond one for each of its mappings, with nobody adding or removing a
    /// mapping while both are counted.
    ///
    /// C: `folio_ref_count()` less `folio_large_mapcount()`, with `folio_lock_large_mapcount()`
    /// around the two, include/linux/rmap.h, 7.3, as in `__wp_can_reuse_large_anon_folio()`,
    /// mm/memory.c.
    fn folio_extra_refs(&self) -> i32;

    /// Whether the folio is dirty (C: `folio_test_dirty()`).
    fn folio_test_dirty(&self) -> bool;

    /// Whether the VMA's pages may be dropped even if dirty (C: `VM_DROPPABLE`).
    fn vma_droppable(&self) -> bool;

    /// Makes a lazyfree folio an ordinary anonymous one again (C: `folio_set_swapbacked()`).
    fn folio_set_swapbacked(&self);
}

/// Unmaps the run of PTEs that begins with the walk's: its length. The folio is of a file or of
/// shmem.
///
/// `mixed` is how this differs from 7.3's C on purpose: a file's run goes on where the write or
/// soft-dirty bit changes. Nothing of it is ever restored, so no PTE can get another's write bit,
/// and unmapping a file's PTE drops its soft-dirty bit in any case. False is what C does, to the
/// letter.
///
/// Context: folio lock and page table lock held, the latter for as long as it takes to go over one
/// page table a few times. Does not sleep.
///
/// C: `try_to_unmap_one()`, mm/rmap.c, 7.3.
#[inline]
pub fn unmap_file_run<W: UnmapWalk>(walk: W, mixed: bool) -> RunLength {
    if mixed {
        MixedRun::longest(walk).unmap()
    } else {
        PteRun::longest(walk).clear().commit()
    }
}

/// Unmaps the run of PTEs that begins with the walk's: its length. The folio is anonymous and, by
/// `MADV_FREE` or in a droppable mapping, not swap-backed.
///
/// An error is the length of a run that was cleared and is mapped again ([`ClearedRun::restore`]
/// says what that leaves). The folio is to stay mapped then, and the walk is to end.
///
/// Context: as [`unmap_file_run`].
///
/// [`ClearedRun::restore`]: crate::unmap::ClearedRun::restore
///
/// C: `ttu_anon_folio()` and `ttu_anon_lazyfree_folio()`, mm/rmap.c, 7.3.
#[inline]
pub fn unmap_lazyfree_run<W: LazyfreeWalk>(walk: W) -> Result<RunLength, RunLength> {
    let run = PteRun::longest(walk).clear();
    let walk = run.walk();
    if walk.folio_test_swapcache() {
        walk.warn_swapcache();
        return Err(run.restore().nr());
    }
    match Lazyfree::of(walk) {
        Lazyfree::Discard => Ok(run.commit()),
        Lazyfree::Referenced => Err(run.restore().nr()),
        Lazyfree::Redirtied => {
            let run = run.restore();
            run.walk().folio_set_swapbacked();
            Err(run.nr())
        }
    }
}

/// What is to become of a lazyfree folio whose PTEs are cleared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lazyfree {
    /// Nobody else has it, and it is clean.
    Discard,
    /// It was written to since `MADV_FREE`: its content counts again.
    Redirtied,
    /// Somebody else has it, and may be writing to it: the folio becomes dirty before that
    /// reference is dropped.
    Referenced,
}

impl Lazyfree {
    /// Judges by the references that are not of mappings, once the PTEs are cleared. One of these
    /// is the caller's. If it is the only one, nobody took a reference by a PTE that is cleared
    /// now, so nobody is going to write to the pages that the PTE mapped.
    ///
    /// The reference of a mapping is taken before the mapping is counted, and dropped after the
    /// mapping is not counted any more. So at any moment there is one reference for the caller, one
    /// for each mapping that is counted, one for each mapping that comes or goes at this moment,
    /// and one for each holder. Another mm that maps the folio may fork or unmap it meanwhile,
    /// under no lock that is held here. If references and mappings were read one after the other, a
    /// mapping that comes or goes in between would make up for a holder, which would be overlooked.
    /// To read the references again behind the mappings does not help: the reference that a fork
    /// takes may be seen after its mapping, as `folio_ref_add()` orders nothing, and a fork and an
    /// unmapping may both be over in between.
    ///
    /// Therefore both are read under the lock that mappings are counted under. None comes or goes.
    /// Each mapping that is counted took its reference before the lock was taken here, and drops it
    /// after the lock is released here. So its reference is among those that are read, and what is
    /// left beyond those and the caller's is of a holder, or of a mapping that comes or goes.
    #[inline]
    fn of<W: LazyfreeWalk>(walk: &W) -> Self {
        // PTEs are cleared before references are read: GUP-fast takes its reference before it reads
        // the PTE again. Taking a lock does not order the two.
        walk.smp_mb();
        let extra = walk.folio_extra_refs();
        // References are read before the flag: a holder that is not counted any more has set it.
        // Releasing a lock does not order the two, either.
        walk.smp_rmb();
        if walk.folio_test_dirty() && !walk.vma_droppable() {
            Self::Redirtied
        } else if extra != 1 {
            Self::Referenced
        } else {
            Self::Discard
        }
    }
}
