// SPDX-License-Identifier: GPL-2.0

//! What `shrink_folio_list()` does with one folio.
//!
//! | here                         | in 7.3, mm/vmscan.c                                         |
//! |------------------------------|-------------------------------------------------------------|
//! | `List::shrink_folios`        | the loop                                                    |
//! | `List::may_wait`             | `shrink_may_wait()`, by this series                         |
//! | `List::wait`                 | `shrink_wait()`, by this series                             |
//! | `List::write_at_once`        | what 7.3 does with a dirty folio that it has unmapped       |
//! | `List::pageout`              | `pageout()`, and what becomes of its result                 |
//! | `List::leaves_mapped`        | `shrink_leave_mapped()`, of patches/fixes/                  |
//! | `List::unmapped`             | `unmapped` of `struct shrink_ctx`, by this series           |
//! | `remove_mapping()`           | `__remove_mapping()`                                        |
//! | `List::free_batch`           | `free_folios`, each time that it is full, and in the end    |
//! | `split()`                    | `shmem_writeout()`, mm/shmem.c, without contiguous swap     |
//!
//! What is written is the content at this moment, and never again: `swap_writeout()` reads it.
//!
//! Left out: as of [`super::list`]; I/O (one is begun, and does not end), `may_enter_fs()` and
//! `may_writepage`, by which a dirty folio is put back as one that is pinned is.

use super::{
    list::List,
    report::{
        Event,
        Fate,
        Window, //
    },
    Flag,
    Mapping,
    Write, //
};

/// C: `FOLIO_BATCH_SIZE`, include/linux/folio_batch.h, 7.3.
pub const FOLIO_BATCH_SIZE: usize = 31;
/// With so many folios a batch is full. C: `SWAP_CLUSTER_MAX`, include/linux/swap.h, 7.3.
pub const WAITING_FOLIOS: usize = 32;
/// With so many pages, as well. C: `SHRINK_WAITING_PAGES`, mm/vmscan.c, by this series.
pub const WAITING_PAGES: u32 = 512;

/// What comes of looking at a folio.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Looked {
    /// It has its end.
    Ended,
    /// Its writeback is to be waited for. It is not locked.
    UnderWriteback,
    /// It is dirty, and locked.
    Dirty,
}

impl List<'_> {
    /// Deals with each folio, also with those that come to the list meanwhile.
    pub(super) fn shrink_folios(&self) {
        while let Some(index) = self.take() {
            match self.shrink_to_dirty(index) {
                Looked::Ended => (),
                Looked::UnderWriteback => {
                    // Nothing that waits for a flush waits for this, too.
                    self.shrink_waiting();
                    self.wait_for_writeback(index);
                }
                Looked::Dirty => self.wait_or_write(index),
            }
        }
        // No anonymous folio is split where it is written: the list stays empty.
        self.shrink_waiting();
    }

    /// Ends with a dirty folio that was unmapped and is locked still, or has it wait for a flush.
    pub(super) fn wait_or_write(&self, index: usize) {
        if self.deferred.writable() && self.may_wait(index) {
            self.wait(index);
        } else {
            self.write_at_once(index);
        }
    }

    /// Unlocks a dirty folio, which waits for a flush.
    fn wait(&self, index: usize) {
        let nr = self.folio(index).nr();
        self.unlock(index);
        self.note(Event::Waits(index));
        self.happens(index, Window::Unlocked);
        self.push_waiting(index, nr);
        self.nr_tried_pages.set(self.nr_tried_pages.get() + nr);
        if self.enough_wait() {
            self.shrink_waiting();
        }
    }

    fn write_at_once(&self, index: usize) {
        self.deferred.flush_dirty(&self.machine.cpus);
        match self.folio(index).mapping() {
            Some(mapping) => {
                self.note(Event::PagedOut(index));
                self.pageout(index, mapping)
            }
            None => self.end_locked(index, Fate::Kept),
        }
    }

    /// Whether it may be unlocked before it is flushed for.
    pub(super) fn may_wait(&self, index: usize) -> bool {
        let folio = self.folio(index);
        self.batched.get()
            && folio.anon
            && folio.nr() < WAITING_PAGES
            && !folio.test(Flag::FlushedFirst)
    }

    /// Looks at a folio that was taken off the list.
    pub(super) fn shrink_to_dirty(&self, index: usize) -> Looked {
        if !self.trylock(index) {
            self.end(index, Fate::Kept);
            return Looked::Ended;
        }
        let ended = self.check(index, false);
        ended.unwrap_or_else(|| self.unmap_to_dirty(index))
    }

    /// The checks in front of references, of a folio that is locked: what comes of it by these, if
    /// they are its end.
    pub(super) fn check(&self, index: usize, again: bool) -> Option<Looked> {
        let (machine, folio) = (self.machine, self.folio(index));
        let nr = u64::from(folio.nr());
        if folio.test(Flag::Poisoned) {
            if nr > 1 {
                self.end_locked(index, Fate::Kept);
            } else {
                // unmap_poisoned_folio() puts no flush off.
                machine.unmap_and_flush(index);
                self.end_locked(index, Fate::Dropped);
                machine.put(index, 1);
            }
            return Some(Looked::Ended);
        }
        if !again {
            self.count(|stat| stat.nr_scanned += nr);
        }
        if !folio.is_evictable() {
            self.activate(index);
            return Some(Looked::Ended);
        }
        let waited_for = folio.test(Flag::WaitedFor);
        let busy = || folio.core.is_dirty() || folio.test(Flag::Writeback) || waited_for;
        // folio_check_dirty_writeback()
        if folio.is_of_file() && !again && busy() {
            self.count(|stat| stat.nr_dirty += nr);
        }
        if waited_for {
            self.unlock(index);
            return Some(Looked::UnderWriteback);
        }
        if folio.test(Flag::Writeback) {
            self.count(|stat| stat.nr_writeback += nr);
            self.activate(index);
            return Some(Looked::Ended);
        }
        None
    }

    /// Puts a folio back that was used: whether it was.
    pub(super) fn keep_referenced(&self, index: usize) -> bool {
        let (folio, nr) = (self.folio(index), u64::from(self.folio(index).nr()));
        let used = folio.test(Flag::Referenced);
        if used {
            self.count(|stat| stat.nr_ref_keep += nr);
            self.end_locked(index, Fate::Kept);
        }
        used
    }

    fn unmap_to_dirty(&self, index: usize) -> Looked {
        if self.keep_referenced(index) {
            return Looked::Ended;
        }
        self.folio(index).alloc_swap();
        self.unmap_placed(index)
    }

    /// What comes behind references and slots.
    pub(super) fn unmap_placed(&self, index: usize) -> Looked {
        let (machine, folio) = (self.machine, self.folio(index));
        let nr = u64::from(folio.nr());
        if self.leaves_mapped(index) {
            self.activate(index);
            return Looked::Ended;
        }
        if machine.mapped(index) {
            let was_lazyfree = folio.is_lazyfree();
            machine.try_to_unmap(index, &self.deferred);
            self.unmapped.set(Some(index));
            if machine.mapped(index) {
                if was_lazyfree && !folio.is_lazyfree() {
                    self.count(|stat| stat.nr_lazyfree_fail += nr);
                }
                self.unmap_failed(index);
                return Looked::Ended;
            }
        }
        if folio.core.anon.maybe_dma_pinned() {
            self.activate(index);
            return Looked::Ended;
        }
        if !folio.core.is_dirty() {
            self.free_clean(index);
            return Looked::Ended;
        }
        if folio.is_of_file() || folio.is_lazyfree() {
            // A folio of a file has become dirty by its PTE.
            self.count(|stat| stat.nr_immediate += nr);
            self.activate(index);
            return Looked::Ended;
        }
        Looked::Dirty
    }

    /// Whether a folio is left to flushers, and mapped: it is counted then.
    pub(super) fn leaves_mapped(&self, index: usize) -> bool {
        let folio = self.folio(index);
        let leaves = folio.is_of_file() && folio.core.is_dirty();
        if leaves {
            self.count(|stat| stat.nr_immediate += u64::from(folio.nr()));
        }
        leaves
    }

    pub(super) fn no_other_references(&self, index: usize) -> bool {
        let folio = self.folio(index);
        let private = i32::from(folio.test(Flag::Private));
        folio.core.ref_count() == 1 + folio.nr() as i32 + private
    }

    /// Ends with a folio that may be written.
    pub(super) fn pageout(&self, index: usize, mapping: Mapping) {
        if !self.write(index, mapping) {
            return;
        }
        self.written(&[index]);
        if self.relock_clean(index) {
            self.free_clean(index);
        }
    }

    /// Writes a folio that may be written, and unlocks it; or ends with it, if it is clean, somebody
    /// has it, or it is refused: whether it was written.
    ///
    /// # Panics
    ///
    /// If it may not be: it is not locked, mapped, or of something else, or a flush is owed.
    pub(super) fn write(&self, index: usize, mapping: Mapping) -> bool {
        let folio = self.folio(index);
        self.assert_locked(index, "pageout of");
        assert!(!self.machine.mapped(index), "pageout of a mapped folio");
        assert!(!self.deferred.writable(), "pageout while a flush is owed");
        assert_eq!(
            folio.mapping(),
            Some(mapping),
            "pageout of a folio of another mapping"
        );
        // Buffers are no reference that it allows for.
        if folio.core.ref_count() != 1 + folio.nr() as i32 {
            self.end_locked(index, Fate::Kept);
            return false;
        }
        if !folio.core.test_clear_dirty() {
            self.free_clean(index);
            return false;
        }
        let begun = match folio.write {
            Write::Refused => return self.write_refused(index),
            Write::Split if !self.split(index) => return self.write_refused(index),
            Write::Begun => true,
            Write::Done | Write::Failed | Write::Split => false,
        };
        if folio.write == Write::Failed {
            folio.core.mark_dirty();
        } else {
            folio.store();
        }
        if begun {
            folio.set(Flag::Writeback);
        }
        self.unlock(index);
        self.note(Event::Written(index));
        true
    }

    /// They count as written.
    pub(super) fn written(&self, folios: &[usize]) {
        let nr = |&index: &usize| u64::from(self.folio(index).nr());
        let all: u64 = folios.iter().map(nr).sum();
        self.count(|stat| stat.vmscan_write += all);
        self.charge(folios, |of, nr| of.written += nr);
    }

    /// Locks a folio that is clean and was unlocked, or keeps it.
    fn relock_clean(&self, index: usize) -> bool {
        let folio = self.folio(index);
        let busy = || folio.test(Flag::Writeback) || folio.core.is_dirty();
        if busy() || !self.trylock(index) {
            self.end(index, Fate::Kept);
            return false;
        }
        if busy() {
            self.end_locked(index, Fate::Kept);
            return false;
        }
        true
    }

    fn write_refused(&self, index: usize) -> bool {
        self.folio(index).core.mark_dirty();
        self.activate(index);
        false
    }

    /// Splits a folio that nobody else has; its other pages come to the list.
    fn split(&self, index: usize) -> bool {
        let (folio, nr) = (self.folio(index), self.folio(index).nr());
        if !folio.core.ref_freeze(1 + nr as i32) {
            return false;
        }
        folio.set_nr(1);
        folio.core.ref_unfreeze(2);
        folio.tails.clone().for_each(|tail| self.add_split(tail));
        // They make their own way, and are scanned then.
        self.count(|stat| stat.nr_scanned -= u64::from(nr - 1));
        true
    }

    /// Frees a folio that is clean or given up, and locked, or keeps it.
    pub(super) fn free_clean(&self, index: usize) {
        let (folio, nr) = (self.folio(index), self.folio(index).nr());
        // filemap_release_folio()
        if folio.test_and_clear(Flag::Private) {
            self.machine.put(index, 1);
        }
        let lazyfree = folio.is_lazyfree();
        let removed = if lazyfree {
            // Nobody can read it any more, be it dirty or not.
            folio.core.ref_freeze(1)
        } else {
            folio.mapping().is_some() && self.remove_mapping(index)
        };
        if !removed {
            return self.end_locked(index, Fate::Kept);
        }
        if lazyfree {
            self.charge(&[index], |of, nr| of.lazyfreed += nr);
        }
        self.end_locked(index, Fate::Reclaimed);
        self.reclaimed(index, nr);
    }

    /// It is to be freed, with others.
    ///
    /// # Panics
    ///
    /// If a CPU may write to it.
    pub(super) fn reclaimed(&self, index: usize, nr: u32) {
        let owed = self.deferred.writable_to(index);
        assert!(!owed, "a folio is freed while a CPU may write to it");
        self.count(|stat| stat.nr_reclaimed += u64::from(nr));
        self.free_folios.borrow_mut().push(index);
        if self.free_folios.borrow().len() == FOLIO_BATCH_SIZE {
            self.free_batch();
        }
    }

    fn remove_mapping(&self, index: usize) -> bool {
        let frozen = self.freeze(index);
        if frozen {
            self.uncache(&[index]);
        }
        frozen
    }

    /// Takes the last reference of a folio that is clean.
    pub(super) fn freeze(&self, index: usize) -> bool {
        let folio = self.folio(index);
        let refs = 1 + folio.nr() as i32;
        if !folio.core.ref_freeze(refs) {
            return false;
        }
        if folio.core.is_dirty() {
            folio.core.ref_unfreeze(refs);
            return false;
        }
        true
    }

    /// Folios that are frozen leave the caches.
    pub(super) fn uncache(&self, folios: &[usize]) {
        self.charge(folios, |of, nr| of.uncached += nr);
        for &index in folios {
            self.folio(index).set_mapping(None);
        }
    }

    /// Flushes, and frees what was reclaimed so far.
    pub(super) fn free_batch(&self) {
        self.assert_not_locked("folios are freed");
        self.charge(&self.free_folios.borrow(), |of, nr| of.uncharged += nr);
        self.deferred.flush(&self.machine.cpus);
        for index in self.free_folios.take() {
            self.machine.free(index);
        }
    }
}
