// SPDX-License-Identifier: GPL-2.0

//! The port of `file_unmap`, beyond what every unmapping needs.
//!
//! | here                     | in 7.3                                    |
//! |--------------------------|-------------------------------------------|
//! | `smp_rmb()`              | [`crate::smp`]                            |
//! | counts and flags         | [`crate::folio`]                          |
//! | `vma_droppable()`        | [`crate::unmap::Layout`]                  |
//!
//! Left out: whether a folio is anonymous or in the swap cache does not change while it is unmapped,
//! as it is locked.

use crate::{
    order::{
        Event,
        Flag, //
    },
    smp,
    unmap::Walk, //
};
use mm_batch::file_unmap::LazyfreeWalk;

impl LazyfreeWalk for Walk<'_> {
    fn smp_rmb(&self) {
        smp::smp_rmb();
        self.note(Event::ReadOrdered);
    }

    fn folio_extra_refs(&self) -> i32 {
        let extra = self.folio.extra_refs();
        self.note(Event::RefsCounted);
        extra
    }

    fn folio_test_dirty(&self) -> bool {
        self.asked(Flag::Dirty, self.folio.is_dirty())
    }

    fn vma_droppable(&self) -> bool {
        self.asked(Flag::Droppable, self.mm.layout.droppable)
    }

    fn folio_set_swapbacked(&self) {
        self.folio.set_swapbacked();
        self.note(Event::MadeSwapbacked);
    }
}
