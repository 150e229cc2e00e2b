// SPDX-License-Identifier: GPL-2.0

//! A dirty folio on its way from being unmapped to being written out.

use super::{
    FolioList,
    FolioLock,
    Named,
    NothingOwed, //
};
use crate::unmap::FlushOwed;
use core::{
    mem::ManuallyDrop,
    num::NonZero, //
};

/// A folio that is locked. Dropped, it is kept.
///
/// # Invariants
///
/// `folio` is in these hands, and locked by this task, which `lock` stands for.
#[derive(Debug)]
pub(super) struct Held<'r, L: FolioList> {
    list: Named<'r, L>,
    folio: L::Folio,
    _lock: FolioLock<'r>,
}

impl<'r, L: FolioList> Held<'r, L> {
    /// # Safety
    ///
    /// `folio` is in the caller's hands, who gives it to this, and locked by this task.
    #[allow(unsafe_code)]
    #[inline]
    pub(super) unsafe fn new(list: Named<'r, L>, folio: L::Folio, lock: FolioLock<'r>) -> Self {
        // INVARIANT: By the function's requirement.
        Self {
            list,
            folio,
            _lock: lock,
        }
    }

    /// Gives it to one of the list's methods, each of which unlocks it.
    #[inline]
    fn end(self, by: impl FnOnce(&L, L::Folio)) -> FolioLock<'r> {
        let held = ManuallyDrop::new(self);
        by(&held.list, held.folio);
        // INVARIANT: It was unlocked just now; its own is not used any more.
        FolioLock::free()
    }

    #[allow(unsafe_code)]
    #[inline]
    fn unlock(self) -> (Unlocked<'r, L>, FolioLock<'r>) {
        let (list, folio) = (self.list, self.folio);
        // SAFETY: By the invariants, it is locked.
        let lock = self.end(|list, folio| unsafe { list.folio_unlock(folio) });
        // INVARIANT: By ours, it was in these hands, and it is not locked any more.
        (Unlocked { list, folio }, lock)
    }

    /// # Safety
    ///
    /// It is of `mapping`, and unmapped; no CPU has a writable translation of it.
    #[allow(unsafe_code)]
    #[inline]
    unsafe fn pageout(self, mapping: L::Mapping) -> FolioLock<'r> {
        // SAFETY: By the invariants and by the method's requirement.
        self.end(|list, folio| unsafe { list.pageout(folio, mapping) })
    }
}

impl<L: FolioList> Drop for Held<'_, L> {
    #[allow(unsafe_code)]
    #[inline]
    fn drop(&mut self) {
        // SAFETY: By the invariants.
        unsafe { self.list.keep_locked(self.folio) }
    }
}

/// A folio that is not locked. Dropped, it is kept.
///
/// # Invariants
///
/// `folio` is in these hands, and not locked by this task.
#[derive(Debug)]
pub(super) struct Unlocked<'r, L: FolioList> {
    list: Named<'r, L>,
    folio: L::Folio,
}

impl<'r, L: FolioList> Unlocked<'r, L> {
    /// # Safety
    ///
    /// `folio` came from [`Self::into_folio`] of the same list, and makes one.
    #[allow(unsafe_code)]
    #[inline]
    pub(super) unsafe fn again(list: Named<'r, L>, folio: L::Folio) -> Self {
        // INVARIANT: By the function's requirement.
        Self { list, folio }
    }

    /// The folio, which nobody keeps from here on.
    #[inline]
    fn into_folio(self) -> L::Folio {
        ManuallyDrop::new(self).folio
    }

    #[allow(unsafe_code)]
    #[inline]
    fn lock(self, lock: FolioLock<'r>) -> Result<Held<'r, L>, FolioLock<'r>> {
        // SAFETY: By the invariants; that no other is locked says `lock`. It goes on as `Held`.
        if unsafe { self.list.folio_trylock(self.folio) } {
            let list = self.list;
            // SAFETY: It was in these hands, from which it is taken, and is locked since just now.
            Ok(unsafe { Held::new(list, self.into_folio(), lock) })
        } else {
            Err(lock)
        }
    }
}

impl<L: FolioList> Drop for Unlocked<'_, L> {
    #[allow(unsafe_code)]
    #[inline]
    fn drop(&mut self) {
        // SAFETY: By the invariants.
        unsafe { self.list.keep(self.folio) }
    }
}

/// A dirty folio that was just unmapped, and is locked; and what is owed since then, for it or for
/// one before it.
#[derive(Debug)]
#[must_use = "a folio that is dropped is kept"]
pub struct Unmapped<'r, L: FolioList> {
    held: Held<'r, L>,
    owed: Option<FlushOwed>,
}

impl<'r, L: FolioList> Unmapped<'r, L> {
    #[inline]
    pub(super) fn new(held: Held<'r, L>, owed: Option<FlushOwed>) -> Self {
        Self { held, owed }
    }

    /// Whether a flush is owed.
    #[inline]
    pub fn flush_owed(&self) -> bool {
        self.owed.is_some()
    }

    /// Unlocks it, to wait for the flush.
    #[inline]
    pub fn wait(self) -> (Waiting<'r, L>, FolioLock<'r>) {
        let (unlocked, lock) = self.held.unlock();
        let owed = self.owed;
        (Waiting { unlocked, owed }, lock)
    }
}

/// A folio that was dirty, and waits, unlocked, for the flush: to be collected, and for nothing
/// else. Dropped, it is kept.
///
/// It is anonymous, or nothing was owed for it any more when it was unlocked. While it waits it is
/// on no list, and isolated. Anybody may lock it, fault it in, pin it or take it away from its
/// mapping.
#[derive(Debug)]
#[must_use = "a folio that is dropped is kept"]
pub struct Waiting<'r, L: FolioList> {
    unlocked: Unlocked<'r, L>,
    owed: Option<FlushOwed>,
}

impl<L: FolioList> Waiting<'_, L> {
    /// Its pages.
    #[inline]
    pub fn nr_pages(&self) -> NonZero<u32> {
        self.unlocked.list.folio_nr_pages(self.unlocked.folio)
    }

    /// The folio, which nobody keeps from here on, and what is owed.
    #[inline]
    pub(super) fn into_parts(self) -> (L::Folio, Option<FlushOwed>) {
        (self.unlocked.into_folio(), self.owed)
    }
}

/// A folio that has waited: what it owed is paid. Dropped, it is kept.
///
/// # Invariants
///
/// A flush was done since it was unmapped.
#[derive(Debug)]
#[must_use = "a folio that is dropped is kept"]
pub struct Settled<'r, L: FolioList>(Unlocked<'r, L>);

impl<'r, L: FolioList> Settled<'r, L> {
    /// Of a batch that was flushed for, as which `_paid` is there.
    #[inline]
    pub(super) fn new(unlocked: Unlocked<'r, L>, _paid: &NothingOwed<'_, 'r>) -> Self {
        // INVARIANT: So it was.
        Self(unlocked)
    }

    /// Locks it again. If somebody else has, it is kept.
    #[inline]
    pub fn lock(self, lock: FolioLock<'r>) -> Result<Locked<'r, L>, FolioLock<'r>> {
        self.0.lock(lock).map(Locked)
    }
}

/// A folio that is locked again, of which nothing is known.
#[derive(Debug)]
#[must_use = "a folio that is dropped is kept"]
pub struct Locked<'r, L: FolioList>(Held<'r, L>);

/// That a folio was put back, which was not any more what it had been.
#[derive(Debug)]
pub struct PutBack<'r> {
    /// The right to lock another one.
    pub lock: FolioLock<'r>,
    /// Its pages, if that was as a fault had mapped it again, else 0.
    pub mapped: u32,
}

/// What became of a folio while it waited: what `shrink_folio_list()` would have done with it.
enum Now<M> {
    /// As it was.
    Same(M),
    /// A fault has mapped it.
    Mapped,
    /// Somebody has pinned it, or it is not to be reclaimed any more.
    InUse,
    /// It is not for now: poisoned, being written, looked at, or of nothing any more.
    Busy,
}

impl<'r, L: FolioList> Locked<'r, L> {
    /// Whether it is still what it was: unmapped, not pinned, evictable, of nobody but its mapping,
    /// and to go to swap. Else it is put back, as unbatched reclaim would: activated if it is in
    /// use, kept if not.
    ///
    /// References are counted before anybody asks whether it is dirty (`pageout()`), as who has one
    /// may make it dirty: one that is not there is not taken any more. A folio that was taken from
    /// its mapping has references of the mapping missing, and is kept; the last one is dropped
    /// behind the flush at the end of the list, and frees it.
    #[inline]
    pub fn revalidate(self) -> Result<Revalidated<'r, L>, PutBack<'r>> {
        let (lock, mapped) = match self.now() {
            Now::Same(mapping) => {
                return Ok(Revalidated {
                    // INVARIANT: It was asked just now, and is locked.
                    held: self.0,
                    mapping,
                });
            }
            Now::Mapped => {
                let nr_pages = self.0.list.folio_nr_pages(self.0.folio).get();
                (unmap_failed(self.0), nr_pages)
            }
            Now::InUse => (activate(self.0), 0),
            Now::Busy => (keep(self.0), 0),
        };
        Err(PutBack { lock, mapped })
    }

    #[inline]
    fn now(&self) -> Now<L::Mapping> {
        let (list, folio) = (self.0.list, self.0.folio);
        if list.folio_contain_hwpoisoned_page(folio) {
            return Now::Busy;
        }
        if list.folio_mapped(folio) {
            return Now::Mapped;
        }
        if list.folio_maybe_dma_pinned(folio) || !list.folio_evictable(folio) {
            return Now::InUse;
        }
        if list.folio_test_writeback(folio)
            || !list.no_other_references(folio)
            || !list.folio_goes_to_swap(folio)
        {
            return Now::Busy;
        }
        match list.folio_mapping(folio) {
            Some(mapping) => Now::Same(mapping),
            None => Now::Busy,
        }
    }
}

/// A folio that is locked, and what it was when it was unmapped, or clean.
///
/// # Invariants
///
/// It is unmapped, and of `mapping`.
#[derive(Debug)]
#[must_use = "a folio that is dropped is kept"]
pub struct Revalidated<'r, L: FolioList> {
    held: Held<'r, L>,
    mapping: L::Mapping,
}

impl<'r, L: FolioList> Revalidated<'r, L> {
    /// Writes it out, or frees it, if it was written out meanwhile.
    #[allow(unsafe_code)]
    #[inline]
    pub fn pageout(self, _owed: &NothingOwed<'_, 'r>) -> FolioLock<'r> {
        // SAFETY: By the invariants. No flush is owed, and who unmaps a folio that is mapped again
        // flushes: see "Why it is sound to let go of the lock".
        unsafe { self.held.pageout(self.mapping) }
    }
}

#[allow(unsafe_code)]
#[inline]
fn keep<L: FolioList>(held: Held<'_, L>) -> FolioLock<'_> {
    // SAFETY: By the invariants of `Held`.
    held.end(|list, folio| unsafe { list.keep_locked(folio) })
}

#[allow(unsafe_code)]
#[inline]
fn activate<L: FolioList>(held: Held<'_, L>) -> FolioLock<'_> {
    // SAFETY: By the invariants of `Held`.
    held.end(|list, folio| unsafe { list.activate_locked(folio) })
}

#[allow(unsafe_code)]
#[inline]
fn unmap_failed<L: FolioList>(held: Held<'_, L>) -> FolioLock<'_> {
    // SAFETY: By the invariants of `Held`.
    held.end(|list, folio| unsafe { list.unmap_failed_locked(folio) })
}
