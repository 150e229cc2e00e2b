// SPDX-License-Identifier: GPL-2.0

//! Unmapping a run of PTEs as a transaction.
//!
//! ```text
//! PteRun --clear--> ClearedRun --stage--> ClearedRun --commit--> unmapped
//!    ^                  |                     |
//!    |               restore               restore, or refused by the next stage
//!    +------------------+---------------------+
//!
//! MixedRun ------------------------unmap-----------------------> unmapped
//! ```
//!
//! Each owns the walk, which stands for one stop under the page table lock, and consumes the one
//! before. So a run is unmapped once, and while it is cleared nobody else has the walk. What may
//! fail is a [`Stage`], entered before anything is final; a [`ClearedRun`] that is given up, or
//! just dropped, has its stages undone, the last one first, and is mapped again. Who leaks it
//! (`mem::forget`) leaves it cleared, and its stages as they are; stages are entered, undone and
//! completed here. A run that is in a stage is committed behind a [`LastStage`] alone, which
//! decides what takes the place of the PTEs; one that is in none vanishes. What has to go through
//! which is policy: that a folio's content is not lost with its PTEs is not in these types.
//!
//! What it takes to restore is in the types as well: a [`MixedRun`], whose PTEs differ in their
//! write bits, has no cleared state.
//!
//! The flush that clearing owes goes with the run, as a [`FlushOwed`]: who unmaps it gets that with
//! the length, in an [`UnmappedRun`]; nothing is owed for what is mapped again.
//!
//! A port's methods that change PTEs, counters, rmap or references are unsafe. They are called
//! here, and the types above are the reason why each call is in order.

#![deny(unsafe_code)]

use crate::{
    pte::{
        Pte,
        PteArch,
        Respect, //
    },
    pte_run::{
        folio_pte_batch,
        PtePart,
        PteSpan,
        PteTable,
        RunLength, //
    }, //
};
use core::{
    mem::ManuallyDrop,
    ptr, //
};

mod flush_owed;
mod stage;
pub use flush_owed::FlushOwed;
use stage::{
    AllStages,
    Stages, //
};
pub use stage::{
    Check,
    Checked,
    Cleared,
    ForGood,
    Gone,
    LastStage,
    Stage, //
};

/// One stop of an rmap walk: a present PTE that maps a page of a large folio, and what unmapping a
/// run that begins there needs of mm. Every loop that writes PTEs or pages is one method.
///
/// There is one walk per stop: who has it may unmap the run, once.
///
/// Context of all methods: folio lock and page table lock held; none sleeps.
#[allow(unsafe_code)]
pub trait UnmapWalk {
    /// The page table, to read.
    type View: PteTable;

    /// The page table from the walk's PTE on.
    fn view(&self) -> &Self::View;

    /// Clears the first `nr` PTEs, each by an atomic exchange; returns the first, with the young
    /// and dirty bits of all, and soft-dirty as the first was.
    ///
    /// C: `flush_cache_range()` and `get_and_clear_ptes()`, include/linux/pgtable.h, 7.3.
    ///
    /// # Safety
    ///
    /// They are a run that was found in [`Self::view`], and are as they were then but for what
    /// hardware does.
    unsafe fn get_and_clear_ptes(&self, nr: RunLength) -> Pte;

    /// Sees to it that no CPU uses the cleared translations: flushes the TLB at once, or notes the
    /// range for `try_to_unmap_flush()`, which must come before the pages are freed, and before I/O
    /// if the run was dirty. C does not tell which of the two, so that the flush may be owed.
    ///
    /// C: `should_defer_flush()`, `set_tlb_ubc_flush_pending()` and `flush_tlb_range()` in
    /// `try_to_unmap_one()`, mm/rmap.c, 7.3.
    ///
    /// # Safety
    ///
    /// `cleared` is the run that was cleared last, with what [`Self::get_and_clear_ptes`] returned.
    unsafe fn flush_tlb(&self, cleared: &PtePart) -> FlushOwed;

    /// Makes the folio dirty (C: `folio_mark_dirty()`).
    fn folio_mark_dirty(&self);

    /// Sees to it that no TLB has a translation of cleared PTEs, also where that was to wait: PTEs
    /// that come back may come back as a group with one translation, which the architecture forbids
    /// next to those of single PTEs (arm64: break before make).
    ///
    /// C: `flush_before_restore()`, mm/rmap.c, by this series; 7.3 restores without.
    ///
    /// # Safety
    ///
    /// `cleared` is of the run that was cleared last.
    unsafe fn flush_before_restore(&self, cleared: &PtePart);

    /// Maps pages again, the first by `cleared.first()`, the others by it with their page frame.
    ///
    /// C: `set_ptes()`, include/linux/pgtable.h, 7.3.
    ///
    /// # Safety
    ///
    /// `cleared` is of the run that was cleared last; its PTEs are not present, while rmap,
    /// counters and references still count them.
    unsafe fn set_ptes(&self, cleared: &PtePart);

    /// Leaves in PTEs what is to be known of mappings that are gone: a uffd-wp marker in each, if
    /// the VMA is of a file, is write-protected by userfaultfd, and `cleared`, so each PTE of the
    /// run, has the bit. Else nothing.
    ///
    /// C: `cond_install_uffd_wp_ptes()`, mm/memory.c, 7.3.
    ///
    /// # Safety
    ///
    /// `cleared` is of the run that was cleared last, and its PTEs are none.
    unsafe fn leave_behind(&self, cleared: &PtePart);

    /// Lets `hiwater_rss` know the peak before rss goes down (C: `update_hiwater_rss()`).
    fn update_hiwater_rss(&self);

    /// Takes the pages of a run from the counter of the folio's kind, `MM_ANONPAGES`,
    /// `MM_FILEPAGES` or `MM_SHMEMPAGES` (C: `add_mm_counter(mm, mm_counter(folio), -nr)`; the
    /// counter is signed and has 64 bits).
    ///
    /// # Safety
    ///
    /// `removed` is the run that was cleared last. It is not mapped again, and was not taken from
    /// the counter yet.
    unsafe fn add_mm_counter(&self, removed: RunLength);

    /// Takes the run's mappings away from the folio's mapcounts (C: `folio_remove_rmap_ptes()`, and
    /// `mlock_drain_local()` in a `VM_LOCKED` VMA).
    ///
    /// # Safety
    ///
    /// `nr` is the run that was cleared last. It is not mapped again, and its mappings were not
    /// taken away yet.
    unsafe fn folio_remove_rmap_ptes(&self, nr: RunLength);

    /// Drops the references of the run's mappings. The folio stays: the caller holds one (C:
    /// `folio_put_refs()`).
    ///
    /// # Safety
    ///
    /// `nr` is the run that was cleared last. Its mappings were taken away from the mapcounts, and
    /// their references were not dropped yet.
    unsafe fn folio_put_refs(&self, nr: RunLength);
}

/// What the PTEs of a walk are like.
pub(crate) type Arch<W> = <<W as UnmapWalk>::View as PteTable>::Arch;

/// The longest run from the walk's PTE on.
#[inline]
fn longest<W: UnmapWalk>(walk: &W, respect: Respect) -> RunLength {
    folio_pte_batch(&PteSpan::new(walk.view()), respect, |_| ())
}

/// A run of present PTEs, found and not touched, that can be restored.
///
/// # Invariants
///
/// The first `nr` PTEs of the walk are a run, and have the write and the soft-dirty bit in common;
/// they are as they were when it was found, but for what hardware does.
#[derive(Debug)]
pub struct PteRun<W: UnmapWalk> {
    walk: W,
    nr: RunLength,
}

impl<W: UnmapWalk> PteRun<W> {
    /// The longest run from the walk's PTE on.
    #[inline]
    pub fn longest(walk: W) -> Self {
        let nr = longest(&walk, Respect::TO_RESTORE);
        // INVARIANT: Found just now, under the lock.
        Self { walk, nr }
    }

    /// Its length.
    #[inline]
    pub fn nr(&self) -> RunLength {
        self.nr
    }

    /// The walk, for what does not change PTEs.
    #[inline]
    pub fn walk(&self) -> &W {
        &self.walk
    }

    /// Clears the run, gets rid of its translations, and hands on what the hardware noted in it.
    #[allow(unsafe_code)]
    #[inline]
    pub fn clear(self) -> ClearedRun<W> {
        // SAFETY: By the invariants, this is a run.
        let ptes = unsafe { ClearedPtes::clear(self.walk, self.nr) };
        // INVARIANT: By ours, the PTEs have in common what makes them restorable.
        ClearedRun {
            ptes,
            stages: ManuallyDrop::new(Cleared(())),
        }
    }
}

/// A run of present PTEs that may differ in their write and soft-dirty bits, and so can only be
/// unmapped for good.
///
/// # Invariants
///
/// The first `nr` PTEs of the walk are a run, and as they were when it was found, but for what
/// hardware does.
#[derive(Debug)]
pub struct MixedRun<W: UnmapWalk> {
    walk: W,
    nr: RunLength,
}

impl<W: UnmapWalk> MixedRun<W> {
    /// The longest run from the walk's PTE on.
    #[inline]
    pub fn longest(walk: W) -> Self {
        let nr = longest(&walk, Respect::NOTHING);
        // INVARIANT: Found just now, under the lock.
        Self { walk, nr }
    }

    /// Unmaps it: what [`PteRun::clear`] and [`ClearedRun::commit`] do.
    #[allow(unsafe_code)]
    #[inline]
    pub fn unmap(self) -> UnmappedRun {
        // SAFETY: By the invariants, this is a run.
        let ptes = unsafe { ClearedPtes::clear(self.walk, self.nr) };
        // SAFETY: It is cleared.
        unsafe { ptes.end(Cleared(())) }
    }
}

/// A run that was unmapped for good.
///
/// # Invariants
///
/// So it was, once, and `owed` is what clearing it owes.
#[derive(Debug)]
#[must_use = "somebody has to see to a flush that is owed"]
pub struct UnmappedRun {
    nr: RunLength,
    owed: FlushOwed,
}

impl UnmappedRun {
    /// Its length.
    #[inline]
    pub fn nr(&self) -> RunLength {
        self.nr
    }

    /// Its length, and what is to come before its pages are freed, and before I/O if it was dirty.
    #[inline]
    pub fn into_parts(self) -> (RunLength, FlushOwed) {
        (self.nr, self.owed)
    }
}

/// PTEs of a run that are cleared.
///
/// # Invariants
///
/// `part` is the run of the walk that was cleared last, whole. Its PTEs are none, or what a stage
/// made of them on the way to the end; rmap, counters and references count its mappings.
#[derive(Debug)]
pub struct ClearedPtes<W: UnmapWalk> {
    walk: W,
    part: PtePart,
    owed: FlushOwed,
}

impl<W: UnmapWalk> ClearedPtes<W> {
    /// The walk, for looking at the folio while its PTEs are gone.
    #[inline]
    pub fn walk(&self) -> &W {
        &self.walk
    }

    /// The PTEs: the first as it was, with the young and dirty bits of all.
    #[inline]
    pub fn part(&self) -> &PtePart {
        &self.part
    }

    /// # Safety
    ///
    /// The first `nr` PTEs of the walk are a run, found under the lock, and as they were then but
    /// for what hardware does.
    #[allow(unsafe_code)]
    #[inline]
    unsafe fn clear(walk: W, nr: RunLength) -> Self {
        // SAFETY: By the function's requirement.
        let merged = unsafe { walk.get_and_clear_ptes(nr) };
        let part = PtePart::whole(merged, nr);
        // SAFETY: Cleared just now.
        let owed = unsafe { walk.flush_tlb(&part) };
        // A PTE that was clean and is written to through a stale translation traps: it has to set
        // the bit in the PTE, which is gone.
        if Arch::<W>::pte_dirty(merged) {
            walk.folio_mark_dirty();
        }
        // INVARIANT: So it is.
        Self { walk, part, owed }
    }

    /// The end of the mappings. Nothing of it can fail.
    ///
    /// # Safety
    ///
    /// `stages` were entered for this run.
    #[allow(unsafe_code)]
    #[inline]
    unsafe fn end(self, stages: impl AllStages<W>) -> UnmappedRun {
        let nr = self.part.nr();
        // SAFETY: By the method's requirement.
        let Gone { .. } = unsafe { stages.complete(ForGood::new(&self)) };
        self.walk.update_hiwater_rss();
        // SAFETY: By the invariants, the run is cleared, and counted. It is not mapped again, and
        // this is done once: `self` ends here.
        unsafe { self.walk.add_mm_counter(nr) };
        // SAFETY: As above.
        unsafe { self.walk.folio_remove_rmap_ptes(nr) };
        // SAFETY: As above, and the mappings are gone.
        unsafe { self.walk.folio_put_refs(nr) };
        // INVARIANT: So it is, by the end of `self`.
        UnmappedRun {
            nr,
            owed: self.owed,
        }
    }
}

/// A run that is mapped again, as it was refused a stage, and why.
pub type Refusal<W, T> = (PteRun<W>, <T as Stage<W>>::Refused);

/// A run of PTEs that are cleared, while rmap, counters and references still count its mappings,
/// and the stages that it has been through.
///
/// Dropped, it is restored: see [`ClearedRun::restore`].
///
/// # Invariants
///
/// The run's PTEs had the write and soft-dirty bit in common. `stages` are those that were entered,
/// and neither undone nor completed.
#[derive(Debug)]
#[must_use = "a cleared run that is not committed is mapped again"]
pub struct ClearedRun<W: UnmapWalk, S: Stages<W> = Cleared> {
    ptes: ClearedPtes<W>,
    stages: ManuallyDrop<S>,
}

impl<W: UnmapWalk, S: Stages<W>> ClearedRun<W, S> {
    /// The PTEs, to look at.
    #[inline]
    pub fn ptes(&self) -> &ClearedPtes<W> {
        &self.ptes
    }

    /// Enters a stage; if it is refused, the run is restored.
    #[allow(unsafe_code)]
    #[inline]
    pub fn stage<T: Stage<W, Behind = S>>(self) -> Result<ClearedRun<W, (T, S)>, Refusal<W, T>> {
        // SAFETY: By the invariants, the run is in the stages that come before, and `T` is none of
        // them: that would be within itself. The value stays with it until it is undone or
        // completed.
        match unsafe { T::enter(&self.ptes) } {
            Ok(stage) => {
                let (ptes, stages) = self.into_parts();
                // INVARIANT: One more was entered.
                Ok(ClearedRun {
                    ptes,
                    stages: ManuallyDrop::new((stage, stages)),
                })
            }
            Err(refused) => Err((self.restore(), refused)),
        }
    }

    /// Undoes the stages and maps all of the run again.
    ///
    /// That is not all as it was: the folio stays dirty if a PTE was, a deferred flush stays
    /// pending (it will flush more than it must), and each PTE becomes as young and as dirty as any
    /// of the run was. Write, soft-dirty and uffd bits are what they were: the run has them in
    /// common.
    #[allow(unsafe_code)]
    #[inline]
    pub fn restore(self) -> PteRun<W> {
        let (ptes, stages) = self.into_parts();
        // SAFETY: By the invariants, they were entered for it.
        unsafe { stages.undo(&ptes) };
        let nr = ptes.part.nr();
        // INVARIANT: It is again what it was.
        PteRun {
            walk: ptes.walk,
            nr,
        }
    }

    /// Ends the mappings for good: completes the stages, then counters, rmap and references follow.
    #[allow(unsafe_code)]
    #[inline]
    pub fn commit(self) -> UnmappedRun
    where
        S: AllStages<W>,
    {
        let (ptes, stages) = self.into_parts();
        // SAFETY: By the invariants, they were entered for it.
        unsafe { ptes.end(stages) }
    }

    /// The parts, which are no longer restored when dropped.
    #[allow(unsafe_code)]
    #[inline]
    fn into_parts(self) -> (ClearedPtes<W>, S) {
        let mut run = ManuallyDrop::new(self);
        // SAFETY: `run` is neither dropped nor used again.
        let stages = unsafe { ManuallyDrop::take(&mut run.stages) };
        // SAFETY: As above.
        (unsafe { ptr::read(&run.ptes) }, stages)
    }
}

impl<W: UnmapWalk, S: Stages<W>> Drop for ClearedRun<W, S> {
    #[allow(unsafe_code)]
    #[inline]
    fn drop(&mut self) {
        // SAFETY: This is the end of `self`: they are not used again.
        let stages = unsafe { ManuallyDrop::take(&mut self.stages) };
        // SAFETY: By the invariants, they were entered for it.
        unsafe { stages.undo(&self.ptes) }
    }
}
