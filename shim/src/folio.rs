// SPDX-License-Identifier: GPL-2.0

//! A large folio as far as unmapping goes: its counts, its flags, and who looks at it meanwhile.
//!
//! | here                         | in 7.3                                                       |
//! |------------------------------|--------------------------------------------------------------|
//! | [`Folio::ref_count`]         | `folio_ref_count()`, include/linux/page_ref.h                |
//! | [`Folio::mapcount`]          | `folio_mapcount()`, include/linux/mm.h                       |
//! | [`Folio::extra_refs`]        | their difference under `folio_lock_large_mapcount()`         |
//! | [`Folio::add_rmap`]          | `folio_add_large_mapcount()`, include/linux/rmap.h           |
//! | [`Folio::remove_rmap`]       | `folio_sub_large_mapcount()`, same file                      |
//! | [`Folio::copy_present_ptes`] | `copy_present_ptes()`, mm/memory.c, of another mm            |
//! | [`Folio::zap_present_ptes`]  | `zap_present_folio_ptes()`, same file, and the put behind it |
//! | [`Folio::mark_dirty`]        | `folio_mark_dirty()`, mm/page-writeback.c, down to the flag  |
//! | [`Folio::test_clear_dirty`]  | `folio_test_clear_dirty()`, include/linux/page-flags.h       |
//! | [`Folio::put_refs`]          | `folio_put_refs()`, include/linux/mm.h                       |
//! | [`Folio::ref_freeze`]        | `folio_ref_freeze()`, include/linux/page_ref.h               |
//! | [`Folio::ref_unfreeze`]      | `folio_ref_unfreeze()`, same file                            |
//! | [`Folio::trylock`]           | `folio_trylock()`, include/linux/pagemap.h                   |
//! | [`Folio::lock`]              | `folio_lock()`, same file                                    |
//! | [`Folio::unlock`]            | `folio_unlock()`, mm/filemap.c                               |
//! | [`Folio::hand_out_again`]    | the allocator, which gives the struct to another owner       |
//!
//! Every folio is a large one, of a kernel with transparent huge pages: of a small one, or without
//! `CONFIG_MM_ID`, the mapcount is changed without a lock.
//!
//! Left out: splits, per-page mapcounts, the page cache's references but for the number given. The
//! folio lock is in a word by itself: the kernel has one for all flags, which would be more to explore
//! and no more to find. Whoever unmaps has it; [`crate::unmap`] does not ask.

use crate::{
    anon::Anon,
    lock::BitLock,
    smp,
    swap::Slots,
    sync::{
        atomic::{
            AtomicI32,
            AtomicUsize,
            Ordering::Relaxed, //
        },
        step,
        Mutex,
        MutexGuard, //
    }, //
};
use std::sync::atomic::{
    AtomicUsize as PlainUsize,
    Ordering::SeqCst, //
};

const DIRTY: usize = 1 << 0;
const SWAPBACKED: usize = 1 << 1;

/// One folio.
#[derive(Debug)]
pub struct Folio {
    /// Its first page frame.
    pub pfn: usize,
    /// Its pages.
    pub nr: usize,
    /// What it has if it is anonymous.
    pub anon: Anon,
    /// Its slots, if it is in the swap cache.
    pub swap: Option<Slots>,
    refcount: AtomicI32,
    mapcount: AtomicI32,
    /// The bit spinlock of `folio_lock_large_mapcount()`.
    mapcount_lock: Mutex<()>,
    flags: AtomicUsize,
    lock: BitLock,
    /// How often it was handed out again: outside of loom's memory.
    incarnation: PlainUsize,
    /// Writes that were really made: outside of loom's memory, so never stale.
    written: PlainUsize,
}

impl Folio {
    /// A clean folio of `nr` pages from `pfn` on, with nothing mapped, and one reference, of
    /// whoever unmaps it.
    pub fn new(pfn: usize, nr: usize) -> Self {
        Self {
            pfn,
            nr,
            anon: Anon::new(nr),
            swap: None,
            refcount: AtomicI32::new(1),
            mapcount: AtomicI32::new(0),
            mapcount_lock: Mutex::new(()),
            flags: AtomicUsize::new(0),
            lock: BitLock::new("folio lock"),
            incarnation: PlainUsize::new(0),
            written: PlainUsize::new(0),
        }
    }

    /// The same, swap-backed, and in the swap cache with these slots, for which it is referenced.
    pub fn in_swap_cache(pfn: usize, nr: usize, slots: Slots) -> Self {
        let folio = Self {
            swap: Some(slots),
            ..Self::new(pfn, nr)
        };
        folio.set_swapbacked();
        folio.get(nr as i32);
        folio
    }

    /// Adds mappings, each with its reference: before any thread is started.
    pub fn map(&self, nr: usize) {
        self.mapcount.fetch_add(nr as i32, Relaxed);
        self.refcount.fetch_add(nr as i32, Relaxed);
    }

    /// Adds references, in no order (C: `folio_ref_add()`, include/linux/page_ref.h).
    pub fn get(&self, nr: i32) {
        let count = self.refcount.fetch_add(nr, Relaxed) + nr;
        step!("folio {:#x}: folio_ref_add({nr}): {count}", self.pfn);
    }

    /// Whether a page frame is one of its pages.
    pub fn has(&self, pfn: usize) -> bool {
        (self.pfn..self.pfn + self.nr).contains(&pfn)
    }

    /// References.
    pub fn ref_count(&self) -> i32 {
        let count = self.refcount.load(Relaxed);
        step!("folio {:#x}: folio_ref_count() = {count}", self.pfn);
        count
    }

    /// Mappings.
    pub fn mapcount(&self) -> i32 {
        let count = self.mapcount.load(Relaxed);
        step!("folio {:#x}: folio_mapcount() = {count}", self.pfn);
        count
    }

    /// Adds mappings.
    pub fn add_rmap(&self, nr: i32) {
        let _lock = self.lock_mapcount();
        let now = self.mapcount() + nr;
        self.mapcount.store(now, Relaxed);
        step!("folio {:#x}: {nr} mappings added: {now}", self.pfn);
    }

    /// Takes mappings away.
    ///
    /// # Panics
    ///
    /// If there are not so many.
    pub fn remove_rmap(&self, nr: i32) {
        let _lock = self.lock_mapcount();
        let left = self.mapcount() - nr;
        assert!(left >= 0, "a mapping was removed twice");
        self.mapcount.store(left, Relaxed);
        step!("folio {:#x}: {nr} mappings removed: {left}", self.pfn);
    }

    fn lock_mapcount(&self) -> MutexGuard<'_, ()> {
        self.mapcount_lock
            .lock()
            .expect("a thread of the model panicked")
    }

    /// References beyond one for each mapping, at one moment.
    pub fn extra_refs(&self) -> i32 {
        let _lock = self.lock_mapcount();
        self.ref_count() - self.mapcount()
    }

    /// Another mm that maps it forks: the child gets mappings of `nr` pages.
    ///
    /// The references come without order: `folio_ref_add()` returns nothing.
    pub fn copy_present_ptes(&self, nr: i32) {
        let count = self.refcount.fetch_add(nr, Relaxed) + nr;
        step!("folio {:#x}: folio_ref_add({nr}): {count}", self.pfn);
        self.add_rmap(nr);
    }

    /// Another mm unmaps `nr` pages of it.
    pub fn zap_present_ptes(&self, nr: i32) {
        self.remove_rmap(nr);
        self.put_refs(nr);
    }

    /// A speculative reference: fails on a folio that is being freed.
    pub fn try_get(&self) -> bool {
        let taken = smp::atomic_inc_not_zero(&self.refcount);
        step!("folio {:#x}: folio_try_get() = {taken}", self.pfn);
        taken
    }

    /// Drops references; whoever had them may have left the dirty flag. Whether none is left.
    ///
    /// # Panics
    ///
    /// If there are not so many.
    pub fn put_refs(&self, nr: i32) -> bool {
        let left = smp::atomic_sub_return(nr, &self.refcount);
        step!("folio {:#x}: folio_put_refs({nr}): {left}", self.pfn);
        assert!(left >= 0, "a reference was dropped twice");
        left == 0
    }

    /// Makes `expected` references none, if there are so many: then nobody gets another.
    pub fn ref_freeze(&self, expected: i32) -> bool {
        let was = smp::cmpxchg(&self.refcount, expected, 0);
        step!(
            "folio {:#x}: folio_ref_freeze({expected}), which are {was}",
            self.pfn
        );
        was == expected
    }

    /// Gives a frozen folio its references again.
    ///
    /// # Panics
    ///
    /// If somebody got a reference meanwhile.
    pub fn ref_unfreeze(&self, count: i32) {
        assert_eq!(self.ref_count(), 0, "a frozen folio has references");
        step!("folio {:#x}: folio_ref_unfreeze({count})", self.pfn);
        smp::smp_store_release(&self.refcount, count);
    }

    /// Locks it, if nobody has it locked. Whether it did.
    pub fn trylock(&self) -> bool {
        let locked = self.lock.trylock();
        step!("folio {:#x}: folio_trylock() = {locked}", self.pfn);
        locked
    }

    /// Locks it, and waits for that.
    pub fn lock(&self) {
        self.lock.lock();
        step!("folio {:#x}: folio_lock()", self.pfn);
    }

    /// Unlocks it.
    ///
    /// # Panics
    ///
    /// If it is not locked.
    pub fn unlock(&self) {
        step!("folio {:#x}: folio_unlock()", self.pfn);
        self.lock.unlock();
    }

    /// A folio that nobody has a reference of is somebody else's from now on: clean, with one
    /// reference. A thread that has found it by an old pointer, and does not look
    /// again behind [`try_get`](Self::try_get), now has a reference of what is not its own.
    ///
    /// # Panics
    ///
    /// If somebody has a reference, or has it locked.
    pub fn hand_out_again(&self) {
        assert_eq!(self.ref_count(), 0, "a folio with references is handed out");
        assert!(self.lock.trylock(), "a locked folio is handed out");
        self.lock.unlock();
        self.flags.store(0, Relaxed);
        let now = self.incarnation.fetch_add(1, SeqCst) + 1;
        step!(
            "folio {:#x}: is handed out again, for the {now}. time",
            self.pfn
        );
        smp::smp_store_release(&self.refcount, 1);
    }

    /// How often it was handed out again. What a test compares, and no code can know.
    pub fn incarnation(&self) -> usize {
        self.incarnation.load(SeqCst)
    }

    /// Sets the dirty flag.
    pub fn mark_dirty(&self) {
        self.flags.fetch_or(DIRTY, Relaxed);
        step!("folio {:#x}: folio_mark_dirty()", self.pfn);
    }

    /// The dirty flag.
    pub fn is_dirty(&self) -> bool {
        let dirty = self.flags.load(Relaxed) & DIRTY != 0;
        step!("folio {:#x}: folio_test_dirty() = {dirty}", self.pfn);
        dirty
    }

    /// Clears it, fully ordered, and says what it was.
    pub fn test_clear_dirty(&self) -> bool {
        smp::smp_mb();
        let dirty = self.flags.fetch_and(!DIRTY, Relaxed) & DIRTY != 0;
        step!("folio {:#x}: folio_test_clear_dirty() = {dirty}", self.pfn);
        smp::place_to_switch(&self.flags);
        smp::smp_mb();
        dirty
    }

    /// Makes it swap-backed.
    pub fn set_swapbacked(&self) {
        self.flags.fetch_or(SWAPBACKED, Relaxed);
    }

    /// Makes it one that is discarded, as `lru_lazyfree()` does.
    pub fn clear_swapbacked(&self) {
        self.flags.fetch_and(!SWAPBACKED, Relaxed);
    }

    /// Whether it is swap-backed.
    pub fn is_swapbacked(&self) -> bool {
        self.flags.load(Relaxed) & SWAPBACKED != 0
    }

    /// A write to its content.
    pub fn write(&self) {
        self.written.fetch_add(1, SeqCst);
        step!("folio {:#x}: its content is written", self.pfn);
    }

    /// The writes to its content so far.
    pub fn written(&self) -> usize {
        self.written.load(SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::explore;

    #[test]
    fn a_frozen_folio_is_nobodys() {
        explore(|| {
            let folio = Folio::new(8, 1);
            assert!(!folio.ref_freeze(2));
            assert!(folio.ref_freeze(1));
            assert!(!folio.try_get());
            folio.ref_unfreeze(1);
            assert!(folio.try_get());
            assert_eq!(folio.ref_count(), 2);
        });
    }

    #[test]
    fn a_folio_is_handed_out_again() {
        explore(|| {
            let folio = Folio::new(8, 1);
            folio.mark_dirty();
            assert!(folio.trylock() && !folio.trylock());
            folio.unlock();
            assert!(folio.put_refs(1));
            folio.hand_out_again();
            assert_eq!((folio.incarnation(), folio.ref_count()), (1, 1));
            assert!(!folio.is_dirty() && folio.try_get());
        });
    }

    #[test]
    #[should_panic(expected = "a folio with references is handed out")]
    fn a_folio_with_references_is_not_handed_out() {
        explore(|| Folio::new(8, 1).hand_out_again());
    }

    #[test]
    #[should_panic(expected = "a locked folio is handed out")]
    fn a_locked_folio_is_not_handed_out() {
        explore(|| {
            let folio = Folio::new(8, 1);
            assert!(folio.trylock() && folio.put_refs(1));
            folio.hand_out_again();
        });
    }

    #[test]
    #[should_panic(expected = "the folio lock is unlocked twice")]
    fn a_folio_unlocked_twice_is_noticed() {
        explore(|| Folio::new(8, 1).unlock());
    }

    #[test]
    #[should_panic(expected = "a frozen folio has references")]
    fn a_reference_to_a_frozen_folio_is_noticed() {
        explore(|| Folio::new(8, 1).ref_unfreeze(1));
    }

    #[test]
    #[should_panic(expected = "a reference was dropped twice")]
    fn a_folio_reference_dropped_twice_is_noticed() {
        explore(|| {
            Folio::new(8, 1).put_refs(2);
        });
    }

    #[test]
    #[should_panic(expected = "a mapping was removed twice")]
    fn a_mapping_removed_twice_is_noticed() {
        explore(|| Folio::new(8, 1).remove_rmap(1));
    }
}
