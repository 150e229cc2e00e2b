// SPDX-License-Identifier: GPL-2.0

//! A batch of folios in reclaim, up to where those that are dirty wait to be written out, as a
//! transaction: nothing waits while two of them are locked, and none is unlocked while a CPU may
//! write to it by a mapping that has ended, but an anonymous one.
//!
//! ```text
//! Collected --check_references--> Checked --alloc_swap--> Placed --unmap--> Unmapped
//!                                                                             | free_clean
//!                   those that wait, of dirty_flush <--let_go-- LeftFolios <--+
//! ```
//!
//! C (`shrink_folio_list()`, by this series) collects up to 32 folios, each locked by trylock, that
//! have passed all of its checks in front of references. A [`FolioBatch`] stands for their locks:
//! while there is one, they are locked. It is in exactly one of these states, each of which
//! consumes the one before. What may wait for anything but other CPUs' interrupts is no method of
//! it.
//!
//! A state that is dropped puts its folios back, flushed for and unlocked. One that is leaked
//! (`mem::forget`) leaves them locked and isolated.
//!
//! # Who is flushed for, and when
//!
//! [`crate::reclaim`] says why an anonymous folio may be unlocked while a flush is owed for it, and
//! a folio of a file, or of shmem, must not be. A batch of which all that is left may wait is
//! unlocked, and its flush is that of [`crate::dirty_flush`], for several batches of a list. If one
//! of its folios may not wait, the flush comes first, while all are locked. To others such a folio
//! is one that nobody maps. Reclaim looks at it again, under its lock, before it goes on.
//!
//! What is freed is clean: it was not dirty by its PTEs either, so that no CPU can write to it. C
//! flushes for those that may read it before its pages are free.

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
/// nothing but by [`Self::unmap`]. What it unmaps it notes for the flush. What the methods answer
/// is so.
pub unsafe trait FolioBatch {
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
    fn unmap(&self);

    /// Goes through the folios and frees, under their locks, those that are clean, not mapped, and
    /// need nothing that may sleep: they leave the swap cache or the page cache, and the batch.
    /// What is still mapped leaves as well, to be taken one by one, and so does what is pinned or a
    /// dirty page of a file (activated), or may not be written out now (kept). If a CPU may write
    /// to one of these, it is flushed for before it is unlocked. Left are the folios that are to be
    /// written out, or have buffers to be freed.
    ///
    /// C: `shrink_batch_free_clean()`, mm/vmscan.c, by this series; `__remove_mapping()`, 7.3, for
    /// one.
    fn free_clean(&self);

    /// Whether each of the folios that are left, if there are any, may be unlocked while a flush is
    /// owed for it: `dirty_flush` is on and has not been given up for this list, and the folio is
    /// anonymous, and such as `dirty_flush` lets wait.
    ///
    /// C: `shrink_batch_may_wait()`, mm/vmscan.c, by this series.
    fn may_wait(&self) -> bool;

    /// Flushes, if this task owes a flush for a PTE that was dirty. From here on, no CPU writes by
    /// a mapping that this task has ended.
    ///
    /// Context: all folios of the batch are still locked. Waits for other CPUs' interrupts, and
    /// does not sleep.
    ///
    /// C: `try_to_unmap_flush_dirty()`, mm/rmap.c, 7.3.
    fn flush_dirty(&self);

    /// Unlocks all folios that are left. They are behind those that wait then.
    ///
    /// C: `shrink_batch_let_go()`, mm/vmscan.c, by this series.
    ///
    /// # Safety
    ///
    /// None of them is mapped. No CPU has a writable translation of one by a mapping that this task
    /// has ended, unless [`Self::may_wait`] has said that this may be. The batch ends: nothing is
    /// done with it any more.
    unsafe fn let_go(&self);

    /// Flushes as [`Self::flush_dirty`], and unlocks all folios of the batch, mapped ones among
    /// them. They go back to the LRU lists.
    ///
    /// C: `shrink_batch_put_back()`, mm/vmscan.c, by this series.
    ///
    /// # Safety
    ///
    /// The batch ends: nothing is done with it any more.
    unsafe fn put_back(&self);
}

/// The locks of a batch, which each state has.
#[derive(Debug)]
struct Locked<B: FolioBatch>(B);

impl<B: FolioBatch> Drop for Locked<B> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: The batch ends here.
        unsafe { self.0.put_back() }
    }
}

/// A batch of which nothing is known but that its folios are locked.
#[derive(Debug)]
#[must_use = "a batch that is dropped is put back"]
pub struct Collected<B: FolioBatch>(Locked<B>);

/// A batch of folios that were not used.
#[derive(Debug)]
#[must_use = "a batch that is dropped is put back"]
pub struct Checked<B: FolioBatch>(Locked<B>);

/// A batch of folios that have a place to go to.
#[derive(Debug)]
#[must_use = "a batch that is dropped is put back"]
pub struct Placed<B: FolioBatch>(Locked<B>);

/// A batch that was unmapped, for which a flush may be owed.
#[derive(Debug)]
#[must_use = "a batch that is dropped is put back"]
pub struct Unmapped<B: FolioBatch>(Locked<B>);

/// What is left of a batch when its clean folios are freed. A flush may be owed for it.
///
/// # Invariants
///
/// None of its folios is mapped.
#[derive(Debug)]
#[must_use = "a batch that is dropped is put back"]
pub struct LeftFolios<B: FolioBatch>(Locked<B>);

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
        self.0 .0.unmap();
        Unmapped(self.0)
    }
}

impl<B: FolioBatch> Unmapped<B> {
    /// Frees what is clean ([`FolioBatch::free_clean`]).
    #[inline]
    pub fn free_clean(self) -> LeftFolios<B> {
        self.0 .0.free_clean();
        // INVARIANT: What is mapped has left. Only a fault maps a folio, under its lock.
        LeftFolios(self.0)
    }
}

impl<B: FolioBatch> LeftFolios<B> {
    /// Unlocks the rest, which wait to be written out ([`FolioBatch::let_go`]): behind a flush, if
    /// one of them may not wait for it.
    #[inline]
    pub fn let_go(self) {
        let batch = &self.0 .0;
        if !batch.may_wait() {
            batch.flush_dirty();
        }
        // SAFETY: By the invariants, none is mapped. Each may wait, or it was flushed just now, and
        // nothing was unmapped since. The batch ends here.
        unsafe { batch.let_go() };
        // It has nothing locked any more.
        mem::forget(self);
    }
}
