// SPDX-License-Identifier: GPL-2.0

//! The port of `folio_batch` at one stop of an rmap walk, with TLBs: folios of a batch that reclaim
//! has locked. [`crate::folios`] has the same without.
//!
//! | here                             | in 7.3, mm/rmap.c, by this series                           |
//! |----------------------------------|-------------------------------------------------------------|
//! | [`Machine::try_to_unmap_folios`] | `try_to_unmap_folios()`, `try_to_unmap_folios_one()`        |
//! | [`Stop`]'s methods               | `ttu_folios_*()`; of lazyfree folios: `super::lazyfree`     |
//!
//! All PTEs are in one page table, so a batch has a stop for each kind of its folios, and one for
//! each folio that is not unmapped with others.
//!
//! An anonymous folio is this mm's alone, by one flag for all of its pages, and is so again when it
//! is mapped again.
//!
//! Left out: what [`crate::folios`] has, which are slots and their counts (there is room for all),
//! young PTEs, rss, pages that several mms share; a flush that is not put off.

// Ports promise what is in their traits' Safety sections.
#![allow(unsafe_code)]

use super::{
    Flag,
    Folio,
    Machine,
    Mapping, //
};
use crate::{
    folios::{
        members,
        those, //
    },
    pte::{
        swp_pte,
        DIRTY,
        PRESENT,
        SWP_EXCLUSIVE, //
    },
    smp,
    sync::{
        step,
        MutexGuard, //
    },
    tlb::{
        Batched,
        Deferred, //
    }, //
};
use mm_batch::folios::{
    FolioSet,
    FoliosWalk,
    SwapFoliosWalk, //
};
use std::cell::{
    Cell,
    RefCell, //
};

/// A stop at the page table: the port's implementation.
pub struct Stop<'m> {
    machine: &'m Machine,
    deferred: &'m Deferred,
    folios: &'m [usize],
    /// Those that are mapped, and whose rmap was not walked yet.
    todo: &'m Cell<u32>,
    pub(super) first: usize,
    ptl: RefCell<MutexGuard<'m, Batched>>,
    /// PTEs as they were cleared.
    words: RefCell<Vec<u64>>,
}

impl Machine {
    /// Unmaps folios that are locked, at most 32, by `unmap` at each stop, and owes the flush.
    pub fn try_to_unmap_folios(
        &self,
        folios: &[usize],
        deferred: &Deferred,
        unmap: impl Fn(Stop<'_>) -> Option<FolioSet>,
    ) {
        let mut mapped = folios.to_vec();
        mapped.retain(|&index| self.mapped(index));
        let todo = Cell::new(((1u64 << mapped.len()) - 1) as u32);
        while todo.get() != 0 {
            let first = todo.get().trailing_zeros() as usize;
            let ptl = self.lock_ptes();
            if self.table.ptep_get(mapped[first]) & PRESENT != 0 {
                unmap(Stop {
                    machine: self,
                    deferred,
                    folios: &mapped,
                    todo: &todo,
                    first,
                    ptl: RefCell::new(ptl),
                    words: RefCell::new(vec![0; mapped.len()]),
                });
            }
            todo.set(todo.get() & !(1 << first));
        }
    }
}

impl<'m> Stop<'m> {
    pub(super) fn folio(&self, i: usize) -> &'m Folio {
        self.machine.folio(self.folios[i])
    }

    pub(super) fn extra_refs(&self, i: usize) -> i32 {
        self.machine.extra_refs(self.folios[i])
    }

    /// Of one file, anonymous and in the swap cache, or lazyfree and in none: what can be unmapped at
    /// all.
    fn kind(&self, i: usize) -> Option<Option<Mapping>> {
        let folio = self.folio(i);
        let mapping = folio.mapping();
        let known = match mapping {
            Some(Mapping::Swap) => folio.anon,
            Some(Mapping::Shmem | Mapping::File) => !folio.anon,
            None => folio.is_lazyfree(),
        };
        known.then_some(mapping)
    }

    fn can_be_unmapped(&self, i: usize) -> bool {
        let present = || self.machine.table.ptep_get(self.folios[i]) & PRESENT != 0;
        let kind = self.kind(i);
        kind.is_some()
            && kind == self.kind(self.first)
            && present()
            && !self.folio(i).test(Flag::Stuck)
    }

    fn ended(&self, set: FolioSet) {
        for i in members(set) {
            let folio = self.folio(i);
            folio.add_rmap(-1);
            self.machine.put(self.folios[i], folio.nr() as i32);
        }
        self.todo.set(self.todo.get() & !set.bits());
    }
}

// SAFETY: All methods work on the machine's PTEs; the answers are the model's.
unsafe impl FoliosWalk for Stop<'_> {
    fn find(&mut self) -> Option<FolioSet> {
        let todo = |i: usize| self.todo.get() & (1 << i) != 0;
        let found = those(self.first..self.folios.len(), |i| {
            todo(i) && self.can_be_unmapped(i)
        });
        found.filter(|found| found.bits() & (1 << self.first) != 0)
    }

    unsafe fn clear_flush(&self, set: FolioSet) {
        for i in members(set) {
            let index = self.folios[i];
            let was = self.machine.table.get_and_clear(index);
            self.words.borrow_mut()[i] = was;
            if was & DIRTY != 0 {
                self.folio(i).core.mark_dirty();
            }
            self.deferred.set_pending(index, was);
        }
        self.ptl.borrow_mut().set_pending();
    }

    fn smp_mb(&self) {
        smp::smp_mb();
    }

    unsafe fn restore(&self, set: FolioSet) {
        for i in members(set) {
            let index = self.folios[i];
            self.machine.table.set(index, self.words.borrow()[i]);
            step!("folio {index} is mapped again, by the PTE that it had");
        }
    }

    unsafe fn end_mappings(&self, set: FolioSet) {
        self.ended(set);
    }

    unsafe fn vanish(&self, set: FolioSet) {
        self.ended(set);
    }
}

// SAFETY: The answers are the model's.
unsafe impl SwapFoliosWalk for Stop<'_> {
    unsafe fn dup_swap(&self, set: FolioSet) -> Option<FolioSet> {
        Some(set)
    }

    unsafe fn put_swap(&self, _: FolioSet) {}

    fn exclusive(&self, set: FolioSet) -> Option<FolioSet> {
        those(members(set), |i| self.folio(i).core.anon.is_exclusive(0))
    }

    fn maybe_dma_pinned(&self, set: FolioSet) -> Option<FolioSet> {
        those(members(set), |i| self.folio(i).core.anon.maybe_dma_pinned())
    }

    unsafe fn clear_anon_exclusive(&self, set: FolioSet) {
        members(set).for_each(|i| self.folio(i).core.anon.clear_exclusive(0));
    }

    fn smp_mb_after_atomic(&self) {
        smp::smp_mb();
    }

    unsafe fn prepare_for_swap_entries(&self, _: FolioSet) {}

    unsafe fn set_swp_ptes(&self, set: FolioSet) {
        for i in members(set) {
            let index = self.folios[i];
            let entry = swp_pte(index, SWP_EXCLUSIVE);
            self.machine.table.set(index, entry);
        }
    }
}
