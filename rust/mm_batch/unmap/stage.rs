// SPDX-License-Identifier: GPL-2.0

//! What a cleared run goes through before it is unmapped for good.

use super::{
    ClearedPtes,
    UnmapWalk, //
};

/// Cleared PTEs of which nothing is restored any more.
///
/// # Invariants
///
/// The run is being committed.
#[derive(Debug)]
pub struct ForGood<'r, W: UnmapWalk>(pub(super) &'r ClearedPtes<W>);

impl<W: UnmapWalk> ForGood<'_, W> {
    /// The PTEs.
    #[inline]
    pub fn ptes(&self) -> &ClearedPtes<W> {
        self.0
    }
}

/// What has to be had, or found to be so, before a cleared run may go for good.
///
/// A value of it says so. It ends in [`undo`](Self::undo) or in [`complete`](Self::complete), which
/// cannot fail: all that can is done when it is entered.
///
/// Context of all methods: folio lock and page table lock held; none sleeps.
pub trait Stage<W: UnmapWalk>: Sized {
    /// Why it was refused.
    type Refused;

    /// Enters the stage. What was begun is undone if it is refused.
    fn enter(ptes: &ClearedPtes<W>) -> Result<Self, Self::Refused>;

    /// Undoes it, when the stages that came behind it are undone, and before the PTEs are back.
    #[inline]
    fn undo(self, _ptes: &ClearedPtes<W>) {}

    /// Does what follows from it, behind what the stages in front of it do, and before counters,
    /// rmap and references.
    #[inline]
    fn complete(self, _ptes: &ForGood<'_, W>) {}
}

/// The stages that a run is in, the last one first.
///
/// Sealed: it cannot be named outside.
pub trait Stages<W: UnmapWalk> {
    /// Undoes them, the last one first.
    fn undo(self, ptes: &ClearedPtes<W>);

    /// Completes them, the first one first.
    fn complete(self, ptes: &ForGood<'_, W>);
}

/// The stage that each run begins with: its PTEs are cleared.
///
/// # Invariants
///
/// One is made for a run that is cleared.
#[derive(Debug)]
pub struct Cleared(pub(super) ());

impl<W: UnmapWalk> Stages<W> for Cleared {
    #[allow(unsafe_code)]
    #[inline]
    fn undo(self, ptes: &ClearedPtes<W>) {
        // SAFETY: The run is cleared, and as there is one of `self`, it is this stage's to restore.
        unsafe { ptes.walk().set_ptes(ptes.part()) }
    }

    #[allow(unsafe_code)]
    #[inline]
    fn complete(self, ptes: &ForGood<'_, W>) {
        let ptes = ptes.ptes();
        // SAFETY: The run is cleared, and this stage comes first.
        unsafe { ptes.walk().leave_behind(ptes.part()) }
    }
}

impl<W: UnmapWalk, T: Stage<W>, S: Stages<W>> Stages<W> for (T, S) {
    #[inline]
    fn undo(self, ptes: &ClearedPtes<W>) {
        let (last, before) = self;
        last.undo(ptes);
        before.undo(ptes);
    }

    #[inline]
    fn complete(self, ptes: &ForGood<'_, W>) {
        let (last, before) = self;
        before.complete(ptes);
        last.complete(ptes);
    }
}
