// SPDX-License-Identifier: GPL-2.0

//! Which folios of a list are locked together, and what becomes of them between batches.
//!
//! | here                        | in 7.3, mm/vmscan.c, by this series                               |
//! |-----------------------------|-------------------------------------------------------------------|
//! | [`List::shrink_together`]   | `shrink_folio_list()`                                             |
//! | `Pass::shrink_folio`        | its loop, `shrink_next()`                                         |
//! | `Pass::shrink_alone`        | the same, behind where a batch is collected                       |
//! | `Pass::may_batch`           | `shrink_may_batch()`                                              |
//! | `Pass::collect`, `Member`   | `shrink_collect()`, `folio_maps_before()`                         |
//! | `Pass::shrink_batch`        | `shrink_batch()`                                                  |
//! | `List::finish_waiting`      | `shrink_finish_waiting()`, `shrink_batch_write()`, `shrink_batch_release()` |
//! | `List::finish_batch`        | `shrink_batch_finish()`, `shrink_batch_relock()`                  |
//! | `List::remove_together`     | `shrink_batch_remove()`                                           |
//!
//! Left out: the batch that ends as somebody else wants the CPU (`need_resched()`), and the one that
//! 512 page tables map: a folio has one PTE here, and a batch 32 folios. KSM, and folios that are
//! mapped in part, which go alone.

use super::{
    batch::Batch,
    list::List,
    pageout::{
        Looked,
        WAITING_PAGES, //
    },
    report::{
        Event,
        Fate,
        Report, //
    },
    Flag,
    Mapping, //
};
use std::{
    cell::{
        Cell,
        RefCell, //
    },
    collections::BTreeMap, //
};

/// A batch has at most so many folios. C: `SWAP_CLUSTER_MAX`, include/linux/swap.h, 7.3.
const BATCH_FOLIOS: usize = 32;
/// A folio of so many pages is mapped by a PMD, and goes alone. C: `folio_test_pmd_mappable()`.
const PMD_PAGES: u32 = 512;

/// A folio of a batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    pub(super) index: usize,
    anon: bool,
}

impl Member {
    /// Where it is mapped: what is of no file is of one anon_vma.
    pub(super) fn address(self) -> (bool, usize) {
        (self.anon, self.index)
    }
}

/// What there is of batches between them.
#[derive(Debug, Default)]
pub(super) struct Batches {
    /// Whether folios are taken by batches.
    on: Cell<bool>,
    /// Those of the list that were in a batch, and whether they are in none any more.
    again: RefCell<BTreeMap<usize, bool>>,
    /// Those that leave the batch at hand to be taken again.
    leave: RefCell<Vec<(usize, bool)>>,
    /// Those of it that were written, and not counted yet.
    written: RefCell<Vec<usize>>,
    /// Those of it that have no buffers any more.
    clean: RefCell<Vec<usize>>,
    /// Faults took most of a batch back.
    pub(super) taken_back: Cell<bool>,
    /// The first of the batch went alone for its slots.
    slots_brought: Cell<bool>,
    /// What wants slots goes alone.
    slots_alone: Cell<bool>,
    /// Whether the batch at hand was unmapped.
    pub(super) unmapped: Cell<bool>,
}

impl Batches {
    pub(super) fn are_on(&self) -> bool {
        self.on.get()
    }

    pub(super) fn nr_again(&self) -> usize {
        self.again.borrow().len() + self.leave.borrow().len()
    }

    /// It leaves the batch, to be taken again, alone or not.
    pub(super) fn again(&self, index: usize, alone: bool) {
        self.leave.borrow_mut().push((index, alone));
    }

    /// Of so many that wanted slots in a batch so many got none: whether those go alone.
    pub(super) fn slots_alone(&self, wanted: usize, left: usize) -> bool {
        if self.slots_brought.get() && left > wanted / 2 {
            self.slots_alone.set(true);
        }
        self.slots_alone.get()
    }
}

/// What takes a batch up to where its dirty folios wait.
type Shrink<'p, 'm> = &'p dyn Fn(Batch<'_, 'm>);

/// One pass over a list.
struct Pass<'p, 'm> {
    list: &'p List<'m>,
    shrink: Shrink<'p, 'm>,
}

impl<'m> List<'m> {
    /// Reclaims it by batches, each by `shrink`, and ends it. No batch comes behind one that was
    /// taken back.
    ///
    /// # Panics
    ///
    /// If `shrink` leaves a batch locked.
    pub fn shrink_together(self, shrink: impl Fn(Batch<'_, 'm>)) -> Report {
        self.batches.on.set(true);
        let pass = Pass {
            list: &self,
            shrink: &shrink,
        };
        loop {
            while let Some(index) = self.take_beside() {
                pass.shrink_folio(index);
            }
            if !pass.none_together() {
                pass.shrink_batch();
                continue;
            }
            self.shrink_waiting();
            // A folio of shmem may have been split.
            if self.list.borrow().is_empty() {
                return self.finish();
            }
        }
    }

    /// The same with `dirty_flush` off: none waits but behind its flush.
    pub fn shrink_together_unbatched(self, shrink: impl Fn(Batch<'_, 'm>)) -> Report {
        self.batched.set(false);
        self.shrink_together(shrink)
    }

    /// Ends with a folio that waited, and may be written. In a batch, what is written to swap is
    /// counted and freed with the others, and so is what has no buffers any more.
    pub(super) fn finish_waiting(&self, index: usize, mapping: Mapping) {
        let folio = self.folio(index);
        if !self.batches.on.get() {
            return self.pageout(index, mapping);
        }
        let dirty = folio.core.is_dirty();
        if dirty && mapping == Mapping::Swap {
            if self.write(index, mapping) {
                self.batches.written.borrow_mut().push(index);
            }
        } else if !dirty && folio.test_and_clear(Flag::Private) {
            self.machine.put(index, 1);
            self.unlock(index);
            self.batches.clean.borrow_mut().push(index);
        } else {
            self.pageout(index, mapping);
        }
    }

    /// Ends with what was let go: what is clean, and still what it was, is freed.
    pub(super) fn finish_batch(&self) {
        let (written, clean) = (self.batches.written.take(), self.batches.clean.take());
        self.written(&written);
        let locked = written.into_iter().chain(clean);
        self.remove_together(locked.filter(|&index| self.relock(index)).collect());
    }

    /// Locks one beside others, or keeps it.
    fn relock(&self, index: usize) -> bool {
        let folio = self.folio(index);
        let busy = || folio.test(Flag::Writeback) || folio.core.is_dirty();
        if busy() || !self.trylock_beside(index) {
            self.end(index, Fate::Kept);
            return false;
        }
        if folio.mapping().is_none() || busy() {
            self.end_locked(index, Fate::Kept);
            return false;
        }
        self.has_together(self.member(index));
        true
    }

    fn member(&self, index: usize) -> Member {
        Member {
            index,
            anon: self.folio(index).anon,
        }
    }

    /// Takes folios that are clean, and locked together, from where they are cached, and frees them;
    /// those that are not what they were are kept.
    pub(super) fn remove_together(&self, clean: Vec<usize>) {
        let removed = |&index: &usize| self.freeze(index);
        let (removed, kept): (Vec<_>, Vec<_>) = clean.into_iter().partition(removed);
        self.uncache(&removed);
        for index in removed {
            self.note(Event::Freed(index));
            self.single_out(index);
            self.end_locked(index, Fate::Reclaimed);
            self.reclaimed(index, self.folio(index).nr());
        }
        for index in kept {
            self.single_out(index);
            self.end_locked(index, Fate::Kept);
        }
    }
}

impl Pass<'_, '_> {
    fn none_together(&self) -> bool {
        self.list.together.borrow().is_empty()
    }

    /// Deals with a folio that was taken off the list.
    fn shrink_folio(&self, index: usize) {
        let (list, batches) = (self.list, &self.list.batches);
        let again = batches.again.borrow_mut().remove(&index);
        if !list.trylock_beside(index) {
            return list.end(index, Fate::Kept);
        }
        let together = again != Some(true) && self.may_batch(index);
        if !together && !self.none_together() {
            // It may wait: not while others are locked.
            list.unlock(index);
            self.take_later(index, again.map(|_| false));
            return self.shrink_batch();
        }
        match list.check(index, again.is_some()) {
            None if together => self.collect(index),
            None => self.shrink_alone(index, again == Some(true)),
            Some(Looked::UnderWriteback) => {
                self.take_later(index, again);
                self.shrink_batch();
                list.shrink_waiting();
                list.wait_on_list(index);
            }
            Some(_) => (),
        }
    }

    /// It is the next of the list, as it was taken from there.
    fn take_later(&self, index: usize, again: Option<bool>) {
        self.list.put_on(index);
        let mut all = self.list.batches.again.borrow_mut();
        all.extend(again.map(|alone| (index, alone)));
    }

    /// Whether a folio goes with others.
    fn may_batch(&self, index: usize) -> bool {
        let (list, folio) = (self.list, self.list.folio(index));
        let batches = &list.batches;
        if batches.taken_back.get()
            || folio.nr() >= PMD_PAGES
            || folio.test(Flag::Poisoned)
            || batches.slots_alone.get() && folio.wants_swap()
        {
            return false;
        }
        let cached = || folio.anon || folio.mapping().is_some();
        list.machine.mapped(index) || !self.none_together() && !folio.wants_swap() && cached()
    }

    /// A folio without others, which is locked, and not in use.
    fn shrink_alone(&self, index: usize, alone: bool) {
        let (list, batches) = (self.list, &self.list.batches);
        if list.keep_referenced(index) {
            return;
        }
        if list.folio(index).alloc_swap() && alone {
            let none_alone = !batches.again.borrow().values().any(|&alone| alone);
            if none_alone && !batches.slots_alone.get() && self.may_batch(index) {
                batches.slots_brought.set(true);
                return self.collect(index);
            }
        }
        if list.unmap_placed(index) == Looked::Dirty {
            list.wait_or_write(index);
        }
    }

    /// Puts a folio that is locked into the batch, by its address.
    fn collect(&self, index: usize) {
        let list = self.list;
        list.has_together(list.member(index));
        list.note(Event::Collected(index));
        if list.together.borrow().len() == BATCH_FOLIOS || self.pages_together() >= WAITING_PAGES {
            self.shrink_batch();
        }
    }

    fn pages_together(&self) -> u32 {
        let together = self.list.together.borrow();
        let pages = |one: &Member| self.list.folio(one.index).nr();
        together.iter().map(pages).sum()
    }

    /// Reclaims the batch, if there is one. What is dirty waits for others, if a flush is owed.
    fn shrink_batch(&self) {
        let (list, batches) = (self.list, &self.list.batches);
        if self.none_together() {
            return;
        }
        let nr_tried = list.nr_tried_pages.get() + self.pages_together();
        list.nr_tried_pages.set(nr_tried);
        batches.unmapped.set(false);
        (self.shrink)(Batch::new(list));
        list.assert_none_locked("a batch ends");
        batches.slots_brought.set(false);
        // The first to leave is the first to be taken; those that go alone come first.
        let leave = batches.leave.take();
        for alone in [false, true] {
            let these = leave.iter().rev().filter(|one| one.1 == alone);
            these.for_each(|&(index, alone)| self.take_later(index, Some(alone)));
        }
        list.note(Event::Ended);
        if list.enough_wait() || !list.deferred.writable() {
            list.shrink_waiting();
        }
    }
}
