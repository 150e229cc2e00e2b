// SPDX-License-Identifier: GPL-2.0

//! Unmapping several folios at one stop of an rmap walk, as a transaction.
//!
//! ```text
//! FoundFolios --count_swap_entries--> CountedFolios --clear--> SwapFolios
//!      |                                    |                      |     \
//!    clear                        counts are put back            share    pinned: mapped again,
//!      |                                                           |        counts put back
//! ClearedFolios --vanish--> unmapped <--commit-- ShareableFolios <-+
//!      |
//! mapped again
//! ```
//!
//! All are mapped by one page table, whose lock is held; [`FoundFolios::find`] borrows the walk for
//! as long as a state lives. Each state is of the folios in its set, and no folio is in two.
//! Dropped, it undoes its own step for them, and then what it holds: a folio that cannot go on is
//! split off and dropped, and the others go on. Leaked (`mem::forget`), it leaves them cleared, and
//! their swap entries counted.
//!
//! The steps are those of `try_to_unmap_one()`, mm/rmap.c, 7.3, but that swap entries are counted
//! before PTEs are cleared: where that fails, nothing has to be mapped again. (The folio lock keeps
//! the slots.) (A1) to (A4) are those of `__folio_try_share_anon_rmap()`, include/linux/rmap.h,
//! 7.3. One barrier is enough for all folios, as the PTEs of all are cleared in front of it.
//!
//! The types do not say which folios may vanish: policy must not let an anonymous folio vanish
//! whose content is nowhere else.
//!
//! Lock order, as C's (mm/rmap.c, 7.3): folio locks (of several by trylock alone), rmap lock, page
//! table lock, swap cluster lock. All but the last are held by C for as long as there is a walk.

use core::{
    mem,
    num::NonZero, //
};

/// Some folios of a batch, at least one: the i-th, from 0 to 31, has the bit `1 << i`. It is a
/// number, and says nothing of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FolioSet(NonZero<u32>);

impl FolioSet {
    /// The set of these bits, or `None` if there are none.
    #[inline]
    pub fn new(bits: u32) -> Option<Self> {
        NonZero::new(bits).map(Self)
    }

    /// Its bits.
    #[inline]
    pub fn bits(self) -> u32 {
        self.0.get()
    }

    /// Those that are in `these`, and those that are not.
    #[inline]
    pub fn split(self, these: Option<Self>) -> [Option<Self>; 2] {
        let these = these.map_or(0, Self::bits);
        [self.bits() & these, self.bits() & !these].map(Self::new)
    }
}

/// One stop of an rmap walk at a page table that maps folios of a batch, and what unmapping them
/// needs of mm (C: `struct ttu_folios`, mm/rmap.c, by this series). Every loop over folios, PTEs or
/// pages is one method. A safe method answers of those folios of a set that there are. Only
/// [`Self::find`] wants the walk exclusively: it forgets what was found before.
///
/// Context of all methods: page table lock, rmap lock and the locks of all folios of the batch
/// held; none sleeps.
///
/// # Safety
///
/// What the methods answer is so. Those that are asked about a set answer a part of it.
pub unsafe trait FoliosWalk: Sized {
    /// The folios of the batch that can be unmapped here: this page table maps all pages of each by
    /// present PTEs, in this VMA, with other PTEs between them or not. All are of the kind of the
    /// walk's own folio (file or shmem, swap-backed anonymous, lazyfree), which is one of them;
    /// else there are none.
    ///
    /// Left out are folios that are young by a PTE, unless references are ignored; in a VMA that is
    /// `VM_LOCKED` or has shadow stacks; of a file, with a PTE that needs a uffd-wp marker; with a
    /// PTE that is unused (`pte_unused()`); that are large, with PTEs that differ in more than
    /// dirty and young, or pages that differ in AnonExclusive; or in the swap cache, or not, where
    /// they should not be so.
    ///
    /// C: `ttu_folios_find()`, mm/rmap.c, by this series.
    fn find(&mut self) -> Option<FolioSet>;

    /// Clears all their PTEs, each by an atomic exchange, lets `hiwater_rss` know the peak, and
    /// hands each folio the dirty bits of its own PTEs. Sees to it that no CPU uses the
    /// translations: by a flush for each piece without gaps, or by a note for
    /// `try_to_unmap_flush()`, which must come before pages are freed, and, if a PTE was dirty,
    /// before I/O. A folio that may not wait is flushed for before it is unlocked
    /// ([`crate::batch`]).
    ///
    /// C: `ttu_folios_clear()`, mm/rmap.c, by this series.
    ///
    /// # Safety
    ///
    /// They were found by [`Self::find`] at this stop, and none is cleared.
    unsafe fn clear_flush(&self, set: FolioSet);

    /// `smp_mb()`. Pairs with the one between taking a reference, or a pin, and reading the PTE
    /// again in GUP-fast (`try_grab_folio_fast()`, mm/gup.c, 7.3: the fully ordered reference).
    fn smp_mb(&self);

    /// Maps them again, by the PTEs that they had, with no translation of them left in any TLB
    /// (arm64: break before make).
    ///
    /// C: `ttu_folios_restore()`, mm/rmap.c, by this series.
    ///
    /// # Safety
    ///
    /// They are cleared. Rmap, counters and references still count their mappings.
    unsafe fn restore(&self, set: FolioSet);

    /// Ends their mappings: mm counter, mapcounts, references; statistics once for all of one memcg
    /// and node. The folios stay: the caller holds a reference of each.
    ///
    /// C: `ttu_folios_end()`, mm/rmap.c, by this series.
    ///
    /// # Safety
    ///
    /// Their PTEs became swap entries, and their mappings were not ended yet.
    unsafe fn end_mappings(&self, set: FolioSet);

    /// The same, where nothing takes the place of the PTEs.
    ///
    /// C: `ttu_folios_vanish()`, mm/rmap.c, by this series.
    ///
    /// # Safety
    ///
    /// They are cleared, and their mappings were not ended yet.
    unsafe fn vanish(&self, set: FolioSet);
}

/// What swapping out folios needs of mm beyond that, in the same context.
///
/// # Safety
///
/// As of [`FoliosWalk`]: entries are counted, pages exclusive, and folios pinned, as the methods
/// answer. The walk's own folio is anonymous and swap-backed, so that those that
/// [`FoliosWalk::find`] finds are in the swap cache.
pub unsafe trait SwapFoliosWalk: FoliosWalk {
    /// Takes one swap count for each page, of neighbours in the swap cache for all or none: those
    /// whose slots follow each other in a cluster. Returns the folios for which it did: whose
    /// counts, and their neighbours', are below their maximum, or there was memory for more.
    ///
    /// C: `ttu_folios_dup_swap()`, mm/rmap.c, by this series; it takes a cluster's lock once for
    /// neighbours.
    ///
    /// # Safety
    ///
    /// They were found by [`FoliosWalk::find`] at this stop, and are mapped.
    unsafe fn dup_swap(&self, set: FolioSet) -> Option<FolioSet>;

    /// Takes back what [`Self::dup_swap`] counted (C: `ttu_folios_put_swap()`, mm/rmap.c, by this
    /// series).
    ///
    /// # Safety
    ///
    /// Entries of these folios were counted, and none was written.
    unsafe fn put_swap(&self, set: FolioSet);

    /// Those that have a page that is this mm's alone (C: `ttu_folios_exclusive()`, mm/rmap.c, by
    /// this series; `PageAnonExclusive()`, 7.3).
    fn exclusive(&self, set: FolioSet) -> Option<FolioSet>;

    /// Those of which a page may be pinned (C: `ttu_folios_pinned()`, mm/rmap.c, by this series;
    /// `folio_maybe_dma_pinned()`, 7.3).
    fn maybe_dma_pinned(&self, set: FolioSet) -> Option<FolioSet>;

    /// Clears AnonExclusive of each page that has it, and remembers which had.
    ///
    /// C: `ttu_folios_share()`, mm/rmap.c, by this series.
    ///
    /// # Safety
    ///
    /// They are cleared, are not mapped again, and none is pinned, or can be.
    unsafe fn clear_anon_exclusive(&self, set: FolioSet);

    /// `smp_mb__after_atomic()`, behind clearing an AnonExclusive bit. Pairs with the `smp_rmb()`
    /// in `gup_must_unshare()`, mm/internal.h, 7.3.
    fn smp_mb_after_atomic(&self);

    /// Puts the mm on the list of those that swapoff looks through.
    ///
    /// C: `ttu_folios_prepare_swap()`, mm/rmap.c, by this series.
    ///
    /// # Safety
    ///
    /// They are cleared, and are becoming swap entries.
    unsafe fn prepare_for_swap_entries(&self, set: FolioSet);

    /// Writes a swap entry for each page, with the soft-dirty and uffd bits of its own PTE, marked
    /// exclusive if [`Self::clear_anon_exclusive`] found the page so.
    ///
    /// C: `ttu_folios_set_swp()`, mm/rmap.c, by this series.
    ///
    /// # Safety
    ///
    /// They are cleared, their entries are counted, and the mm is on swapoff's list. Their pages
    /// have no AnonExclusive bit.
    unsafe fn set_swp_ptes(&self, set: FolioSet);
}

/// Folios whose PTEs were found at this stop, and not touched.
///
/// # Invariants
///
/// [`FoliosWalk::find`] found the set under the page table lock, which was not released since. No
/// other state has a folio of it. Its PTEs are as they were, but for what hardware does.
#[derive(Debug)]
#[must_use = "folios that are found are not unmapped yet"]
pub struct FoundFolios<'w, W: FoliosWalk> {
    walk: &'w W,
    set: FolioSet,
}

impl<'w, W: FoliosWalk> FoundFolios<'w, W> {
    /// Those of the batch that can be unmapped here, if there are any.
    #[inline]
    pub fn find(walk: &'w mut W) -> Option<Self> {
        let set = walk.find()?;
        // INVARIANT: They were found just now. The walk is lent for as long as a state lives.
        Some(Self { walk, set })
    }

    /// Clears all their PTEs, and flushes for them, at once or later
    /// ([`FoliosWalk::clear_flush`]).
    #[inline]
    pub fn clear(self) -> ClearedFolios<'w, W> {
        let Self { walk, set } = self;
        // SAFETY: By the invariants, they were found at this stop, and no state has cleared them.
        unsafe { walk.clear_flush(set) };
        // INVARIANT: They were cleared just now. Their mappings were not ended.
        ClearedFolios { walk, set }
    }
}

impl<'w, W: SwapFoliosWalk> FoundFolios<'w, W> {
    /// Counts swap entries: those for which it did, if it did for any. The others stay mapped.
    #[inline]
    pub fn count_swap_entries(self) -> Option<CountedFolios<'w, W>> {
        let Self { walk, set } = self;
        // SAFETY: By the invariants, they were found at this stop, and are mapped.
        let set = unsafe { walk.dup_swap(set) }?;
        // INVARIANT: Their entries were counted just now; they are a part of what was found.
        Some(CountedFolios { walk, set })
    }
}

/// Folios with a swap count taken for each page. Dropped, the counts are put back.
///
/// # Invariants
///
/// As of [`FoundFolios`], and their swap entries are counted, and none is written. In a
/// [`SwapFolios`], [`ClearedFolios`] has the same folios beside this, and says what their PTEs are.
#[derive(Debug)]
#[must_use = "counts that are not used are put back"]
pub struct CountedFolios<'w, W: SwapFoliosWalk> {
    walk: &'w W,
    set: FolioSet,
}

impl<'w, W: SwapFoliosWalk> CountedFolios<'w, W> {
    /// Clears all their PTEs, and flushes for them, at once or later
    /// ([`FoliosWalk::clear_flush`]).
    #[inline]
    pub fn clear(self) -> SwapFolios<'w, W> {
        let (walk, set) = (self.walk, self.set);
        // INVARIANT: By the invariants, as `self` is in no `SwapFolios` yet. From here on it is.
        let cleared = FoundFolios { walk, set }.clear();
        SwapFolios {
            cleared,
            counted: self,
        }
    }

    #[inline]
    fn split(self, these: Option<FolioSet>) -> [Option<Self>; 2] {
        let (walk, set) = (self.walk, self.set);
        mem::forget(self);
        // INVARIANT: Each folio is in one of the two.
        set.split(these)
            .map(|set| set.map(|set| Self { walk, set }))
    }
}

impl<W: SwapFoliosWalk> Drop for CountedFolios<'_, W> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: By the invariants, they were counted, and none is written.
        unsafe { self.walk.put_swap(self.set) }
    }
}

/// Folios whose PTEs are cleared, while rmap, counters and references still count their mappings.
/// Dropped, they are mapped again.
///
/// Three things are not as they were then. A folio stays dirty if a PTE of it was. The PTEs of a
/// large one are all young and dirty if any was. A flush that was put off stays pending, and will
/// flush more than it must.
///
/// # Invariants
///
/// They were found and cleared at this stop; their PTEs are none, and their mappings were not
/// ended. No other state has a folio of the set, but the counts that are beside this in a
/// [`SwapFolios`].
#[derive(Debug)]
#[must_use = "cleared folios are mapped again"]
pub struct ClearedFolios<'w, W: FoliosWalk> {
    walk: &'w W,
    set: FolioSet,
}

impl<'w, W: FoliosWalk> ClearedFolios<'w, W> {
    /// The walk, to look at folios while their PTEs are gone.
    #[inline]
    pub fn walk(&self) -> &'w W {
        self.walk
    }

    /// The folios.
    #[inline]
    pub fn set(&self) -> FolioSet {
        self.set
    }

    /// Maps those of them that are in `these` again: the others, if there are any.
    #[inline]
    pub fn restore(self, these: Option<FolioSet>) -> Option<Self> {
        let [these, rest] = self.split(these);
        drop(these);
        rest
    }

    /// Ends the mappings for good, with nothing in the place of the PTEs: the folios.
    #[inline]
    pub fn vanish(self) -> FolioSet {
        let (walk, set) = self.end();
        // SAFETY: By the invariants, they are cleared, and not ended. That is done once, as `self`
        // has ended.
        unsafe { walk.vanish(set) };
        set
    }

    #[inline]
    fn split(self, these: Option<FolioSet>) -> [Option<Self>; 2] {
        let (walk, set) = self.end();
        // INVARIANT: Each folio is in one of the two.
        set.split(these)
            .map(|set| set.map(|set| Self { walk, set }))
    }

    /// What it is of, which is not mapped again any more.
    #[inline]
    fn end(self) -> (&'w W, FolioSet) {
        let parts = (self.walk, self.set);
        mem::forget(self);
        parts
    }
}

impl<W: FoliosWalk> Drop for ClearedFolios<'_, W> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: By the invariants, they are cleared, and their mappings are counted.
        unsafe { self.walk.restore(self.set) }
    }
}

/// Cleared folios whose swap entries are counted. Dropped, they are mapped again, and then the
/// counts are put back, as Rust drops fields in this order.
///
/// # Invariants
///
/// Both are of the same folios.
#[derive(Debug)]
#[must_use = "cleared folios are mapped again"]
pub struct SwapFolios<'w, W: SwapFoliosWalk> {
    cleared: ClearedFolios<'w, W>,
    counted: CountedFolios<'w, W>,
}

impl<'w, W: SwapFoliosWalk> SwapFolios<'w, W> {
    /// Asks for pins, if a page is exclusive. Folios that may be pinned are mapped again, and their
    /// counts put back: the others, if there are any. No page of these can become pinned
    /// afterwards, as pinning needs a present PTE.
    ///
    /// Whether a page is exclusive does not change from here on. A page that is has no other
    /// mapping. One that is not could become so if this mm's mapping were not counted any more,
    /// which it is.
    #[inline]
    pub fn share(self) -> Option<ShareableFolios<'w, W>> {
        let walk = self.cleared.walk;
        let exclusive = walk.exclusive(self.cleared.set);
        let pinned = exclusive.and_then(|exclusive| {
            // (A1) before (A2), for all of them: a pin that is taken by a PTE which is gone is
            // counted by now, or its taker sees that the PTE is gone.
            walk.smp_mb();
            walk.maybe_dma_pinned(exclusive)
        });
        let [restored, rest] = self.split(pinned);
        drop(restored);
        let [_, exclusive] = exclusive.map_or([None; 2], |exclusive| exclusive.split(pinned));
        // INVARIANT: It was asked just now what is exclusive and pinned, which was split off.
        rest.map(|folios| ShareableFolios { folios, exclusive })
    }

    #[inline]
    fn split(self, these: Option<FolioSet>) -> [Option<Self>; 2] {
        let Self { cleared, counted } = self;
        let [cleared, rest] = cleared.split(these);
        let [counted, rest_counted] = counted.split(these);
        // INVARIANT: Both were of the same folios, and so are their parts.
        [cleared.zip(counted), rest.zip(rest_counted)]
            .map(|both| both.map(|(cleared, counted)| Self { cleared, counted }))
    }
}

/// The same, whose exclusive pages may become shareable.
///
/// # Invariants
///
/// No page of them that is exclusive is pinned, or can be. `exclusive` are those that have one.
#[derive(Debug)]
#[must_use = "cleared folios are mapped again"]
pub struct ShareableFolios<'w, W: SwapFoliosWalk> {
    folios: SwapFolios<'w, W>,
    exclusive: Option<FolioSet>,
}

impl<W: SwapFoliosWalk> ShareableFolios<'_, W> {
    /// Writes the swap entries, and ends the mappings for good. Nothing of it can fail. Returns the
    /// folios.
    #[inline]
    pub fn commit(self) -> FolioSet {
        let SwapFolios { cleared, counted } = self.folios;
        // From here on the counts are the entries', and nothing is mapped again.
        mem::forget(counted);
        let (walk, set) = cleared.end();
        // Before the first entry: swapoff must find it.
        // SAFETY: By the invariants, they are cleared. All become swap entries below.
        unsafe { walk.prepare_for_swap_entries(set) };
        if let Some(exclusive) = self.exclusive {
            // (A3)
            // SAFETY: They are cleared, and not mapped again. By the invariants, none is pinned.
            unsafe { walk.clear_anon_exclusive(exclusive) };
            // (A3) before (A4).
            walk.smp_mb_after_atomic();
        }
        // (A4)
        // SAFETY: They are cleared, their entries were counted, and the mm is on swapoff's list.
        // Their exclusive bits are cleared.
        unsafe { walk.set_swp_ptes(set) };
        // SAFETY: Their PTEs became swap entries just now. This is done once, as `self` has ended.
        unsafe { walk.end_mappings(set) };
        set
    }
}
