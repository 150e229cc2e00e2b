// SPDX-License-Identifier: GPL-2.0

//! The port of `folio_batch` in reclaim: up to 32 folios that are locked together.
//!
//! | here                        | in 7.3, mm/vmscan.c, by this series                               |
//! |-----------------------------|-------------------------------------------------------------------|
//! | [`List::shrink_together`]   | `shrink_folio_list()`                                             |
//! | `List::collect`             | its loop, down to where references are asked for                  |
//! | [`Batch`]'s methods         | `shrink_batch_references()`, `shrink_batch_alloc_swap()`, `shrink_batch_unmap()`, `shrink_batch_free_clean()`, `shrink_batch_let_go()` |
//! | `Batch::flush_dirty`        | `try_to_unmap_flush_dirty()`, mm/rmap.c, 7.3                      |
//!
//! A folio that leaves, to be taken by itself later, is taken when there are no more batches, as
//! one of a list without batches; it is counted there alone. What waits for something while a batch
//! is locked panics, as does a folio that is unlocked while a flush is owed.
//!
//! Left out: the rmap walk ([`crate::folios`] has it; here each folio has one PTE, and is unmapped
//! as one by itself), slots but for whether there are some, charges.

// Ports promise what is in their traits' Safety sections.
#![allow(unsafe_code)]

use super::{
    list::{
        List,
        Port, //
    },
    report::{
        Event,
        Fate,
        Report,
        Window, //
    },
    Flag,
    Mapping, //
};
use mm_batch::batch::FolioBatch;
use std::cell::{
    Cell,
    RefCell, //
};

/// A batch has at most so many folios. C: `SWAP_CLUSTER_MAX`, include/linux/swap.h, 7.3.
pub const BATCH_FOLIOS: usize = 32;

/// A folio of a batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    index: usize,
    /// Whether it was dirty when it was collected.
    dirty: bool,
}

impl<'m> List<'m> {
    /// Reclaims it by batches, each by `shrink`, which is given its pages, and then those that were
    /// left one by one. No batch comes behind one of which `shrink` says that it was taken back.
    ///
    /// # Panics
    ///
    /// If `shrink` leaves a batch locked, or a folio waiting.
    pub fn shrink_together(self, shrink: impl Fn(Batch<'_, 'm>, u32) -> u32) -> Report {
        let singly = RefCell::default();
        loop {
            self.collect(&singly);
            if self.together.borrow().is_empty() {
                break;
            }
            let batch = Batch {
                list: &self,
                singly: &singly,
                asked: Cell::new(false),
            };
            let taken_back = shrink(batch, self.pages_together());
            self.assert_none_locked("a batch ends");
            self.assert_nobody_waits();
            if taken_back > 0 {
                self.note(Event::TakenBack(taken_back));
                break;
            }
        }
        let singly = singly.into_inner();
        singly
            .into_iter()
            .rev()
            .for_each(|index| self.put_on(index));
        self.shrink_unbatched()
    }

    fn pages_together(&self) -> u32 {
        let together = self.together.borrow();
        together.iter().map(|one| self.folio(one.index).nr()).sum()
    }

    /// Locks the next folios for a batch.
    fn collect(&self, singly: &RefCell<Vec<usize>>) {
        let mut members = Vec::new();
        while members.len() < BATCH_FOLIOS {
            let Some(index) = self.take() else { break };
            let folio = self.folio(index);
            if !folio.trylock() {
                self.end(index, Fate::Kept);
                continue;
            }
            let apart = [Flag::Poisoned, Flag::WaitedFor, Flag::Writeback];
            if !folio.is_evictable() || apart.into_iter().any(|flag| folio.test(flag)) {
                folio.unlock();
                singly.borrow_mut().push(index);
                continue;
            }
            let dirty = folio.core.is_dirty();
            members.push(Member { index, dirty });
        }
        self.together.replace(members);
    }
}

/// A batch: the port's implementation.
pub struct Batch<'l, 'm> {
    list: &'l List<'m>,
    singly: &'l RefCell<Vec<usize>>,
    /// Whether references were asked for.
    asked: Cell<bool>,
}

impl Batch<'_, '_> {
    /// Those of the batch that `leaves` does not take out of it.
    fn retain(&self, leaves: impl Fn(Member) -> bool) {
        let members = self.list.together.take();
        let left = members.into_iter().filter(|&one| !leaves(one)).collect();
        self.list.together.replace(left);
    }

    /// It is dealt with in this batch.
    fn count(&self, one: Member) -> u64 {
        let nr = u64::from(self.list.folio(one.index).nr());
        self.list.count(|stat| {
            stat.nr_scanned += nr;
            stat.nr_dirty += if one.dirty { nr } else { 0 };
        });
        nr
    }

    fn unlock(&self, one: Member) {
        let owed = self.list.deferred.writable();
        assert!(!owed, "a folio is unlocked while a flush is owed");
        self.list.folio(one.index).unlock();
    }

    /// It is unlocked, and taken by itself later.
    fn leave(&self, one: Member) {
        self.unlock(one);
        self.singly.borrow_mut().push(one.index);
    }

    /// Nobody maps it, or has it pinned.
    fn is_unmapped(&self, index: usize) -> bool {
        !self.list.machine.mapped(index) && !self.list.folio(index).core.anon.maybe_dma_pinned()
    }

    fn waits(&self, index: usize) -> bool {
        let folio = self.list.folio(index);
        let to_end = match folio.mapping() {
            Some(Mapping::Swap | Mapping::Shmem) => folio.core.is_dirty(),
            Some(Mapping::File) => folio.test(Flag::Private) && !folio.core.is_dirty(),
            None => false,
        };
        to_end && self.is_unmapped(index)
    }
}

// SAFETY: A list is a task here, which has one batch at a time.
unsafe impl<'l, 'm> FolioBatch for Batch<'l, 'm> {
    type List = Port<'l, 'm>;

    fn check_references(&self) {
        self.asked.set(true);
        self.retain(|one| {
            let used = self.list.folio(one.index).test(Flag::Referenced);
            if used {
                let nr = self.count(one);
                self.list.count(|stat| stat.nr_ref_keep += nr);
                self.unlock(one);
                self.list.end(one.index, Fate::Kept);
            }
            used
        });
    }

    fn alloc_swap(&self) {
        assert!(self.asked.get(), "folios get slots that may be in use");
        self.retain(|one| {
            let none = self.list.folio(one.index).test(Flag::NoSlots);
            if none {
                self.leave(one);
            }
            none
        });
    }

    unsafe fn unmap(&self) {
        for one in self.list.together.borrow().iter() {
            let placed = !self.list.folio(one.index).test(Flag::NoSlots);
            assert!(placed, "a folio without slots is unmapped");
            if self.list.machine.mapped(one.index) {
                self.list
                    .machine
                    .try_to_unmap(one.index, &self.list.deferred);
            }
        }
    }

    fn flush_dirty(&self) {
        self.list.deferred.flush_dirty(&self.list.machine.cpus);
        let nr = self.list.together.borrow().len();
        self.list.note(Event::Flushed(nr));
    }

    unsafe fn free_clean(&self) {
        let owed = self.list.deferred.writable();
        assert!(!owed, "folios are freed while a flush is owed");
        self.retain(|one| {
            let folio = self.list.folio(one.index);
            let clean = !folio.core.is_dirty() && !folio.test(Flag::Private);
            let ends = clean
                && self.is_unmapped(one.index)
                && folio.mapping().is_some()
                && self.list.remove_mapping(one.index);
            if ends {
                self.count(one);
                self.list.note(Event::Freed(one.index));
                self.unlock(one);
                self.list.end(one.index, Fate::Reclaimed);
                self.list.reclaimed(one.index, folio.nr());
            }
            ends
        });
    }

    unsafe fn let_go(&self) -> Port<'l, 'm> {
        for one in self.list.together.take() {
            if !self.waits(one.index) {
                self.leave(one);
                continue;
            }
            self.count(one);
            self.unlock(one);
            self.list.note(Event::Waits(one.index));
            self.list.happens(one.index, Window::Unlocked);
            let nr = self.list.folio(one.index).nr();
            self.list.push_waiting(one.index, nr);
        }
        Port(self.list)
    }
}

#[cfg(test)]
mod tests;
