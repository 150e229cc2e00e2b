// SPDX-License-Identifier: GPL-2.0

//! Unmapping a run of PTEs of a large folio in reclaim: of a file, of shmem, or lazyfree.
//!
//! C: the present-PTE path of `try_to_unmap_one()` with `folio_unmap_pte_batch()`, mm/rmap.c, 7.3.
//! What C leaves, this leaves: PTEs, markers, rss, mapcount, references, the folio's flags. The
//! [`Differences`] are named, and each can be switched off, so that a test can ask for none.
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
        Check,
        Checked,
        ClearedPtes,
        MixedRun,
        PteRun,
        UnmapWalk,
        UnmappedRun, //
    }, //
};

/// What unmapping a file or lazyfree folio needs of mm beyond a run's transaction.
///
/// Context of all methods: folio lock and page table lock held; none sleeps.
pub trait FileUnmapWalk: UnmapWalk {
    /// `smp_mb()`. Pairs with the one between taking the reference and reading the PTE again in
    /// GUP-fast (`try_grab_folio_fast()`, mm/gup.c, 7.3: the fully ordered reference).
    fn smp_mb(&self);

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

    /// Whether the folio is anonymous (C: `folio_test_anon()`).
    fn folio_test_anon(&self) -> bool;

    /// Whether the folio is swap-backed (C: `folio_test_swapbacked()`).
    fn folio_test_swapbacked(&self) -> bool;

    /// Whether the folio is in the swap cache (C: `folio_test_swapcache()`).
    fn folio_test_swapcache(&self) -> bool;

    /// Whether the folio is dirty (C: `folio_test_dirty()`).
    fn folio_test_dirty(&self) -> bool;

    /// Whether the VMA's pages may be dropped even if dirty (C: `VM_DROPPABLE`).
    fn vma_droppable(&self) -> bool;

    /// Makes a lazyfree folio an ordinary anonymous one again (C: `folio_set_swapbacked()`).
    fn folio_set_swapbacked(&self);
}

/// What the folio is, of those that are of this path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// In the page cache: a file's or shmem's.
    File,
    /// Anonymous and, by `MADV_FREE` or in a droppable mapping, not swap-backed.
    Lazyfree,
}

impl Kind {
    /// The kind of the walk's folio; `None` if it is not of this path: swap-backed anonymous
    /// folios, and those that are in the swap cache without being swap-backed, at which C warns.
    ///
    /// C: the branches of `try_to_unmap_one()` and `ttu_anon_folio()`, mm/rmap.c, 7.3.
    #[inline]
    pub fn of<W: FileUnmapWalk>(walk: &W) -> Option<Self> {
        if !walk.folio_test_anon() {
            Some(Self::File)
        } else if !walk.folio_test_swapbacked() && !walk.folio_test_swapcache() {
            Some(Self::Lazyfree)
        } else {
            None
        }
    }
}

/// In what this differs from 7.3's C on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Differences {
    /// A file folio's run goes on where the write or soft-dirty bit changes. Nothing of it is ever
    /// restored, so no PTE can get another's write bit, and unmapping a file's PTE drops its
    /// soft-dirty bit in any case.
    pub mixed_file_runs: bool,
}

impl Differences {
    /// All of them: how the kernel runs.
    pub const ALL: Self = Self {
        mixed_file_runs: true,
    };

    /// None: what C does, to the letter. A file's run is then one that could be restored, though
    /// nothing of a file ever is.
    pub const NONE: Self = Self {
        mixed_file_runs: false,
    };
}

/// What became of a run.
#[derive(Debug)]
#[must_use = "the walk ends if the folio stays mapped"]
pub enum Outcome {
    /// These were unmapped.
    Unmapped(UnmappedRun),
    /// So many pages were cleared and mapped again ([`ClearedRun::restore`] says what that leaves):
    /// the folio is to stay mapped, and the walk is to end.
    ///
    /// [`ClearedRun::restore`]: crate::unmap::ClearedRun::restore
    Kept(RunLength),
    /// Nothing was touched: the folio is not of this path.
    NotMine,
}

/// Unmaps the run of PTEs that begins with the walk's.
///
/// Context: folio lock and page table lock held, the latter for as long as it takes to go over one
/// page table a few times. Does not sleep.
///
/// C: `try_to_unmap_one()`, mm/rmap.c, 7.3.
#[inline]
pub fn unmap_run<W: FileUnmapWalk>(walk: W, differences: Differences) -> Outcome {
    match Kind::of(&walk) {
        Some(Kind::File) if differences.mixed_file_runs => {
            Outcome::Unmapped(MixedRun::longest(walk).unmap())
        }
        Some(Kind::File) => Outcome::Unmapped(PteRun::longest(walk).clear().commit()),
        Some(Kind::Lazyfree) => unmap_lazyfree(walk),
        None => Outcome::NotMine,
    }
}

/// C: `ttu_anon_lazyfree_folio()` and what surrounds it, mm/rmap.c, 7.3.
#[inline]
fn unmap_lazyfree<W: FileUnmapWalk>(walk: W) -> Outcome {
    match PteRun::longest(walk)
        .clear()
        .stage::<Checked<Discardable>>()
    {
        Ok(run) => Outcome::Unmapped(run.commit()),
        Err((run, why)) => {
            if why == Lazyfree::Redirtied {
                run.walk().folio_set_swapbacked();
            }
            Outcome::Kept(run.nr())
        }
    }
}

/// What is said of a lazyfree run that may be discarded.
struct Discardable;

impl<W: FileUnmapWalk> Check<W> for Discardable {
    type Refused = Lazyfree;

    #[inline]
    fn check(ptes: &ClearedPtes<W>) -> Result<Self, Lazyfree> {
        match Lazyfree::of(ptes) {
            Lazyfree::Discard => Ok(Self),
            kept => Err(kept),
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
    /// Somebody else may be writing to it, who will make it dirty before the reference is dropped.
    Referenced,
}

impl Lazyfree {
    /// Judges by the references that are not of mappings. One is the caller's. If it is the only
    /// one, nobody has a reference that was got by a PTE which is cleared, so nobody is going to
    /// write to what it mapped.
    ///
    /// A mapping's reference is taken before the mapping is counted, and dropped after it is not
    /// counted any more. So at any moment there is one reference for the caller, one for each
    /// mapping that is counted, one for each that is on its way in or out, and those of holders.
    /// But another mm that maps the folio may fork or unmap it, under no lock that is held here,
    /// and of two reads in a row each is of a moment of its own: a mapping that comes or goes in
    /// between makes up for a holder, who is overlooked. It does not help to read the references
    /// again behind the mappings. The reference that a fork takes may be seen after its mapping, as
    /// `folio_ref_add()` orders nothing; and a fork and an unmapping may both be over in between.
    ///
    /// Therefore both are read under the lock that mappings are counted under. None comes or goes.
    /// Each that is counted took its reference before the lock was taken here, and drops it after
    /// the lock is released here, so that it is among the references which are read; and who is
    /// among them beyond those and the caller is a holder, or on the way.
    #[inline]
    fn of<W: FileUnmapWalk>(cleared: &ClearedPtes<W>) -> Self {
        let walk = cleared.walk();
        // PTEs cleared before references are read: GUP-fast takes its reference before it reads the
        // PTE again. Taking a lock does not order the two.
        walk.smp_mb();
        let extra = walk.folio_extra_refs();
        // References read before the flag: who is gone by the count has left it. Freeing a lock
        // does not order the two, either.
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
