// SPDX-License-Identifier: GPL-2.0

//! The port of `folio_batch` in reclaim: up to 32 folios that are locked together.
//!
//! | here                            | in 7.3, mm/vmscan.c, by this series                           |
//! |---------------------------------|---------------------------------------------------------------|
//! | `check_references()`            | `shrink_batch_references()`                                   |
//! | `alloc_swap()`                  | `shrink_batch_alloc_swap()`                                   |
//! | `unmap()`                       | `shrink_batch_unmap()`; [`super::stop`] has what it does      |
//! | `flush_dirty()`                 | `try_to_unmap_flush_dirty()`, mm/rmap.c, 7.3                  |
//! | `free_clean()`                  | `shrink_batch_free_clean()`                                   |
//! | `may_wait()`                    | `shrink_batch_may_wait()`                                     |
//! | `let_go()`, `put_back()`        | `shrink_batch_let_go()`, `shrink_batch_put_back()`            |
//! | [`List::shrink_together`], what is around a batch | `super::together` has its table             |
//!
//! What waits for something while a batch is locked panics, as does a folio that is let go while a
//! flush is owed for it, unless it may wait.
//!
//! Left out: the locks of rmap walks, by trylock, without which a folio stays mapped ([`Flag::Stuck`]
//! is that); the flush of large folios on arm64; slots but for whether there are some: those that one
//! brings who goes alone are for him; that a large one is split for want of slots;
//! `may_enter_fs()` and the swap cluster's lock.

// Ports promise what is in their traits' Safety sections.
#![allow(unsafe_code)]

use super::{
    list::List,
    report::{
        Event,
        Fate,
        Window, //
    },
    stop::Stop,
    Flag, //
};
use mm_batch::{
    batch::FolioBatch,
    folio_batch::{
        unmap_anon_folios,
        unmap_file_folios,
        unmap_lazyfree_folios, //
    }, //
};
use std::cell::Cell;

/// A batch: the port's implementation.
pub struct Batch<'l, 'm> {
    list: &'l List<'m>,
    /// Whether references were asked for.
    asked: Cell<bool>,
}

impl<'l, 'm> Batch<'l, 'm> {
    /// Of what the list has locked together.
    pub(super) fn new(list: &'l List<'m>) -> Self {
        Self {
            list,
            asked: Cell::new(false),
        }
    }

    /// Its folios, in their order.
    fn folios(&self) -> Vec<usize> {
        let together = self.list.together.borrow();
        together.iter().map(|one| one.index).collect()
    }

    /// It is unlocked, and taken again.
    fn again(&self, index: usize, alone: bool) {
        self.list.single_out(index);
        self.list.flush_for_unmapped(index);
        self.list.unlock(index);
        self.list.batches.again(index, alone);
    }

    /// It is let go.
    fn unlock(&self, index: usize) {
        self.list.single_out(index);
        let owed = self.list.deferred.writable_to(index) && !self.list.may_wait(index);
        assert!(!owed, "a folio is let go while a flush is owed for it");
        self.list.unlock(index);
    }

    /// It is put back, as it is in use.
    fn activate(&self, index: usize) {
        self.list.single_out(index);
        self.list.activate(index);
    }
}

// SAFETY: A list is a task here, which has one batch at a time.
unsafe impl FolioBatch for Batch<'_, '_> {
    fn check_references(&self) {
        self.asked.set(true);
        for index in self.folios() {
            if self.list.folio(index).test(Flag::Referenced) {
                self.list.single_out(index);
                self.list.keep_referenced(index);
            }
        }
    }

    fn alloc_swap(&self) {
        assert!(self.asked.get(), "folios get slots that may be in use");
        for index in self.folios() {
            if self.list.leaves_mapped(index) {
                self.activate(index);
            }
        }
        let mut left = self.folios();
        left.retain(|&index| self.list.folio(index).wants_swap());
        // None of them gets any, but the first by itself.
        let alone = self.list.batches.slots_alone(left.len(), left.len());
        for (i, &index) in left.iter().enumerate() {
            self.again(index, i == 0 || alone);
        }
    }

    fn unmap(&self) {
        self.list.batches.unmapped.set(true);
        let (folios, deferred) = (self.folios(), &self.list.deferred);
        let placed = |&index: &usize| !self.list.folio(index).wants_swap();
        let all_placed = folios.iter().all(placed);
        assert!(all_placed, "a folio without slots is unmapped");
        let unmap = |stop: Stop<'_>| match stop.folio(stop.first) {
            first if !first.anon => unmap_file_folios(stop),
            first if first.is_lazyfree() => unmap_lazyfree_folios(stop),
            _ => unmap_anon_folios(stop),
        };
        self.list
            .machine
            .try_to_unmap_folios(&folios, deferred, unmap);
    }

    fn free_clean(&self) {
        let mut clean = Vec::new();
        for index in self.folios() {
            let folio = self.list.folio(index);
            let nr = u64::from(folio.nr());
            if self.list.machine.mapped(index) && folio.wants_swap() {
                // It was lazyfree, and is not any more.
                self.list.single_out(index);
                self.list.count(|stat| stat.nr_lazyfree_fail += nr);
                self.list.unmap_failed(index);
            } else if self.list.machine.mapped(index) {
                self.again(index, true);
            } else if folio.core.anon.maybe_dma_pinned() {
                self.activate(index);
            } else if folio.core.is_dirty() {
                if !folio.core.is_swapbacked() {
                    self.list.count(|stat| stat.nr_immediate += nr);
                    self.activate(index);
                }
            } else if folio.test(Flag::Private) {
                // What frees its buffers may sleep.
            } else if folio.mapping().is_some() {
                clean.push(index);
            } else {
                self.list.single_out(index);
                self.list.free_clean(index);
            }
        }
        self.list.remove_together(clean);
    }

    fn may_wait(&self) -> bool {
        self.folios().iter().all(|&index| self.list.may_wait(index))
    }

    fn flush_dirty(&self) {
        self.list.deferred.flush_dirty(&self.list.machine.cpus);
        self.list.note(Event::Flushed(self.folios().len()));
    }

    unsafe fn let_go(&self) {
        for index in self.folios() {
            self.unlock(index);
            self.list.note(Event::Waits(index));
            self.list.happens(index, Window::Unlocked);
            self.list.push_waiting(index, self.list.folio(index).nr());
        }
    }

    unsafe fn put_back(&self) {
        self.flush_dirty();
        for index in self.folios() {
            self.unlock(index);
            self.list.end(index, Fate::Kept);
        }
    }
}

#[cfg(test)]
mod tests;
