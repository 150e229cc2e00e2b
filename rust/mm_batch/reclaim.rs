// SPDX-License-Identifier: GPL-2.0

//! Writing out dirty folios behind one flush, as a transaction: a folio is written out only when no
//! CPU can write to it any more.
//!
//! ```text
//! FolioList --flush--> Flushed --next_locked--> Locked --revalidate--> Revalidated --pageout-->
//!  (none is locked)                (one at a time) |
//!                                                  +-> kept or activated
//! ```
//!
//! C (`shrink_folio_list()`) unmaps a dirty folio, puts off the flush of other CPUs' TLBs, which
//! may still have writable translations, and unlocks the folio, which waits on a list. From there
//! it is taken behind the flush only, as [`Flushed`] alone gives folios out. A [`Flushed`] owns the
//! list: while there is one, nothing is unmapped, so that no flush is owed for a page that can be
//! written to. A [`Locked`] folio borrows it mutably: two cannot be locked at once. What is dropped
//! is put back to the LRU lists, unlocked. Only an [`AfterFlush`], which a [`Flushed`] has, lets
//! anybody take a folio or lock it.
//!
//! Two things are not ruled out. A folio that is leaked (`mem::forget` of a [`Locked`]) stays
//! locked and isolated, and another one can be locked then. A [`Flushed`] that is leaked leaves
//! folios on the list: C puts them back, and warns.
//!
//! # Why it is sound to let go of the lock
//!
//! Only an anonymous folio is unlocked while a flush is owed for it. It is in the swap cache, the
//! PTEs that mapped it are swap entries, and reclaim has isolated it. What a CPU stores by a
//! translation that is left goes to memory, into a folio that stays dirty until it is written out,
//! behind the flush. Nothing is lost unless somebody else copies the folio or writes it out, gives
//! it another address, or frees it, before the flush, and lets stores go on. These could:
//!
//! * A fault or swapoff maps the folio again, under the folio lock and at the same address. A store
//!   by the old translation is a store to what is mapped. Reclaim sees then that the folio is
//!   mapped; or, if it was unmapped since, it sees the reference of that mapping, which is dropped
//!   behind a flush.
//! * Changing the swap entries is done under the lock of their page table, where the mm says that a
//!   flush is owed, and that flush comes first (`flush_tlb_batched_pending()`, mm/rmap.c, 7.3):
//!   zap, mprotect(), mremap(), madvise(). fork() flushes the mm before the child runs;
//!   PAGEMAP_SCAN and clear_refs flush what they change. UFFDIO_MOVE did not flush, and does by a
//!   patch of this series.
//! * Unmapping it otherwise, copying it or writing it out begins with isolating it, which reclaim
//!   has done: other reclaimers, migration, compaction, khugepaged. Splitting it wants nobody else
//!   to have a reference, and reclaim has one. (Migration (`MIGRATE_ASYNC`), khugepaged and the
//!   split put flushes off as well, each under the folio lock, and flush before they unlock what
//!   they have unmapped.)
//! * Memory failure, device-exclusive access, migration to a device, and KSM do not isolate it.
//!   They do something only where it is mapped again, and flush at once, before the folio is
//!   unlocked.
//! * A pin holds a reference. Its holder makes the folio dirty before it drops it.
//!
//! It is not sound for the folios of a file or of shmem. Their PTEs are empty then. Truncation and
//! writeback ask `folio_mapped()` instead, and do not flush where that is false
//! (`truncate_cleanup_folio()`, mm/truncate.c, `folio_mkclean()`, mm/rmap.c, 7.3): a store behind
//! them is lost. So those wait only if the flush came before they were unlocked, as by
//! [`crate::batch`].

use core::{
    fmt::Debug,
    num::NonZero, //
};

/// The folios of one call of `shrink_folio_list()` that wait to be written out, and what ending
/// with them needs of mm. Each was unmapped by this task, and is isolated and not locked by this
/// task; writing it out is allowed. If a CPU might write to it by a mapping that had ended when it
/// was unlocked, it is anonymous.
///
/// A folio is given out by [`next_waiting`](Self::next_waiting), with its reference of isolation.
/// It ends in [`pageout`](Self::pageout), [`keep`](Self::keep), [`keep_locked`](Self::keep_locked),
/// [`activate_locked`](Self::activate_locked) or
/// [`unmap_failed_locked`](Self::unmap_failed_locked), and may be freed then.
///
/// Context of all methods: process context. Folios are locked by trylock alone, and one at a time.
///
/// # Safety
///
/// While a value exists, this task unmaps nothing but by its methods. A folio that is given out is
/// not freed until it ends. What the methods answer is so.
pub unsafe trait FolioList {
    /// A folio that was given out, by its name alone: it says nothing of its state. It is not
    /// `Copy`, so that it cannot be used once it has ended.
    type Folio: Debug;

    /// The address space of a folio.
    type Mapping: Debug;

    /// Flushes, if this task owes a flush for a PTE that was dirty. From here on, no CPU writes by
    /// a mapping that this task has ended. Translations for reading may be left: C flushes for
    /// those before it frees pages.
    ///
    /// Context: no folio of the list is locked. Waits for other CPUs.
    ///
    /// C: `try_to_unmap_flush_dirty()`, mm/rmap.c, 7.3.
    fn try_to_unmap_flush_dirty(&self);

    /// Takes the next folio off the list, in the order in which they came.
    ///
    /// C: `shrink_next_waiting()`, mm/vmscan.c, by this series.
    fn next_waiting(&self, flush: &AfterFlush) -> Option<Self::Folio>;

    /// The pages of a folio (C: `folio_nr_pages()`). An isolated folio cannot be split.
    fn folio_nr_pages(&self, folio: &Self::Folio) -> NonZero<u32>;

    /// Locks a folio, unless it is locked: whether it did (C: `folio_trylock()`).
    fn folio_trylock(&self, folio: &Self::Folio, flush: &AfterFlush) -> bool;

    /// Whether a page of it is poisoned (C: `folio_contain_hwpoisoned_page()`).
    fn folio_contain_hwpoisoned_page(&self, folio: &Self::Folio) -> bool;

    /// Whether a page of it is mapped (C: `folio_mapped()`).
    fn folio_mapped(&self, folio: &Self::Folio) -> bool;

    /// Whether a page of it may be pinned (C: `folio_maybe_dma_pinned()`).
    fn folio_maybe_dma_pinned(&self, folio: &Self::Folio) -> bool;

    /// Whether it may be reclaimed: it is not mlocked (C: `folio_evictable()`).
    fn folio_evictable(&self, folio: &Self::Folio) -> bool;

    /// Whether it is being written (C: `folio_test_writeback()`).
    fn folio_test_writeback(&self, folio: &Self::Folio) -> bool;

    /// Whether there are no references to it but those of the swap cache or page cache, one for
    /// each page, that of isolation, and one of its buffers, if it has some.
    ///
    /// C: as `pageout()` asks, mm/vmscan.c, 7.3.
    fn no_other_references(&self, folio: &Self::Folio) -> bool;

    /// The folio's address space, which is that of swap in the swap cache; `None` if it is
    /// anonymous, and not there or not swap-backed any more, or of nothing (C: `folio_mapping()`).
    /// It does not change while the folio is locked.
    fn folio_mapping(&self, folio: &Self::Folio) -> Option<Self::Mapping>;

    /// Ends with a folio that is to be written out: writes it if it is dirty, frees it if it is, or
    /// has become, clean, and else puts it back.
    ///
    /// May sleep.
    ///
    /// C: `shrink_finish_waiting()`, mm/vmscan.c, by this series, and `pageout()`, 7.3.
    ///
    /// # Safety
    ///
    /// It is locked by this task and unmapped, and its address space is `mapping`. No CPU has a
    /// writable translation of it.
    unsafe fn pageout(&self, folio: Self::Folio, mapping: Self::Mapping);

    /// Ends with a folio that is not locked: it goes back to the LRU lists as it is.
    ///
    /// C: `keep` in `shrink_folio_list()`, mm/vmscan.c, 7.3.
    ///
    /// # Safety
    ///
    /// It is not locked by this task.
    unsafe fn keep(&self, folio: Self::Folio);

    /// Ends with a folio that is locked, as [`Self::keep`] does.
    ///
    /// C: `keep_locked` in `shrink_folio_list()`, mm/vmscan.c, 7.3.
    ///
    /// # Safety
    ///
    /// It is locked by this task.
    unsafe fn keep_locked(&self, folio: Self::Folio);

    /// Ends with a folio that is in use, and locked: it is activated, unless it is mlocked.
    ///
    /// C: `activate_locked` in `shrink_folio_list()`, mm/vmscan.c, 7.3.
    ///
    /// # Safety
    ///
    /// It is locked by this task.
    unsafe fn activate_locked(&self, folio: Self::Folio);

    /// Ends with a folio that is mapped again, and locked: as [`Self::activate_locked`], and counts
    /// that it was not unmapped (C: `nr_unmap_fail`).
    ///
    /// # Safety
    ///
    /// It is locked by this task.
    unsafe fn unmap_failed_locked(&self, folio: Self::Folio);
}

/// What a list is taken from by, and a folio of it locked: that its flush is over. [`Flushed`]
/// alone has it.
#[derive(Debug)]
pub struct AfterFlush(());

/// A list behind its flush. Dropped, it keeps the folios that were not taken.
///
/// # Invariants
///
/// No CPU can write by a mapping that this task has ended.
#[derive(Debug)]
#[must_use = "the folios that are not taken are kept"]
pub struct Flushed<L: FolioList> {
    list: L,
    flush: AfterFlush,
}

impl<L: FolioList> Flushed<L> {
    /// Flushes for all folios of a list.
    ///
    /// Context: no folio of the list is locked. Waits for other CPUs.
    #[inline]
    pub fn flush(list: L) -> Self {
        list.try_to_unmap_flush_dirty();
        // INVARIANT: It was flushed just now. Nothing more is unmapped, as the list is owned.
        Self {
            list,
            flush: AfterFlush(()),
        }
    }

    /// Locks the next folio, in the order in which they came. Those that are locked by somebody
    /// else are kept.
    #[inline]
    pub fn next_locked(&mut self) -> Option<Locked<'_, L>> {
        let Self { list, flush } = self;
        while let Some(folio) = list.next_waiting(flush) {
            if list.folio_trylock(&folio, flush) {
                // INVARIANT: It was locked just now. The rest is our invariant.
                return Some(Locked {
                    list,
                    folio: Some(folio),
                });
            }
            // SAFETY: This task did not get the lock.
            unsafe { list.keep(folio) };
        }
        None
    }
}

impl<L: FolioList> Drop for Flushed<L> {
    #[inline]
    fn drop(&mut self) {
        while let Some(folio) = self.list.next_waiting(&self.flush) {
            // SAFETY: No folio that waits is locked by this task.
            unsafe { self.list.keep(folio) };
        }
    }
}

/// A folio that is locked again, of which nothing is known. Dropped, it is kept.
///
/// # Invariants
///
/// `folio` is there until it ends, and locked by this task. No CPU can write by a mapping that this
/// task has ended; a fault may have made a new one.
#[derive(Debug)]
#[must_use = "a folio that is dropped is kept"]
pub struct Locked<'f, L: FolioList> {
    list: &'f L,
    folio: Option<L::Folio>,
}

/// What became of a folio while it waited, by what `shrink_folio_list()` would do with it.
enum Now<M> {
    /// It is as it was, and this is its address space.
    Same(M),
    /// A fault has mapped it.
    Mapped,
    /// It is pinned, or not to be reclaimed any more.
    InUse,
    /// It is poisoned, under writeback, has an extra reference, or has left the swap cache or its
    /// file.
    Busy,
}

impl<'f, L: FolioList> Locked<'f, L> {
    /// The folio, if it is still what it was: unmapped, not pinned, evictable, without other
    /// references, and of an address space. Else it is put back, as without batches:
    /// activated if it is in use, kept if not. The error is how many of its pages a fault has
    /// mapped again; 0 if something else was the reason.
    ///
    /// References are counted before `pageout()` asks whether the folio is dirty: a holder from
    /// before may make it dirty until it drops its reference. Who looks the folio up later, in the
    /// swap cache or by its page frame, needs the folio lock to write to it, and
    /// `__remove_mapping()` freezes the count before the folio is freed. A folio that was taken
    /// from its cache lacks the references of that, and is kept; the last one is dropped
    /// behind the flush at the end of the list, and frees it.
    #[inline]
    pub fn revalidate(mut self) -> Result<Revalidated<'f, L>, u32> {
        let list = self.list;
        let Some(folio) = self.folio.take() else {
            return Err(0);
        };
        match now(list, &folio) {
            Now::Same(mapping) => {
                self.folio = Some(folio);
                // INVARIANT: It was asked just now, and the folio is locked.
                return Ok(Revalidated {
                    folio: self,
                    mapping,
                });
            }
            Now::Mapped => {
                let nr_pages = list.folio_nr_pages(&folio).get();
                // SAFETY: By the invariants, it is locked.
                unsafe { list.unmap_failed_locked(folio) };
                return Err(nr_pages);
            }
            // SAFETY: By the invariants, it is locked.
            Now::InUse => unsafe { list.activate_locked(folio) },
            // SAFETY: By the invariants, it is locked.
            Now::Busy => unsafe { list.keep_locked(folio) },
        }
        Err(0)
    }
}

#[inline]
fn now<L: FolioList>(list: &L, folio: &L::Folio) -> Now<L::Mapping> {
    if list.folio_contain_hwpoisoned_page(folio) {
        return Now::Busy;
    }
    if list.folio_mapped(folio) {
        return Now::Mapped;
    }
    if list.folio_maybe_dma_pinned(folio) || !list.folio_evictable(folio) {
        return Now::InUse;
    }
    if list.folio_test_writeback(folio) || !list.no_other_references(folio) {
        return Now::Busy;
    }
    list.folio_mapping(folio).map_or(Now::Busy, Now::Same)
}

impl<L: FolioList> Drop for Locked<'_, L> {
    #[inline]
    fn drop(&mut self) {
        if let Some(folio) = self.folio.take() {
            // SAFETY: By the invariants, it is locked.
            unsafe { self.list.keep_locked(folio) }
        }
    }
}

/// A locked folio that is what it was when it was unmapped, but that it may have become clean.
/// Dropped, it is kept.
///
/// # Invariants
///
/// It is unmapped, and its address space is `mapping`.
#[derive(Debug)]
#[must_use = "a folio that is dropped is kept"]
pub struct Revalidated<'f, L: FolioList> {
    folio: Locked<'f, L>,
    mapping: L::Mapping,
}

impl<L: FolioList> Revalidated<'_, L> {
    /// Writes it out; or frees it, if somebody has cleaned it meanwhile.
    #[inline]
    pub fn pageout(self) {
        let Self { mut folio, mapping } = self;
        if let Some(name) = folio.folio.take() {
            // SAFETY: By our invariant, it is unmapped, and `mapping` is its address space. By
            // those of `Locked`, it is locked, and no CPU writes by a mapping that this task has
            // ended; a mapping that came and went since has flushed for itself (the module says
            // why).
            unsafe { folio.list.pageout(name, mapping) }
        }
    }
}
