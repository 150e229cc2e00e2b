// SPDX-License-Identifier: GPL-2.0

//! The port of reclaim: one call of `shrink_folio_list()`, its list, its counters, its deferred
//! flushes.
//!
//! | here                         | in 7.3, mm/vmscan.c                                        |
//! |------------------------------|------------------------------------------------------------|
//! | `next_dirty()`               | [`super::pageout`]                                         |
//! | `keep()`, `keep_locked()`    | its labels; the flush in front of the unlock is of         |
//! |                              | patches/fixes/                                             |
//! | `activate_locked()`          | its label; swap is never full                              |
//! | `unmap_failed_locked()`      | what it does where `folio_mapped()` is left                |
//! | [`List::shrink`]             | `shrink_folio_list()`, by this series, with `rust`         |
//! | [`List::finish`]             | its end: the last flush, the putback by its caller         |
//! | the rest                     | [`crate::reclaim`], [`crate::tlb`]                         |
//!
//! The model checks what the methods ask of who calls them: a folio that is unlocked, put back or
//! written out though it may not be panics, as do two locks at once, a lock across a flush, a folio
//! that waits for the writeback of another, and one that is in nobody's hands in the end.
//!
//! Left out: demotion, `folio_alloc_swap()` (anonymous folios have their slots), lazyfree,
//! references beyond a flag, throttling, memcg's counters.

#![deny(unsafe_code)]

use super::{
    pageout::Dirty,
    report::{
        Event,
        Fate,
        Report,
        Stat,
        Window, //
    },
    Flag,
    Folio,
    Machine,
    Mapping, //
};
use crate::tlb::Deferred;
use mm_batch::{
    dirty_flush::{
        shrink_folios,
        Left, //
    },
    reclaim::FolioList,
    unmap::FlushOwed, //
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

/// What happens to a folio there.
type Meanwhile<'m> = Box<dyn Fn(usize, Window) + 'm>;

/// The list, of one task.
pub struct List<'m> {
    pub(super) machine: &'m Machine,
    pub(super) deferred: Deferred,
    pub(super) stat: Cell<Stat>,
    pub(super) list: RefCell<VecDeque<usize>>,
    pub(super) free_folios: RefCell<Vec<usize>>,
    pub(super) under_writeback: Cell<Option<usize>>,
    /// Who was unmapped by this pass, if the one that was looked at last was.
    pub(super) unmapped: Cell<Option<usize>>,
    places: RefCell<BTreeMap<usize, Place>>,
    locked: Cell<Option<usize>>,
    events: RefCell<Vec<Event>>,
    meanwhile: Option<Meanwhile<'m>>,
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
            under_writeback: Cell::new(None),
            unmapped: Cell::new(None),
            places: RefCell::default(),
            locked: Cell::new(None),
            events: RefCell::default(),
            meanwhile: None,
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

    /// Puts a folio on the list, as its first.
    pub(super) fn add(&self, folio: usize) {
        let was = self.places.borrow_mut().insert(folio, Place::OnList);
        assert_eq!(was, None, "folio {folio} comes to the list twice");
        self.list.borrow_mut().push_front(folio);
    }

    /// The port: of one run at a time.
    pub fn port(&mut self) -> Port<'_, 'm> {
        Port(self)
    }

    /// Runs `dirty_flush` on it, and then, if it says so, C on what is left; and ends it.
    pub fn shrink(mut self) -> Report {
        if let Left::Unbatched { taken_back } = shrink_folios(self.port()) {
            self.note(Event::TakenBack(taken_back));
            assert_eq!(self.shrink_folios(Dirty::Write), None);
        }
        self.finish()
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

    fn happens(&self, index: usize, window: Window) {
        if let Some(happens) = &self.meanwhile {
            happens(index, window);
        }
    }

    pub(super) fn assert_none_locked(&self, what: &str) {
        let locked = self.locked.get();
        assert_eq!(locked, None, "{what} while a folio is locked");
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
        assert_eq!(self.locked.get(), None, "two folios are locked");
        let locked = self.folio(index).trylock();
        if locked {
            self.locked.set(Some(index));
        }
        locked
    }

    pub(super) fn unlock(&self, index: usize) {
        self.assert_locked(index, "unlocking");
        self.locked.set(None);
        self.folio(index).unlock();
    }

    /// Takes the next folio off the list.
    pub(super) fn take(&self) -> Option<usize> {
        self.assert_none_locked("reclaim goes on");
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
        self.assert_none_locked("waiting for writeback");
        let mut places = self.places.borrow_mut();
        places.insert(index, Place::OnList);
        assert!(
            !places.values().any(|&place| place == Place::OffList),
            "waiting for writeback while a folio waits for a flush"
        );
        self.folio(index).written_out();
        self.list.borrow_mut().push_front(index);
    }

    /// A folio that is not locked goes where it ends.
    pub(super) fn end(&self, index: usize, fate: Fate) {
        self.assert_off_list(index, "putting back");
        assert_ne!(self.locked.get(), Some(index), "a locked folio is put back");
        self.places.borrow_mut().insert(index, Place::Ended(fate));
    }

    /// A folio that is locked goes where it ends. One that this pass has unmapped, and puts back, is
    /// flushed for before: nobody who gets its lock then would know that a CPU may write to it.
    pub(super) fn end_locked(&self, index: usize, fate: Fate) {
        if self.unmapped.take() == Some(index) && matches!(fate, Fate::Kept | Fate::Activated) {
            self.deferred.flush_dirty(&self.machine.cpus);
        }
        self.unlock(index);
        self.end(index, fate);
    }

    pub(super) fn activate(&self, index: usize) {
        let (folio, nr) = (self.folio(index), u64::from(self.folio(index).nr()));
        self.assert_locked(index, "activating");
        if folio.test(Flag::Mlocked) {
            self.machine.free_swap(index);
            return self.end_locked(index, Fate::Kept);
        }
        self.count(|stat| stat.nr_activate += nr);
        self.end_locked(index, Fate::Activated);
    }

    pub(super) fn unmap_failed(&self, index: usize) {
        let nr = u64::from(self.folio(index).nr());
        self.count(|stat| stat.nr_unmap_fail += nr);
        self.activate(index);
    }
}

/// The port's implementation.
pub struct Port<'l, 'm>(&'l List<'m>);

#[allow(unsafe_code)]
// SAFETY: A list is a task here, and has one port at a time. The answers are the model's.
unsafe impl FolioList for Port<'_, '_> {
    type Folio = usize;
    type Mapping = Mapping;

    unsafe fn next_dirty(&self, waiting: bool) -> Option<usize> {
        let folio = self.0.shrink_folios(if waiting {
            Dirty::HandOut
        } else {
            Dirty::HandOutOwed
        });
        let owed = self.0.deferred.writable();
        self.0
            .note(folio.map_or(Event::Exhausted, |folio| Event::Given(folio, owed)));
        folio
    }

    fn flush_owed(&self) -> Option<FlushOwed> {
        // SAFETY: It is noted there.
        let noted = || unsafe { FlushOwed::noted() };
        self.0.deferred.writable().then(noted)
    }

    unsafe fn try_to_unmap_flush_dirty(&self, nr_pages: u32, owed: Option<FlushOwed>) {
        self.0.assert_none_locked("a flush");
        let told = owed.is_some() || !self.0.deferred.writable();
        assert!(nr_pages == 0 || told, "what a batch owes was lost");
        self.0.deferred.flush_dirty(&self.0.machine.cpus);
        self.0.note(Event::Flushed(nr_pages));
    }

    fn folio_nr_pages(&self, folio: usize) -> NonZero<u32> {
        NonZero::new(self.0.folio(folio).nr()).expect("a folio has pages")
    }

    unsafe fn folio_unlock(&self, folio: usize) {
        assert!(
            self.0.may_wait(folio) || !self.0.deferred.pending(),
            "a folio is unlocked before it is flushed for"
        );
        self.0.unlock(folio);
        self.0.note(Event::Unlocked(folio));
        self.0.happens(folio, Window::Unlocked);
    }

    unsafe fn folio_trylock(&self, folio: usize) -> bool {
        self.0.assert_off_list(folio, "locking");
        self.0.note(Event::Retried(folio));
        self.0.happens(folio, Window::Retried);
        self.0.trylock(folio)
    }

    fn folio_contain_hwpoisoned_page(&self, folio: usize) -> bool {
        self.0.folio(folio).test(Flag::Poisoned)
    }

    fn folio_mapped(&self, folio: usize) -> bool {
        self.0.machine.mapped(folio)
    }

    fn folio_maybe_dma_pinned(&self, folio: usize) -> bool {
        self.0.folio(folio).core.anon.maybe_dma_pinned()
    }

    fn folio_evictable(&self, folio: usize) -> bool {
        self.0.folio(folio).is_evictable()
    }

    fn folio_test_writeback(&self, folio: usize) -> bool {
        self.0.folio(folio).test(Flag::Writeback)
    }

    fn no_other_references(&self, folio: usize) -> bool {
        self.0.no_other_references(folio)
    }

    fn folio_goes_to_swap(&self, folio: usize) -> bool {
        let folio = self.0.folio(folio);
        folio.core.is_swapbacked() && (!folio.anon || folio.mapping() == Some(Mapping::Swap))
    }

    fn folio_mapping(&self, folio: usize) -> Option<Mapping> {
        self.0.assert_locked(folio, "asking for the mapping of");
        self.0.folio(folio).mapping()
    }

    unsafe fn pageout(&self, folio: usize, mapping: Mapping) {
        self.0.assert_off_list(folio, "pageout of");
        self.0.note(Event::PagedOut(folio));
        self.0.pageout(folio, mapping);
    }

    unsafe fn keep(&self, folio: usize) {
        self.0.end(folio, Fate::Kept);
    }

    unsafe fn keep_locked(&self, folio: usize) {
        self.0.end_locked(folio, Fate::Kept);
    }

    unsafe fn activate_locked(&self, folio: usize) {
        self.0.activate(folio);
    }

    unsafe fn unmap_failed_locked(&self, folio: usize) {
        self.0.unmap_failed(folio);
    }
}
