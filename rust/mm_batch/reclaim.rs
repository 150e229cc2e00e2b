// SPDX-License-Identifier: GPL-2.0

//! From unmapping to pageout as a transaction: a dirty folio is written out only where no CPU can
//! write to it any more.
//!
//! ```text
//! Unmapping --next_dirty--> Unmapped --wait--> Waiting --push--> Collecting
//!     ^                                                           |
//!     |                       one flush, no folio locked        flush
//!     |                                                           v
//!     +-- free again <-- Flushed --next--> Settled --lock--> Locked --revalidate--> Revalidated
//!                                             |                 |                       |
//!                                            kept      kept or activated             pageout
//! ```
//!
//! Reclaim unmaps a folio and puts off the flush of other CPUs' TLBs, which may still have writable
//! translations. That is a [`FlushOwed`], which the batch takes with the folio. Until the batch has
//! paid, the folio can be put back, and nothing else: it is not locked again, and so neither
//! written out nor freed. What is put back is freed by others, behind the flush at the end of the
//! list.
//!
//! Who writes a folio out takes three proofs. [`NothingOwed`]: the flush was done, and as it
//! borrows [`Unmapping`], nothing was unmapped since. [`Revalidated`]: the folio is locked, and is
//! what it was when it was unmapped. [`FolioLock`]: this is the only folio that is locked here,
//! which waiting for one is a deadlock without; for the flush, none is.
//!
//! # Why it is sound to let go of the lock
//!
//! Only an anonymous folio is unlocked while the flush for it is owed. It is in the swap cache, the
//! PTEs that mapped it are swap entries, and reclaim has isolated it. What a CPU then stores by a
//! translation that is left is in memory, in a folio that stays dirty until it is written out,
//! behind the flush. Nothing is lost if nobody else reads the folio for good, gives it another
//! address, or gives it up, before the flush, and lets stores go on:
//!
//! * Who maps it again (a fault, swapoff) does so under the folio lock, at the same address: what
//!   is stored by the old translation is stored to what is mapped. Reclaim sees then that the folio
//!   is mapped; or, if it is not any more, the reference of who unmapped it, who flushes before he
//!   drops that.
//! * Who changes its swap entries finds, under the lock of their page table, that a flush is owed
//!   to their mm, and flushes first (`flush_tlb_batched_pending()`, mm/rmap.c, 7.3): zap,
//!   mprotect(), mremap(), madvise(). fork() flushes the mm before the child runs; PAGEMAP_SCAN and
//!   clear_refs flush what they change. UFFDIO_MOVE did not flush and does, by a patch of this
//!   series.
//! * Who wants to unmap it otherwise, to copy it or to write it out must isolate it first, which
//!   reclaim has done: other reclaimers, migration, compaction, khugepaged. A split wants nobody
//!   else to have a reference, and reclaim has one. (Of these, migration (`MIGRATE_ASYNC`),
//!   khugepaged and the split put flushes off as well, each under the folio lock, and flush before
//!   they let go.)
//! * Memory failure, device-exclusive access, migration to a device, and KSM do not isolate it.
//!   They do something only where it is mapped again, and flush at once, before the folio is
//!   unlocked.
//! * Who has pinned it has a reference, and marks it dirty before that is dropped.
//!
//! It is not sound of a file's folios, shmem's among them. Their PTEs are empty then, so that who
//! takes the folio out of its file, or writes it out, goes by `folio_mapped()` instead: where that
//! is false nobody flushes (`truncate_cleanup_folio()`, mm/truncate.c, `folio_mkclean()`,
//! mm/rmap.c, 7.3), and a store behind it is lost. So they do not wait.
//!
//! All tokens of a list have its name, the lifetime `'r`: those of two lists cannot be mixed. What
//! is dropped is put back to the LRU lists by and by, unlocked. Who leaks a token (`mem::forget`)
//! leaks its folio, which stays locked if it was.
//!
//! A port's methods that change a folio are unsafe, and are called here.

#![deny(unsafe_code)]

use crate::{
    brand::Brand,
    unmap::FlushOwed, //
};
use core::{
    fmt::Debug,
    marker::PhantomData,
    num::NonZero,
    ops::Deref, //
};

mod batch;
mod folio;

pub use batch::{
    Collecting,
    Flushed,
    FOLIO_BATCH_SIZE, //
};
pub use folio::{
    Locked,
    PutBack,
    Revalidated,
    Settled,
    Unmapped,
    Waiting, //
};

/// The folios that one call of `shrink_folio_list()` is to reclaim, and what it needs of mm for
/// those that are dirty. All of it is of one task, whose deferred flushes are its own.
///
/// A folio is in somebody's hands from [`next_dirty`](Self::next_dirty), which gives it out, until
/// [`pageout`](Self::pageout), [`keep`](Self::keep), [`keep_locked`](Self::keep_locked),
/// [`activate_locked`](Self::activate_locked) or
/// [`unmap_failed_locked`](Self::unmap_failed_locked) ends that: then it may be freed.
///
/// Context of all methods: process context.
///
/// # Safety
///
/// While a value exists, it is the only one of its task, which has no folio locked but by it. What
/// the methods answer is so.
#[allow(unsafe_code)]
pub unsafe trait FolioList {
    /// A folio that was given out, by its name alone: it says nothing of its state.
    type Folio: Copy + Debug;

    /// What a folio is of: the swap cache, or a file of shmem.
    type Mapping: Debug;

    /// Reclaims what is clean, and, if no folio is `waiting`, what is dirty and has no flush owed,
    /// or may not wait for it; up to the next folio that is neither. That one is off the list,
    /// locked, unmapped by this task or not mapped at all, not pinned, and dirty; writing it out is
    /// allowed, and who gets it has its reference of isolation. It is anonymous, or nothing is
    /// owed: one that may not wait, behind those that are `waiting`, was flushed for just now.
    /// None: the list is empty, or the next folio's writeback is to be waited for, which the list
    /// keeps in mind and nothing that is `waiting` must wait for, too: ask again without.
    ///
    /// May sleep.
    ///
    /// C: `shrink_next_dirty()`, mm/vmscan.c, by this series.
    ///
    /// # Safety
    ///
    /// No flush of this task's is relied upon from here on. No folio is locked. Who gets a folio
    /// ends it once, and does not ask for it behind that.
    unsafe fn next_dirty(&self, waiting: bool) -> Option<Self::Folio>;

    /// What this task owes by its note, if a CPU may still write by a translation of what it has
    /// unmapped. Reading is none of it: C flushes again before it frees.
    ///
    /// C: `current->tlb_ubc.writable`, mm/rmap.c, 7.3.
    fn flush_owed(&self) -> Option<FlushOwed>;

    /// Flushes it: from here on no CPU can. That is for a batch of `nr_pages` pages, and pays what
    /// is `owed` for them, and what the task's note has beyond.
    ///
    /// May wait for other CPUs.
    ///
    /// C: `try_to_unmap_flush_dirty()`, mm/rmap.c, 7.3.
    ///
    /// # Safety
    ///
    /// This task has no folio locked.
    unsafe fn try_to_unmap_flush_dirty(&self, nr_pages: u32, owed: Option<FlushOwed>);

    /// The pages of a folio (C: `folio_nr_pages()`). Nobody can split one that is isolated.
    fn folio_nr_pages(&self, folio: Self::Folio) -> NonZero<u32>;

    /// Unlocks a folio.
    ///
    /// # Safety
    ///
    /// It is locked by this task.
    unsafe fn folio_unlock(&self, folio: Self::Folio);

    /// Locks a folio, unless somebody else has: whether it did.
    ///
    /// # Safety
    ///
    /// It is in the caller's hands, and this task has none locked. Who locks it unlocks it, or
    /// gives it to one of the methods below.
    unsafe fn folio_trylock(&self, folio: Self::Folio) -> bool;

    /// Whether a page of it is poisoned (C: `folio_contain_hwpoisoned_page()`).
    fn folio_contain_hwpoisoned_page(&self, folio: Self::Folio) -> bool;

    /// Whether a page of it is mapped (C: `folio_mapped()`).
    fn folio_mapped(&self, folio: Self::Folio) -> bool;

    /// Whether a page of it may be pinned (C: `folio_maybe_dma_pinned()`).
    fn folio_maybe_dma_pinned(&self, folio: Self::Folio) -> bool;

    /// Whether it may be reclaimed: not mlocked, and its file not locked in memory (C:
    /// `folio_evictable()`).
    fn folio_evictable(&self, folio: Self::Folio) -> bool;

    /// Whether it is being written (C: `folio_test_writeback()`).
    fn folio_test_writeback(&self, folio: Self::Folio) -> bool;

    /// Whether nobody has references to it but its mapping, one for each page, and who isolated it.
    ///
    /// C: as `pageout()` asks, mm/vmscan.c, 7.3.
    fn no_other_references(&self, folio: Self::Folio) -> bool;

    /// Whether its content goes to swap: it is swap-backed, and anonymous and in the swap cache, or
    /// of shmem. Locked, it stays that.
    ///
    /// C: what `pageout()` decides by, mm/vmscan.c, 7.3.
    fn folio_goes_to_swap(&self, folio: Self::Folio) -> bool;

    /// What it is of, if of anything (C: `folio_mapping()`). Locked, it stays of that.
    fn folio_mapping(&self, folio: Self::Folio) -> Option<Self::Mapping>;

    /// Ends with a folio that is to be written out: writes it if it is dirty, frees it if it is, or
    /// has become, clean, and else puts it back. May put folios on the list.
    ///
    /// May sleep.
    ///
    /// C: `shrink_finish_dirty()`, mm/vmscan.c, by this series, and `pageout()`, 7.3.
    ///
    /// # Safety
    ///
    /// It is in the caller's hands, which this ends, locked by this task, unmapped, and of
    /// `mapping`. No CPU has a writable translation of it.
    unsafe fn pageout(&self, folio: Self::Folio, mapping: Self::Mapping);

    /// Ends with a folio that is not locked: it goes back to the LRU lists as it is.
    ///
    /// C: `keep` in `shrink_folio_list()`, mm/vmscan.c, 7.3.
    ///
    /// # Safety
    ///
    /// It is in the caller's hands, which this ends, and not locked by this task.
    unsafe fn keep(&self, folio: Self::Folio);

    /// Ends with a folio that is locked, as [`Self::keep`] does.
    ///
    /// C: `keep_locked` in `shrink_folio_list()`, mm/vmscan.c, 7.3.
    ///
    /// # Safety
    ///
    /// It is in the caller's hands, which this ends, and locked by this task.
    unsafe fn keep_locked(&self, folio: Self::Folio);

    /// Ends with a folio that is in use, and locked: it is activated, unless it is mlocked.
    ///
    /// C: `activate_locked` in `shrink_folio_list()`, mm/vmscan.c, 7.3.
    ///
    /// # Safety
    ///
    /// As of [`Self::keep_locked`].
    unsafe fn activate_locked(&self, folio: Self::Folio);

    /// The same, and counts that it was not unmapped (C: `nr_unmap_fail`).
    ///
    /// # Safety
    ///
    /// As of [`Self::keep_locked`].
    unsafe fn unmap_failed_locked(&self, folio: Self::Folio);
}

/// The list, and its name.
#[derive(Debug)]
struct Named<'r, L> {
    list: &'r L,
    brand: Brand<'r>,
}

impl<L> Clone for Named<'_, L> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<L> Copy for Named<'_, L> {}

impl<L> Deref for Named<'_, L> {
    type Target = L;

    #[inline]
    fn deref(&self) -> &L {
        self.list
    }
}

/// Runs `shrink` on a list, with all that there is of it: one right to unmap, and one to lock.
#[inline]
pub fn with_list<L: FolioList, R>(
    list: L,
    shrink: impl for<'r> FnOnce(Unmapping<'r, L>, FolioLock<'r>) -> R,
) -> R {
    let list = Named {
        list: &list,
        brand: PhantomData,
    };
    // INVARIANT: The list is here, the only one of its task, which has no folio locked yet.
    shrink(Unmapping { list }, FolioLock::free())
}

/// The right to lock a folio of the list.
///
/// # Invariants
///
/// While it exists by itself, this task has none locked; a folio that it has locked has it.
#[derive(Debug)]
pub struct FolioLock<'r> {
    brand: Brand<'r>,
}

impl FolioLock<'_> {
    #[inline]
    fn free() -> Self {
        Self { brand: PhantomData }
    }
}

/// Nothing can be written to any more by translations of what this task has unmapped.
///
/// # Invariants
///
/// So it is for as long as `'u` lasts, for which nothing more is unmapped.
#[derive(Debug)]
pub struct NothingOwed<'u, 'r> {
    unmapping: PhantomData<&'u ()>,
    brand: Brand<'r>,
}

impl NothingOwed<'_, '_> {
    #[inline]
    fn paid() -> Self {
        Self {
            unmapping: PhantomData,
            brand: PhantomData,
        }
    }
}

/// The right to unmap folios of the list.
///
/// # Invariants
///
/// There is one of a list, which is the only one of its task.
#[derive(Debug)]
pub struct Unmapping<'r, L: FolioList> {
    list: Named<'r, L>,
}

/// What is next on a list.
#[derive(Debug)]
pub enum Next<'r, L: FolioList> {
    /// A dirty folio.
    Dirty(Unmapped<'r, L>),
    /// Nothing.
    Done(FolioLock<'r>),
}

impl<'r, L: FolioList> Unmapping<'r, L> {
    /// Reclaims what need not wait, and unmaps what comes then. Where nothing waits, what is dirty
    /// and has no flush owed need not: it is written out as if there were no batches.
    ///
    /// Context: may sleep.
    #[allow(unsafe_code)]
    #[inline]
    pub fn next_dirty(&mut self, lock: FolioLock<'r>, batch: &Collecting<'r, L>) -> Next<'r, L> {
        // SAFETY: Whoever relies on a flush borrows `self`, and there is no other list. That none
        // is locked says `lock`. `Held` and `Unlocked` end the folio once.
        let Some(folio) = (unsafe { self.list.next_dirty(batch.nr_folios() > 0) }) else {
            return Next::Done(lock);
        };
        // SAFETY: It was given out just now, and locked, as the list says.
        let held = unsafe { folio::Held::new(self.list, folio, lock) };
        Next::Dirty(Unmapped::new(held, self.list.flush_owed()))
    }

    /// Pays what is owed, for a batch of `nr_pages` pages.
    ///
    /// Context: no folio is locked, which the right to do so shows; waits for other CPUs.
    #[allow(unsafe_code)]
    #[inline]
    fn flush(
        &self,
        nr_pages: u32,
        owed: Option<FlushOwed>,
        _none_locked: &FolioLock<'r>,
    ) -> NothingOwed<'_, 'r> {
        // SAFETY: So says the right to lock one.
        unsafe { self.list.try_to_unmap_flush_dirty(nr_pages, owed) };
        // INVARIANT: Flushed just now; `self` is borrowed from here on.
        NothingOwed::paid()
    }
}
