// SPDX-License-Identifier: GPL-2.0

//! A batch of folios in reclaim, up to where each is written out, as a transaction: nothing waits
//! while two of them are locked, and none is unlocked while a CPU may write to it by a mapping that
//! has ended.
//!
//! ```text
//! Collected --check_references--> Checked --alloc_swap--> Placed --unmap--> Unmapped
//!                                                                             | flush_dirty
//!                   list of those that wait <--let_go-- FlushedFolios <-------+
//!                                                         +-- free_clean --+
//! ```
//!
//! C (`shrink_folio_list()`, by this series) collects up to 32 folios, each locked by trylock, that
//! have passed all of its checks in front of references. A [`FolioBatch`] stands for their locks:
//! while there is one, they are locked. It is in exactly one of these states, each of which
//! consumes the one before. What may wait for anything but other CPUs' interrupts are methods of
//! the [`FolioList`] that [`FlushedFolios::let_go`] makes of the batch, which has no folio locked.
//!
//! A state that is dropped flushes, unlocks all of its folios, and keeps those that would wait. One
//! that is leaked (`mem::forget`) leaves its folios locked and isolated.
//!
//! # Why folios of files may be among them
//!
//! [`crate::reclaim`] says why a folio of a file must not be unlocked while a flush is owed for it.
//! Here the flush comes first: no CPU writes to a folio by a mapping that reclaim has ended, when
//! it is unlocked. What others do to it then they do to a folio that is not mapped, as if reclaim
//! had never mapped it, and reclaim looks at it again, under its lock, before it goes on.

use crate::reclaim::{
    Flushed,
    FolioList, //
};
use core::mem;

/// Up to 32 folios of one call of `shrink_folio_list()`, locked by this task (C: `ctx->batch` of
/// `struct shrink_ctx`, mm/vmscan.c, by this series). They are isolated, evictable, not under
/// writeback, and not huge pages of hugetlb. A folio leaves by any method, as it says.
///
/// Context of all methods: process context. None sleeps for a lock, for I/O or for memory; they
/// take spinlocks.
///
/// # Safety
///
/// While a value exists, the folios of its batch are locked by this task, and this task unmaps
/// nothing but by [`Self::unmap`]. What it unmaps it notes for the flush.
pub unsafe trait FolioBatch: Sized {
    /// The list of those that wait to be written out.
    type List: FolioList;

    /// Asks each folio for references, by one walk per page table. Those that were used leave,
    /// unlocked: activated, or kept, as C does with one.
    ///
    /// C: `shrink_batch_references()`, mm/vmscan.c, by this series; `folio_check_references()`,
    /// 7.3, for one.
    fn check_references(&self);

    /// Gives each anonymous folio that is swap-backed slots, a place in the swap cache and a
    /// charge, for all at once. Those that get none leave, unlocked, to be taken again: all alone,
    /// or the first alone and the others in the next batch.
    ///
    /// C: `shrink_batch_alloc_swap()`, mm/vmscan.c, by this series; `folio_alloc_swap()`, 7.3, for
    /// one.
    fn alloc_swap(&self);

    /// Unmaps the folios, by rmap walks that take their locks by trylock. Each stop comes back to
    /// [`crate::folio_batch`]. A folio may stay mapped. Of a large one, whose PTEs may come to
    /// share a translation where it is mapped again, no CPU has any behind it (arm64: break before
    /// make).
    ///
    /// C: `shrink_batch_unmap()`, mm/vmscan.c, by this series; `try_to_unmap()`, 7.3, for one.
    ///
    /// # Safety
    ///
    /// The next that is done with the batch is [`Self::flush_dirty`].
    unsafe fn unmap(&self);

    /// Flushes, if this task owes a flush for a PTE that was dirty. From here on, no CPU writes by
    /// a mapping that this task has ended.
    ///
    /// Context: all folios of the batch are still locked. Waits for other CPUs' interrupts, and
    /// does not sleep.
    ///
    /// C: `try_to_unmap_flush_dirty()`, mm/rmap.c, 7.3.
    fn flush_dirty(&self);

    /// Goes through the folios and frees, under their locks, those that are clean, not mapped, and
    /// need nothing that may sleep: they leave the swap cache or the page cache, and the batch.
    /// What is still mapped leaves as well, to be taken one by one, and so does what is pinned or a
    /// dirty page of a file (activated), or may not be written out now (kept). Left are the folios
    /// that are to be written out, or have buffers to be freed.
    ///
    /// C: `shrink_batch_free_clean()`, mm/vmscan.c, by this series; `__remove_mapping()`, 7.3, for
    /// one.
    ///
    /// # Safety
    ///
    /// No CPU has a writable translation by a mapping that this task has ended.
    unsafe fn free_clean(&self);

    /// Unlocks all folios that are left, and makes the list of them. Of a batch that ends before
    /// [`Self::free_clean`] these are all, mapped ones among them, and the list is to be kept.
    ///
    /// C: `shrink_batch_let_go()`, mm/vmscan.c, by this series.
    ///
    /// # Safety
    ///
    /// As of [`Self::free_clean`]. The batch ends: nothing is done with it any more.
    unsafe fn let_go(&self) -> Self::List;
}

/// The locks of a batch, which each state has.
#[derive(Debug)]
struct Locked<B: FolioBatch>(B);

impl<B: FolioBatch> Drop for Locked<B> {
    #[inline]
    fn drop(&mut self) {
        self.0.flush_dirty();
        // SAFETY: It was flushed just now, and nothing was unmapped since. The batch ends here.
        drop(Flushed::flush(unsafe { self.0.let_go() }));
    }
}

/// A batch of which nothing is known but that its folios are locked.
#[derive(Debug)]
#[must_use = "a batch that is dropped is kept"]
pub struct Collected<B: FolioBatch>(Locked<B>);

/// A batch of folios that were not used.
#[derive(Debug)]
#[must_use = "a batch that is dropped is kept"]
pub struct Checked<B: FolioBatch>(Locked<B>);

/// A batch of folios that have a place to go to.
#[derive(Debug)]
#[must_use = "a batch that is dropped is kept"]
pub struct Placed<B: FolioBatch>(Locked<B>);

/// A batch that was unmapped, for which a flush may be owed.
#[derive(Debug)]
#[must_use = "a batch that is dropped is kept"]
pub struct Unmapped<B: FolioBatch>(Locked<B>);

/// A batch behind its flush, still locked.
///
/// # Invariants
///
/// No CPU has a writable translation by a mapping that this task has ended.
#[derive(Debug)]
#[must_use = "a batch that is dropped is kept"]
pub struct FlushedFolios<B: FolioBatch>(Locked<B>);

impl<B: FolioBatch> Collected<B> {
    /// The batch, which is unlocked when what comes of it ends.
    #[inline]
    pub fn new(batch: B) -> Self {
        Self(Locked(batch))
    }

    /// Lets go of those that were used ([`FolioBatch::check_references`]).
    #[inline]
    pub fn check_references(self) -> Checked<B> {
        self.0 .0.check_references();
        Checked(self.0)
    }
}

impl<B: FolioBatch> Checked<B> {
    /// Lets go of those that cannot go to swap ([`FolioBatch::alloc_swap`]).
    #[inline]
    pub fn alloc_swap(self) -> Placed<B> {
        self.0 .0.alloc_swap();
        Placed(self.0)
    }
}

impl<B: FolioBatch> Placed<B> {
    /// Unmaps the folios ([`FolioBatch::unmap`]).
    #[inline]
    pub fn unmap(self) -> Unmapped<B> {
        // SAFETY: An `Unmapped` flushes, whatever becomes of it.
        unsafe { self.0 .0.unmap() };
        Unmapped(self.0)
    }
}

impl<B: FolioBatch> Unmapped<B> {
    /// Flushes once for all ([`FolioBatch::flush_dirty`]).
    #[inline]
    pub fn flush_dirty(self) -> FlushedFolios<B> {
        self.0 .0.flush_dirty();
        // INVARIANT: It was flushed just now. Nothing more is unmapped, as a state has the batch.
        FlushedFolios(self.0)
    }
}

impl<B: FolioBatch> FlushedFolios<B> {
    /// Frees what is clean ([`FolioBatch::free_clean`]).
    #[inline]
    pub fn free_clean(self) -> Self {
        // SAFETY: By the invariants, no CPU has such a translation.
        unsafe { self.0 .0.free_clean() };
        self
    }

    /// Unlocks the rest: those that wait to be written out ([`FolioBatch::let_go`]).
    #[inline]
    pub fn let_go(self) -> B::List {
        // SAFETY: By the invariants, no CPU has such a translation. The batch ends here.
        let list = unsafe { self.0 .0.let_go() };
        // It has nothing locked any more.
        mem::forget(self);
        list
    }
}
