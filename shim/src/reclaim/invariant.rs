// SPDX-License-Identifier: GPL-2.0

//! What must hold of folios that others have unmapped and unlocked.
//!
//! **A store that did not fault is in what is written out, or still in memory, dirty, for as long as
//! the page is of the file, or of the mm.** [`Machine::assert_nothing_lost`] is that, for one folio.
//! From where a file was truncated or punched, or an mm has unmapped or moved a page, and that has
//! returned, a store to the page must fault. (What a pin is for may be written in any case.)

use super::{
    Folio,
    Machine, //
};
use crate::pte::{
    DIRTY,
    PRESENT, //
};
use std::sync::MutexGuard;

/// Whether the page is where it was: what may be stored to it without a fault.
#[derive(Clone, Copy, Debug)]
pub(super) enum Gone {
    /// It is.
    No,
    /// It is of nobody any more, nor are the stores up to then, which are so many.
    Given(usize),
    /// It is at another address. So many stores came before.
    Moved(usize),
}

impl Folio {
    /// A write by somebody who has pinned it, whosever it is by now.
    pub(super) fn write_pinned(&self) {
        self.write();
        if let Gone::Given(nr) | Gone::Moved(nr) = &mut *self.gone() {
            *nr += 1;
        }
    }

    fn gone(&self) -> MutexGuard<'_, Gone> {
        self.gone.lock().expect("a thread of the model panicked")
    }

    /// From here on it is of nobody: whoever gave it up has returned.
    pub(super) fn give_up(&self) {
        *self.gone() = Gone::Given(self.core.written());
    }

    /// From here on it is not at this address.
    ///
    /// # Panics
    ///
    /// If it is of nobody any more.
    pub(super) fn move_away(&self) {
        let mut gone = self.gone();
        assert!(matches!(*gone, Gone::No), "what is of nobody is moved");
        *gone = Gone::Moved(self.core.written());
    }

    pub(super) fn is_moved(&self) -> bool {
        matches!(*self.gone(), Gone::Moved(_))
    }
}

impl Machine {
    /// Nothing that was written to a folio is lost: at the end of a test.
    ///
    /// # Panics
    ///
    /// If what is to be read back is not what was written; if somebody stored to what was of nobody
    /// any more, or at another address.
    pub fn assert_nothing_lost(&self, index: usize) {
        let folio = self.folio(index);
        let mapped = index < self.table.nr() && self.table.ptep_get(index) & PRESENT != 0;
        let dirty = folio.core.is_dirty() || mapped && self.table.ptep_get(index) & DIRTY != 0;
        let kept = folio.is_stored() || !folio.is_freed() && dirty;
        let written = folio.core.written();
        let well = match *folio.gone() {
            Gone::No => kept,
            Gone::Given(nr) => written == nr,
            Gone::Moved(nr) => kept && written == nr,
        };
        assert!(well, "a write to folio {index} is lost");
    }
}
