// SPDX-License-Identifier: GPL-2.0

//! The port of reclaim: one call of `shrink_folio_list()`, its list, its counters, its deferred
//! flushes.
//!
//! | here                         | in 7.3, mm/vmscan.c                                        |
//! |------------------------------|------------------------------------------------------------|
//! | `next_waiting()`             | `shrink_next_waiting()`, by this series                    |
//! | `keep()`, `keep_locked()`    | its labels; the flush in front of the unlock is of         |
//! |                              | patches/fixes/                                             |
//! | `activate_locked()`          | its label; swap is never full                              |
//! | `unmap_failed_locked()`      | what it does where `folio_mapped()` is left                |
//! | `List::shrink_waiting`       | `shrink_waiting()`, by this series                         |
//! | [`List::shrink`]             | `shrink_folio_list()`, by this series, with `rust`         |
//! | [`List::shrink_unbatched`]   | the same, as 7.3 has it                                    |
//! | [`List::finish`]             | its end: the last flush, the putback by its caller         |
//! | `List::add_split`            | `shrink_add_split()`, by this series                       |
//! | the rest                     | [`crate::reclaim`], [`crate::tlb`]                         |
//!
//! The model checks what the methods ask of their caller: a folio that is unlocked, put back or
//! written out though it may not be panics, as do two locks at once, a lock across a flush, a folio
//! that waits for the writeback of another, and one that is in nobody's hands in the end.
//!
//! Left out: demotion, `folio_alloc_swap()` that fails, throttling; references beyond a
//! flag, and with them MGLRU, as its generations are in who asks for references, and in where the
//! caller puts a folio that goes back, both behind the port.

// Ports promise what is in their traits' Safety sections.
#![allow(unsafe_code)]

use super::{
    pageout::{
        WAITING_FOLIOS,
        WAITING_PAGES, //
    },
    report::{
        Charges,
        Event,
        Fate,
        Report,
        Stat,
        Window, //
    },
    together::{
        Batches,
        Member, //
    },
    Flag,
    Folio,
    Machine,
    Mapping, //
};
use crate::tlb::Deferred;
use mm_batch::{
    dirty_flush::shrink_waiting,
    reclaim::{
        AfterFlush,
        FolioList, //
    }, //
};
use std::{
    cell::{
        Cell,
        RefCell, //
    },
    collections::{
        BTreeMap,
        VecDeque, //
    },
    num::NonZero, //
};

/// Where a folio is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    OnList,
    OffList,
    Ended(Fate),
}

/// A folio that was given out.
#[derive(Debug)]
pub struct Name(usize);

#[cfg(test)]
impl Name {
    pub(super) fn of(index: usize) -> Self {
        Self(index)
    }
}

/// What happens to a folio there.
type Meanwhile<'m> = Box<dyn Fn(usize, Window) + 'm>;

/// What ends with a batch, with which so many pages were tried: how many of these were taken back, if
/// most were.
type Shrink<'m> = Box<dyn Fn(Port<'_, 'm>, u32) -> u32 + 'm>;

/// The list, of one task.
pub struct List<'m> {
    pub(super) machine: &'m Machine,
    pub(super) deferred: Deferred,
    pub(super) stat: Cell<Stat>,
    pub(super) list: RefCell<VecDeque<usize>>,
    pub(super) free_folios: RefCell<Vec<usize>>,
    /// Whether folios may wait.
    pub(super) batched: Cell<bool>,
    waiting: RefCell<VecDeque<usize>>,
    nr_waiting_pages: Cell<u32>,
    /// So many pages were taken through reclaim since there was a flush for these.
    pub(super) nr_tried_pages: Cell<u32>,
    /// Who was unmapped by this pass, if the one that was looked at last was.
    pub(super) unmapped: Cell<Option<usize>>,
    places: RefCell<BTreeMap<usize, Place>>,
    locked: Cell<Option<usize>>,
    /// Those that are locked for a batch.
    pub(super) together: RefCell<Vec<Member>>,
    pub(super) batches: Batches,
    cgroups: RefCell<BTreeMap<u8, Charges>>,
    /// Those that go back to the LRU lists, the first of which goes first.
    back: RefCell<Vec<usize>>,
    events: RefCell<Vec<Event>>,
    meanwhile: Option<Meanwhile<'m>>,
    shrink_waiting: Shrink<'m>,
}

impl<'m> List<'m> {
    /// A list of these folios, the first of which comes first.
    pub fn new(machine: &'m Machine, folios: impl IntoIterator<Item = usize>) -> Self {
        let list = Self {
            machine,
            deferred: Deferred::default(),
            stat: Cell::default(),
            list: RefCell::default(),
            free_folios: RefCell::default(),
            batched: Cell::new(true),
            waiting: RefCell::default(),
            nr_waiting_pages: Cell::new(0),
            nr_tried_pages: Cell::new(0),
            unmapped: Cell::new(None),
            places: RefCell::default(),
            locked: Cell::new(None),
            together: RefCell::default(),
            batches: Batches::default(),
            cgroups: RefCell::default(),
            back: RefCell::default(),
            events: RefCell::default(),
            meanwhile: None,
            shrink_waiting: Box::new(|port, nr_pages| shrink_waiting(port, nr_pages)),
        };
        let mut folios: Vec<_> = folios.into_iter().collect();
        folios.reverse();
        folios.into_iter().for_each(|folio| list.add(folio));
        list
    }

    /// The same, with something that happens to folios that wait.
    pub fn meanwhile(self, happens: impl Fn(usize, Window) + 'm) -> Self {
        Self {
            meanwhile: Some(Box::new(happens)),
            ..self
        }
    }

    /// The same, with another policy than `dirty_flush`.
    pub fn by(self, shrink: impl Fn(Port<'_, 'm>, u32) -> u32 + 'm) -> Self {
        Self {
            shrink_waiting: Box::new(shrink),
            ..self
        }
    }

    /// Puts a folio on the list, as its first.
    pub(super) fn add(&self, folio: usize) {
        let was = self.places.borrow_mut().insert(folio, Place::OnList);
        assert_eq!(was, None, "folio {folio} comes to the list twice");
        self.list.borrow_mut().push_front(folio);
    }

    /// Puts a part of a folio on the list: as its first, or as its last while others of a batch are
    /// to be taken again.
    pub(super) fn add_split(&self, tail: usize) {
        self.add(tail);
        if self.batches.nr_again() > 0 {
            self.list.borrow_mut().rotate_left(1);
        }
    }

    /// Reclaims it, by batches, and ends it.
    pub fn shrink(self) -> Report {
        self.shrink_folios();
        self.finish()
    }

    /// Reclaims it one folio after the other, with a flush for each that is dirty, and ends it.
    pub fn shrink_unbatched(self) -> Report {
        self.batched.set(false);
        self.shrink()
    }

    /// The port, of a batch of those that wait now.
    pub fn port(&mut self) -> Port<'_, 'm> {
        Port(self)
    }

    /// Puts a folio of so many pages behind those that wait.
    pub(super) fn push_waiting(&self, index: usize, nr: u32) {
        self.nr_waiting_pages.set(self.nr_waiting_pages.get() + nr);
        self.waiting.borrow_mut().push_back(index);
    }

    fn nobody_waits(&self) -> bool {
        self.waiting.borrow().is_empty()
    }

    /// Whether a batch of those that wait is full.
    pub(super) fn enough_wait(&self) -> bool {
        self.waiting.borrow().len() >= WAITING_FOLIOS
            || self.nr_waiting_pages.get() >= WAITING_PAGES
    }

    /// Puts a folio that was taken off the list on it again, as its first.
    pub(super) fn put_on(&self, index: usize) {
        self.places.borrow_mut().insert(index, Place::OnList);
        self.list.borrow_mut().push_front(index);
    }

    /// Has `dirty_flush` end with those that wait.
    ///
    /// # Panics
    ///
    /// If it leaves some, which C would warn of.
    pub(super) fn shrink_waiting(&self) {
        let nr_tried = self.nr_tried_pages.take();
        if self.nobody_waits() {
            return;
        }
        // Nobody splits what is isolated.
        let nr = |&index: &usize| self.folio(index).nr();
        let now: u32 = self.waiting.borrow().iter().map(nr).sum();
        let nr_pages = self.nr_waiting_pages.take();
        assert_eq!(now, nr_pages, "a folio was split while it waits");
        let taken_back = (self.shrink_waiting)(Port(self), nr_tried);
        if taken_back > 0 {
            self.note(Event::TakenBack(taken_back));
            self.batched.set(false);
            self.batches.taken_back.set(true);
        }
        assert!(self.nobody_waits(), "a folio is left waiting");
        if self.batches.are_on() {
            self.finish_batch();
        }
    }

    /// Flushes, frees, and puts back what is left.
    ///
    /// # Panics
    ///
    /// If a folio is locked, or in nobody's hands.
    pub fn finish(self) -> Report {
        assert!(self.list.borrow().is_empty(), "the list is not empty");
        self.assert_none_locked("the list ends");
        self.free_batch();
        let mut fates = BTreeMap::new();
        for (&folio, &place) in &*self.places.borrow() {
            let Place::Ended(fate) = place else {
                panic!("folio {folio} is lost");
            };
            if matches!(fate, Fate::Kept | Fate::Activated) {
                self.machine.put(folio, 1);
            }
            fates.insert(folio, fate);
        }
        Report {
            fates,
            back: self.back.into_inner(),
            cgroups: self.cgroups.into_inner(),
            stat: self.stat.get(),
            events: self.events.into_inner(),
            flushes: self.deferred.flushes(),
        }
    }

    pub(super) fn folio(&self, index: usize) -> &'m Folio {
        self.machine.folio(index)
    }

    pub(super) fn note(&self, event: Event) {
        self.events.borrow_mut().push(event);
    }

    pub(super) fn count(&self, change: impl FnOnce(&mut Stat)) {
        let mut stat = self.stat.get();
        change(&mut stat);
        self.stat.set(stat);
    }

    /// Counts folios by cgroup, those that follow each other and are of one at once.
    pub(super) fn charge(&self, folios: &[usize], change: impl Fn(&mut Charges, u64)) {
        let cgroup = |&index: &usize| self.folio(index).cgroup;
        for run in folios.chunk_by(|one, next| cgroup(one) == cgroup(next)) {
            let nr = |&index: &usize| u64::from(self.folio(index).nr());
            let mut cgroups = self.cgroups.borrow_mut();
            let charges = cgroups.entry(cgroup(&run[0])).or_default();
            change(charges, run.iter().map(nr).sum());
        }
    }

    pub(super) fn happens(&self, index: usize, window: Window) {
        if let Some(happens) = &self.meanwhile {
            happens(index, window);
        }
    }

    pub(super) fn assert_none_locked(&self, what: &str) {
        self.assert_not_locked(what);
        self.assert_none_together(what);
    }

    /// None is but those of a batch.
    pub(super) fn assert_not_locked(&self, what: &str) {
        let locked = self.locked.get();
        assert_eq!(locked, None, "{what} while a folio is locked");
    }

    pub(super) fn assert_none_together(&self, what: &str) {
        let none = self.together.borrow().is_empty();
        assert!(none, "{what} while a batch is locked");
    }

    pub(super) fn assert_locked(&self, index: usize, what: &str) {
        assert_eq!(
            self.locked.get(),
            Some(index),
            "{what} a folio that is not locked"
        );
    }

    fn assert_off_list(&self, index: usize, what: &str) {
        let place = self.places.borrow()[&index];
        assert_eq!(
            place,
            Place::OffList,
            "{what} a folio that is not off the list"
        );
    }

    pub(super) fn trylock(&self, index: usize) -> bool {
        self.assert_none_together("one more is locked");
        self.trylock_beside(index)
    }

    /// The same, beside those of a batch.
    pub(super) fn trylock_beside(&self, index: usize) -> bool {
        assert_eq!(self.locked.get(), None, "two folios are locked");
        let locked = self.folio(index).trylock();
        if locked {
            self.locked.set(Some(index));
        }
        locked
    }

    /// One of those that are locked together is locked by itself.
    pub(super) fn single_out(&self, index: usize) {
        self.assert_not_locked("one of a batch is taken");
        let mut together = self.together.borrow_mut();
        together.retain(|other| other.index != index);
        self.locked.set(Some(index));
        let unmapped = self.batches.unmapped.get();
        self.unmapped.set(unmapped.then_some(index));
    }

    /// A folio that is locked is one of a batch from here on.
    pub(super) fn has_together(&self, one: Member) {
        self.assert_locked(one.index, "a batch has");
        self.locked.set(None);
        let mut together = self.together.borrow_mut();
        let at = together.partition_point(|other| other.address() <= one.address());
        together.insert(at, one);
    }

    pub(super) fn unlock(&self, index: usize) {
        self.assert_locked(index, "unlocking");
        self.locked.set(None);
        self.folio(index).unlock();
    }

    /// Takes the next folio off the list.
    pub(super) fn take(&self) -> Option<usize> {
        self.assert_none_together("reclaim goes on");
        self.take_beside()
    }

    /// The same, beside those of a batch.
    pub(super) fn take_beside(&self) -> Option<usize> {
        self.assert_not_locked("reclaim goes on");
        let folio = self.list.borrow_mut().pop_front()?;
        self.unmapped.set(None);
        self.places.borrow_mut().insert(folio, Place::OffList);
        Some(folio)
    }

    /// Waits for the writeback of a folio that was taken off the list, which is the next one then.
    ///
    /// # Panics
    ///
    /// If another one is off the list, and so waits for this, too.
    pub(super) fn wait_for_writeback(&self, index: usize) {
        self.put_on(index);
        self.wait_on_list(index);
    }

    /// The same, of a folio that is on the list again.
    pub(super) fn wait_on_list(&self, index: usize) {
        self.assert_none_locked("waiting for writeback");
        let places = self.places.borrow();
        assert!(
            !places.values().any(|&place| place == Place::OffList),
            "waiting for writeback while a folio waits for a flush"
        );
        self.folio(index).written_out();
    }

    /// A folio that is not locked goes where it ends.
    pub(super) fn end(&self, index: usize, fate: Fate) {
        self.assert_off_list(index, "putting back");
        assert_ne!(self.locked.get(), Some(index), "a locked folio is put back");
        self.places.borrow_mut().insert(index, Place::Ended(fate));
        if matches!(fate, Fate::Kept | Fate::Activated) {
            self.back.borrow_mut().push(index);
            if self.batches.are_on() {
                self.note(Event::Back(index));
            }
        }
    }

    /// A folio that is locked goes where it ends. One that this pass has unmapped, and puts back, is
    /// flushed for before: nobody who gets its lock then would know that a CPU may write to it.
    pub(super) fn end_locked(&self, index: usize, fate: Fate) {
        if matches!(fate, Fate::Kept | Fate::Activated) {
            self.flush_for_unmapped(index);
        }
        self.unlock(index);
        self.end(index, fate);
    }

    /// Flushes, if this pass has unmapped the folio.
    pub(super) fn flush_for_unmapped(&self, index: usize) {
        if self.unmapped.take() == Some(index) {
            self.deferred.flush_dirty(&self.machine.cpus);
        }
    }

    pub(super) fn activate(&self, index: usize) {
        let (folio, nr) = (self.folio(index), u64::from(self.folio(index).nr()));
        self.assert_locked(index, "activating");
        if folio.test(Flag::Mlocked) {
            self.machine.free_swap(index);
            return self.end_locked(index, Fate::Kept);
        }
        self.count(|stat| stat.nr_activate += nr);
        self.charge(&[index], |of, nr| of.activated += nr);
        self.end_locked(index, Fate::Activated);
    }

    pub(super) fn unmap_failed(&self, index: usize) {
        let nr = u64::from(self.folio(index).nr());
        self.count(|stat| stat.nr_unmap_fail += nr);
        self.activate(index);
    }
}

/// The port's implementation, of one batch.
pub struct Port<'l, 'm>(pub(super) &'l List<'m>);

impl Port<'_, '_> {
    /// Locks a folio that was taken off the list, unless it is locked.
    pub(super) fn retry(&self, folio: &Name) -> bool {
        self.0.assert_off_list(folio.0, "locking");
        self.0.note(Event::Retried(folio.0));
        self.0.happens(folio.0, Window::Retried);
        self.0.trylock(folio.0)
    }
}

// SAFETY: A list is a task here, which has one batch at a time. The answers are the model's.
unsafe impl FolioList for Port<'_, '_> {
    type Folio = Name;
    type Mapping = Mapping;

    fn try_to_unmap_flush_dirty(&self) {
        self.0.assert_none_locked("a flush");
        self.0.deferred.flush_dirty(&self.0.machine.cpus);
        self.0.note(Event::Flushed(self.0.waiting.borrow().len()));
    }

    fn next_waiting(&self, _: &AfterFlush) -> Option<Name> {
        self.0.waiting.borrow_mut().pop_front().map(Name)
    }

    fn folio_nr_pages(&self, folio: &Name) -> NonZero<u32> {
        NonZero::new(self.0.folio(folio.0).nr()).expect("a folio has pages")
    }

    fn folio_trylock(&self, folio: &Name, _: &AfterFlush) -> bool {
        self.retry(folio)
    }

    fn folio_contain_hwpoisoned_page(&self, folio: &Name) -> bool {
        self.0.folio(folio.0).test(Flag::Poisoned)
    }

    fn folio_mapped(&self, folio: &Name) -> bool {
        self.0.machine.mapped(folio.0)
    }

    fn folio_maybe_dma_pinned(&self, folio: &Name) -> bool {
        self.0.folio(folio.0).core.anon.maybe_dma_pinned()
    }

    fn folio_evictable(&self, folio: &Name) -> bool {
        self.0.folio(folio.0).is_evictable()
    }

    fn folio_test_writeback(&self, folio: &Name) -> bool {
        self.0.folio(folio.0).test(Flag::Writeback)
    }

    fn no_other_references(&self, folio: &Name) -> bool {
        self.0.no_other_references(folio.0)
    }

    fn folio_mapping(&self, folio: &Name) -> Option<Mapping> {
        self.0.assert_locked(folio.0, "asking for the mapping of");
        self.0.folio(folio.0).mapping()
    }

    unsafe fn pageout(&self, folio: Name, mapping: Mapping) {
        self.0.assert_off_list(folio.0, "pageout of");
        self.0.note(Event::PagedOut(folio.0));
        self.0.finish_waiting(folio.0, mapping);
    }

    unsafe fn keep(&self, folio: Name) {
        self.0.end(folio.0, Fate::Kept);
    }

    unsafe fn keep_locked(&self, folio: Name) {
        self.0.end_locked(folio.0, Fate::Kept);
    }

    unsafe fn activate_locked(&self, folio: Name) {
        self.0.activate(folio.0);
    }

    unsafe fn unmap_failed_locked(&self, folio: Name) {
        self.0.unmap_failed(folio.0);
    }
}
