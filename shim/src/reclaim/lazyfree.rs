// SPDX-License-Identifier: GPL-2.0

//! Lazyfree folios, which are discarded when they are unmapped, if nobody has written to them since
//! `MADV_FREE`, nor has them.
//!
//! | here                    | in 7.3, mm/rmap.c                                                    |
//! |-------------------------|----------------------------------------------------------------------|
//! | `Folio::is_lazyfree`    | `folio_test_lazyfree()`, include/linux/page-flags.h                  |
//! | `Machine::extra_refs`   | the counts in `ttu_anon_lazyfree_folio()`                            |
//! | `Machine::discards`     | `ttu_anon_lazyfree_folio()`                                          |
//! | [`Stop`]'s methods      | `ttu_folios_referenced()` and what follows it, by this series        |
//!
//! Left out: the lock of the mapcount, as there is one PTE, whose page table is locked; `VM_DROPPABLE`
//! ([`crate::folios`] has both); `MADV_FREE` of a folio that is isolated, which does nothing.

use super::{
    stop::Stop,
    Folio,
    Machine, //
};
use crate::{
    folios::{
        members,
        those, //
    },
    smp,
    sync::atomic::Ordering::Relaxed, //
};
use mm_batch::{
    folio_batch::LazyfreeFoliosWalk,
    folios::FolioSet, //
};
use std::sync::atomic::Ordering::SeqCst;

impl Folio {
    /// Anonymous, and not swap-backed. (What has slots is: nobody gives up what is in the swap cache.)
    pub(super) fn is_lazyfree(&self) -> bool {
        self.no_slots.load(SeqCst) && !self.core.is_swapbacked()
    }
}

impl Machine {
    /// References beyond one for each page that is mapped.
    pub(super) fn extra_refs(&self, index: usize) -> i32 {
        let folio = self.folio(index);
        let refs = folio.core.ref_count();
        refs - folio.mapcount.load(Relaxed) * folio.nr() as i32
    }

    /// Whether a lazyfree folio goes, whose PTE is cleared. One that was written to is swap-backed from
    /// here on.
    pub(super) fn discards(&self, index: usize) -> bool {
        smp::smp_mb();
        let extra = self.extra_refs(index);
        smp::smp_rmb();
        let folio = self.folio(index);
        if folio.core.is_dirty() {
            folio.core.set_swapbacked();
            return false;
        }
        extra == 1
    }
}

impl LazyfreeFoliosWalk for Stop<'_> {
    fn smp_rmb(&self) {
        smp::smp_rmb();
    }

    fn referenced(&self, set: FolioSet) -> Option<FolioSet> {
        those(members(set), |i| self.extra_refs(i) != 1)
    }

    fn redirtied(&self, set: FolioSet) -> Option<FolioSet> {
        those(members(set), |i| self.folio(i).core.is_dirty())
    }

    fn set_swapbacked(&self, set: FolioSet) {
        members(set).for_each(|i| self.folio(i).core.set_swapbacked());
    }
}
