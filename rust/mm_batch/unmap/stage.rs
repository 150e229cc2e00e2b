// SPDX-License-Identifier: GPL-2.0

//! What a cleared run goes through before it is unmapped for good.

use super::{
    ClearedPtes,
    UnmapWalk, //
};
use crate::brand::Brand;
use core::marker::PhantomData;

/// Cleared PTEs of which nothing is restored any more, and what is to take their place.
///
/// # Invariants
///
/// The run is being committed. Its PTEs are none, but for what [`LastStage::complete`], which has
/// this, writes on its way to [`replaced`](Self::replaced).
#[derive(Debug)]
pub struct ForGood<'r, W: UnmapWalk> {
    ptes: &'r ClearedPtes<W>,
    brand: Brand<'r>,
}

impl<'r, W: UnmapWalk> ForGood<'r, W> {
    /// The PTEs.
    #[inline]
    pub fn ptes(&self) -> &'r ClearedPtes<W> {
        self.ptes
    }

    /// Nothing takes their place, but for markers.
    #[allow(unsafe_code)]
    #[inline]
    pub fn vanish(self) -> Gone<'r> {
        // SAFETY: By the invariants, the run is cleared, and its PTEs are none.
        unsafe { self.ptes.walk().leave_behind(self.ptes.part()) };
        // INVARIANT: Markers, or none.
        Gone { brand: self.brand }
    }

    /// Something has taken their place.
    ///
    /// # Safety
    ///
    /// So it has, that of each PTE of the run.
    #[allow(unsafe_code)]
    #[inline]
    pub unsafe fn replaced(self) -> Gone<'r> {
        // INVARIANT: By the method's requirement.
        Gone { brand: self.brand }
    }

    #[inline]
    pub(super) fn new(ptes: &'r ClearedPtes<W>) -> Self {
        // INVARIANT: `ClearedPtes::end`, which alone calls this, is the commit; nothing was written
        // in place of the PTEs yet.
        Self {
            ptes,
            brand: PhantomData,
        }
    }
}

/// The PTEs of a run are what they are to be from now on.
///
/// # Invariants
///
/// So are those of the run that `'r` names.
#[derive(Debug)]
pub struct Gone<'r> {
    brand: Brand<'r>,
}

/// What has to be had, or found to be so, before a cleared run may go for good.
///
/// A value of it says so of the run that it was entered for, which alone is staged, and only behind
/// the stages [`Behind`](Self::Behind) this one. It ends in [`undo`](Self::undo), or in the
/// [`LastStage`]. What takes nothing is a [`Check`], which needs no unsafe code.
///
/// Context of all methods: folio lock and page table lock held; none sleeps.
///
/// # Safety
///
/// What a value says is so until it ends. [`undo`](Self::undo) leaves nothing of what was taken for
/// it.
#[allow(unsafe_code)]
pub unsafe trait Stage<W: UnmapWalk>: Sized {
    /// The stages that come before.
    type Behind: Stages<W>;

    /// Why it was refused.
    type Refused;

    /// Enters the stage. What was begun is undone if it is refused.
    ///
    /// # Safety
    ///
    /// The run is through the stages [`Behind`](Self::Behind) this one, and was not in it. The
    /// value ends with the run, in one of the two ways.
    unsafe fn enter(ptes: &ClearedPtes<W>) -> Result<Self, Self::Refused>;

    /// Undoes it.
    ///
    /// # Safety
    ///
    /// `self` was entered for this run. The stages that came behind it are undone, and the PTEs not
    /// back.
    #[inline]
    unsafe fn undo(self, _ptes: &ClearedPtes<W>) {}
}

/// A stage after which nothing can fail any more, so that the run may be committed.
///
/// # Safety
///
/// [`complete`](Self::complete) leaves nothing of what was taken for `self` and for the stages
/// behind it, but what the run becomes.
#[allow(unsafe_code)]
pub unsafe trait LastStage<W: UnmapWalk>: Stage<W> {
    /// Decides what takes the place of the PTEs, before counters, rmap and references follow; what
    /// was had for it in `behind` goes with it.
    ///
    /// # Safety
    ///
    /// `self` and `behind` were entered for this run.
    unsafe fn complete(self, behind: Self::Behind, ptes: ForGood<'_, W>) -> Gone<'_>;
}

/// A look at a cleared run that decides whether it may vanish, and takes nothing for that.
///
/// Context: folio lock and page table lock held; does not sleep.
pub trait Check<W: UnmapWalk>: Sized {
    /// Why it may not.
    type Refused;

    /// Whether it may.
    fn check(ptes: &ClearedPtes<W>) -> Result<Self, Self::Refused>;
}

/// The last stage of a run that passed a [`Check`], and has no other.
#[derive(Debug)]
pub struct Checked<C>(C);

#[allow(unsafe_code)]
// SAFETY: Nothing is taken, and nothing unsafe relies on what it says.
unsafe impl<W: UnmapWalk, C: Check<W>> Stage<W> for Checked<C> {
    type Behind = Cleared;
    type Refused = C::Refused;

    #[inline]
    unsafe fn enter(ptes: &ClearedPtes<W>) -> Result<Self, C::Refused> {
        C::check(ptes).map(Self)
    }
}

#[allow(unsafe_code)]
// SAFETY: As above; and that PTEs are cleared, which is all that there is behind, ends in that they
// are gone.
unsafe impl<W: UnmapWalk, C: Check<W>> LastStage<W> for Checked<C> {
    #[inline]
    unsafe fn complete(self, _behind: Cleared, ptes: ForGood<'_, W>) -> Gone<'_> {
        ptes.vanish()
    }
}

/// The stages that a run is in, the last one first.
///
/// Sealed: it cannot be named outside.
#[allow(unsafe_code)]
pub trait Stages<W: UnmapWalk> {
    /// Undoes them, the last one first.
    ///
    /// # Safety
    ///
    /// They were entered for this run, which is cleared.
    unsafe fn undo(self, ptes: &ClearedPtes<W>);
}

/// Stages of which the last one is a [`LastStage`].
///
/// Sealed, as well.
#[allow(unsafe_code)]
pub trait AllStages<W: UnmapWalk>: Stages<W> {
    /// Completes the last one.
    ///
    /// # Safety
    ///
    /// They were entered for this run.
    unsafe fn complete(self, ptes: ForGood<'_, W>) -> Gone<'_>;
}

/// The stage that each run begins with: its PTEs are cleared.
///
/// # Invariants
///
/// One is made for a run that is cleared.
#[derive(Debug)]
pub struct Cleared(pub(super) ());

#[allow(unsafe_code)]
impl<W: UnmapWalk> Stages<W> for Cleared {
    #[inline]
    unsafe fn undo(self, ptes: &ClearedPtes<W>) {
        let walk = ptes.walk();
        // SAFETY: The run is cleared, by the method's requirement.
        unsafe { walk.flush_before_restore(ptes.part()) };
        // SAFETY: As above; and as there is one of `self`, it is this stage's to restore.
        unsafe { walk.set_ptes(ptes.part()) }
    }
}

#[allow(unsafe_code)]
impl<W: UnmapWalk> AllStages<W> for Cleared {
    #[inline]
    unsafe fn complete(self, ptes: ForGood<'_, W>) -> Gone<'_> {
        ptes.vanish()
    }
}

#[allow(unsafe_code)]
impl<W: UnmapWalk, T: Stage<W, Behind = S>, S: Stages<W>> Stages<W> for (T, S) {
    #[inline]
    unsafe fn undo(self, ptes: &ClearedPtes<W>) {
        let (last, before) = self;
        // SAFETY: By the method's requirement; no stage came behind.
        unsafe { last.undo(ptes) };
        // SAFETY: As above, and what came behind is undone.
        unsafe { before.undo(ptes) }
    }
}

#[allow(unsafe_code)]
impl<W: UnmapWalk, T: LastStage<W, Behind = S>, S: Stages<W>> AllStages<W> for (T, S) {
    #[inline]
    unsafe fn complete(self, ptes: ForGood<'_, W>) -> Gone<'_> {
        let (last, before) = self;
        // SAFETY: By the method's requirement.
        unsafe { last.complete(before, ptes) }
    }
}
