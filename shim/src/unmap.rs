// SPDX-License-Identifier: GPL-2.0

//! The port of unmapping: the PTEs of a VMA under their page table lock.
//!
//! | here                          | in 7.3                                                      |
//! |-------------------------------|-------------------------------------------------------------|
//! | [`Mm`]                        | an mm of one VMA, its page tables, its rss                   |
//! | [`Mm::walk`]                  | `page_vma_mapped_walk()` at a present PTE, mm/page_vma_mapped.c |
//! | `clear_flush_ptes()`          | `get_and_clear_ptes()`, include/linux/pgtable.h, where merging a dirty bit does not make a PTE soft-dirty (patches/fixes/), and `flush_or_defer()`, mm/rmap.c |
//! | `set_ptes()`                  | `set_ptes()`, include/linux/pgtable.h                        |
//! | `end_mappings()`              | `update_hiwater_rss()`, `add_mm_counter()`, `folio_remove_rmap_ptes()` and `folio_put_refs()`, in this order |
//! | `vanish()`                    | `cond_install_uffd_wp_ptes()`, mm/memory.c, and that          |
//! | the rest                      | [`crate::folio`]                                             |
//!
//! A read beyond the VMA or beyond the page table panics, as does an order of doing things that
//! [`crate::order`] does not know, and a walk that is dropped with a run half done.
//!
//! Left out: the rmap walk itself, mmu notifiers, mlock, per-CPU parts of counters, what a flush
//! does.

// Ports promise what is in their traits' Safety sections.
#![allow(unsafe_code)]

use crate::{
    folio::Folio,
    order::{
        Event,
        Flag,
        Log, //
    },
    pte::{
        pte_pfn,
        Table,
        CONT,
        DIRTY,
        PFN_SHIFT,
        PRESENT,
        SOFT_DIRTY,
        SWAP,
        UFFD_WP,
        UFFD_WP_MARKER,
        WRITE,
        YOUNG, //
    },
    smp,
    sync::{
        atomic::AtomicBool,
        Mutex,
        MutexGuard, //
    }, //
};
use mm_batch::{
    pte::{
        Pte,
        PteArch,
        PteFormat,
        Respect, //
    },
    pte_run::{
        PteIndex,
        PteTable,
        Reach,
        RunLength, //
    },
    unmap::{
        Cleared,
        Part,
        UnmapWalk, //
    }, //
};
use std::{
    cell::{
        Cell,
        RefCell, //
    },
    num::NonZero,
    ops::Range, //
};

/// What a model starts from.
#[derive(Clone, Debug)]
pub struct Layout {
    /// PTEs per page table.
    pub table: usize,
    /// The VMA, in PTEs.
    pub vma: Range<usize>,
    /// Registered with userfaultfd for write protection.
    pub uffd_wp: bool,
    /// Of a file: markers are left in its page tables.
    pub of_file: bool,
    /// `VM_DROPPABLE`.
    pub droppable: bool,
    /// PTEs per group of those with `CONT`, aligned.
    pub group: usize,
}

impl Layout {
    /// A VMA of a file over so many PTEs, in one page table.
    pub fn file(nr: usize) -> Self {
        Self {
            table: nr,
            vma: 0..nr,
            uffd_wp: false,
            of_file: true,
            droppable: false,
            group: 1,
        }
    }

    /// The same, anonymous.
    pub fn anonymous(nr: usize) -> Self {
        Self {
            of_file: false,
            ..Self::file(nr)
        }
    }
}

/// Counters of an mm, under the page table lock here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rss {
    /// Mapped pages of the kind that is unmapped.
    pub pages: i64,
    /// Swap entries.
    pub swapents: i64,
    /// The peak, as far as it was told.
    pub hiwater: i64,
}

/// An mm of one VMA.
#[derive(Debug)]
pub struct Mm {
    /// What it started from.
    pub(crate) layout: Layout,
    /// Its page tables, in a row: for hardware and GUP-fast, which take no lock.
    pub table: Table,
    ptl: Mutex<Rss>,
    /// `VM_LOCKED`.
    mlocked: AtomicBool,
}

impl Mm {
    /// A VMA whose PTEs are `words`.
    pub fn new(layout: Layout, words: &[u64]) -> Self {
        let count = |bit| words.iter().filter(|&word| word & bit != 0).count() as i64;
        let rss = Rss {
            pages: count(PRESENT),
            swapents: count(SWAP),
            hiwater: 0,
        };
        Self {
            layout,
            table: Table::new(words),
            ptl: Mutex::new(rss),
            mlocked: AtomicBool::new(false),
        }
    }

    /// Whether the VMA is `VM_LOCKED`.
    pub(crate) fn is_mlocked(&self) -> bool {
        smp::read_once(&self.mlocked)
    }

    /// Makes it that.
    pub(crate) fn set_mlocked(&self) {
        smp::write_once(&self.mlocked, true);
    }

    /// Runs `unmap` at the PTE `at`, which maps a page of `folio`, with the page table lock held;
    /// also returns what was done.
    ///
    /// # Panics
    ///
    /// If the PTE is not present, or a run is half done in the end.
    pub fn walk<T>(
        &self,
        folio: &Folio,
        at: usize,
        unmap: impl FnOnce(Walk<'_>) -> T,
    ) -> (T, Vec<Event>) {
        let mut rss = self.lock();
        let first = self.table.ptep_get_of_group(at, self.layout.group);
        assert_ne!(first & PRESENT, 0, "a walk stops at what maps nothing");
        let locked = Locked {
            rss: Cell::new(*rss),
            merged: Cell::new(0),
            log: RefCell::default(),
        };
        let result = unmap(Walk {
            mm: self,
            folio,
            at,
            first,
            locked: &locked,
        });
        *rss = locked.rss.get();
        locked.log.borrow().unlock();
        (result, locked.log.into_inner().events().to_vec())
    }

    /// The counters.
    pub fn rss(&self) -> Rss {
        *self.lock()
    }

    /// The page table lock.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Rss> {
        self.ptl.lock().expect("a thread of the model panicked")
    }
}

/// What the page table lock protects, while a walk has it.
#[derive(Debug)]
struct Locked {
    rss: Cell<Rss>,
    /// The word of the PTEs that were cleared last.
    merged: Cell<u64>,
    log: RefCell<Log>,
}

/// A walk that has stopped at a PTE: the port's implementation.
#[derive(Debug)]
pub struct Walk<'m> {
    pub(crate) mm: &'m Mm,
    pub(crate) folio: &'m Folio,
    at: usize,
    /// The PTE that it has stopped at.
    first: u64,
    locked: &'m Locked,
}

impl Walk<'_> {
    /// A PTE's place in the row of page tables.
    fn place(&self, index: u32) -> usize {
        let place = self.at + index as usize;
        assert!(
            self.mm.layout.vma.contains(&place),
            "PTE {place} is beyond the VMA"
        );
        assert_eq!(
            place / self.mm.layout.table,
            self.at / self.mm.layout.table,
            "PTE {place} is beyond the page table"
        );
        place
    }

    /// The places of `nr` PTEs from the one at `index` on.
    pub(crate) fn places(&self, index: u32, nr: RunLength) -> Range<usize> {
        self.place(index)..self.place(index + nr.get() - 1) + 1
    }

    /// The pages of a run's `nr` PTEs from the one at `index` on, in pages from the folio's first.
    pub(crate) fn pages(&self, index: u32, nr: RunLength) -> Range<usize> {
        let first = pte_pfn(self.locked.merged.get()) - self.folio.pfn + index as usize;
        first..first + nr.get() as usize
    }

    /// Changes the counters.
    pub(crate) fn count(&self, change: impl FnOnce(&mut Rss)) {
        let mut rss = self.locked.rss.get();
        change(&mut rss);
        self.locked.rss.set(rss);
    }

    /// Notes what was done.
    pub(crate) fn note(&self, event: Event) {
        self.locked.log.borrow_mut().note(event);
    }

    /// Notes what was asked, and hands on the answer.
    pub(crate) fn asked(&self, flag: Flag, is: bool) -> bool {
        self.note(Event::Asked(flag, is));
        is
    }

    /// What was done so far.
    pub fn events(&self) -> Vec<Event> {
        self.locked.log.borrow().events().to_vec()
    }

    /// The page tables.
    pub fn table(&self) -> &Table {
        &self.mm.table
    }
}

/// What the shim's PTEs are like.
#[derive(Debug)]
pub struct Arch;

// SAFETY: They are what crate::pte says.
unsafe impl PteArch for Arch {
    fn format(_pte: Pte, respect: Respect) -> PteFormat {
        PteFormat {
            ignored: respect.ignored(YOUNG, DIRTY, WRITE, SOFT_DIRTY),
            step: 1 << PFN_SHIFT,
        }
    }
}

// SAFETY: By the layout; `place()` panics beyond its ends.
unsafe impl PteTable for Walk<'_> {
    type Arch = Arch;

    fn reach(&self) -> Reach {
        let pfn = pte_pfn(self.first);
        let nr = |pages: usize| NonZero::new(pages).expect("the walk's PTE is within");
        Reach {
            vma: nr(self.mm.layout.vma.end - self.at),
            table: nr(self.mm.layout.table - self.at % self.mm.layout.table),
            folio: nr(self.folio.pfn + self.folio.nr - pfn),
        }
    }

    fn first(&self) -> Pte {
        Pte::new(self.first)
    }

    fn ptep_get(at: &PteIndex<'_, Self>) -> Pte {
        let Self { mm, .. } = at.table();
        let place = at.table().place(at.get());
        Pte::new(mm.table.ptep_get_of_group(place, mm.layout.group))
    }

    fn pte_batch_hint(at: &PteIndex<'_, Self>, pte: Pte) -> NonZero<u32> {
        if pte.raw() & CONT == 0 {
            return NonZero::<u32>::MIN;
        }
        let group = at.table().mm.layout.group;
        let left = group - (at.table().at + at.get() as usize) % group;
        NonZero::new(left as u32).expect("less than a group")
    }
}

// SAFETY: All methods work on `mm`, from `at` on.
unsafe impl UnmapWalk for Walk<'_> {
    type View = Self;

    fn view(&self) -> &Self {
        self
    }

    unsafe fn clear_flush_ptes(&self, nr: RunLength) -> Cleared {
        let group = self.mm.layout.group;
        let run = self.places(0, nr);
        let groups = run.start / group * group..run.end.next_multiple_of(group);
        groups
            .filter(|&place| place < self.mm.table.nr())
            .for_each(|place| self.mm.table.unfold(place));
        let mut first = None;
        for place in run {
            let word = self.mm.table.get_and_clear(place);
            assert_ne!(word & PRESENT, 0, "PTE {place} was not present");
            first = Some(first.unwrap_or(word) | word & (YOUNG | DIRTY));
        }
        let merged = first.expect("a run is not empty");
        self.locked.merged.set(merged);
        self.note(Event::Cleared(nr.get()));
        Cleared {
            first: Pte::new(merged),
            dirty: merged & DIRTY != 0,
        }
    }

    fn smp_mb(&self) {
        smp::smp_mb();
        self.note(Event::Ordered);
    }

    fn folio_test_swapcache(&self) -> bool {
        self.asked(Flag::Swapcache, self.folio.swap.is_some())
    }

    fn warn_swapcache(&self) {
        self.note(Event::Warned);
    }

    fn folio_mark_dirty(&self) {
        self.folio.mark_dirty();
        self.note(Event::MarkedDirty);
    }

    unsafe fn flush_before_restore(&self, cleared: &Part<Self>) {
        self.note(Event::FlushedAgain(cleared.nr().get()));
    }

    unsafe fn set_ptes(&self, cleared: &Part<Self>) {
        for (place, i) in self.places(cleared.at(), cleared.nr()).zip(0..) {
            let word = cleared.first().raw() + (i << PFN_SHIFT);
            self.mm.table.set(place, word);
        }
        self.note(Event::Restored(cleared.nr().get()));
    }

    unsafe fn end_mappings(&self, nr: RunLength) {
        self.count(|rss| {
            rss.hiwater = rss.hiwater.max(rss.pages);
            rss.pages -= i64::from(nr.get());
        });
        self.folio.remove_rmap(nr.get() as i32);
        self.folio.put_refs(nr.get() as i32);
        self.note(Event::Unmapped(nr.get()));
    }

    unsafe fn vanish(&self, cleared: &Part<Self>) {
        self.note(Event::LeftBehind(cleared.nr().get()));
        let layout = &self.mm.layout;
        if layout.of_file && layout.uffd_wp && cleared.first().raw() & UFFD_WP != 0 {
            for place in self.places(cleared.at(), cleared.nr()) {
                let was = self.mm.table.set(place, UFFD_WP_MARKER);
                assert_eq!(was, 0, "PTE {place} is not none");
            }
        }
        // SAFETY: By the method's requirement.
        unsafe { self.end_mappings(cleared.nr()) }
    }
}

#[cfg(test)]
mod tests;
