// SPDX-License-Identifier: GPL-2.0

//! The port of `file_unmap`: the PTEs of a VMA under their page table lock.
//!
//! | here                          | in 7.2                                                      |
//! |-------------------------------|-------------------------------------------------------------|
//! | [`Mm`]                        | an mm of one VMA, its page tables, its rss                   |
//! | [`Mm::walk`]                  | `page_vma_mapped_walk()` at a present PTE, mm/page_vma_mapped.c |
//! | `get_and_clear_ptes()`        | `get_and_clear_ptes()`, include/linux/pgtable.h              |
//! | `flush_tlb()`                 | `set_tlb_ubc_flush_pending()` or `flush_tlb_range()`         |
//! | `set_ptes()`                  | `set_ptes()`, include/linux/pgtable.h                        |
//! | `install_uffd_wp_markers()`   | `pte_install_uffd_wp_if_needed()`, include/linux/mm_inline.h |
//! | `add_mm_counter()`, `update_hiwater_rss()` | the same, include/linux/mm.h                    |
//! | `smp_mb()`, `smp_rmb()`       | [`crate::smp`]                                               |
//! | the rest                      | [`crate::folio`]                                             |
//!
//! A read beyond the VMA or beyond the page table panics, as does an order of doing things that
//! [`crate::order`] does not know, and a walk that is dropped with a run half done.
//!
//! Left out: the rmap walk itself, mmu notifiers, mlock, per-CPU parts of counters, what a flush
//! does.

use crate::{
    folio::Folio,
    order::{
        Event,
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
        UFFD_WP,
        UFFD_WP_MARKER,
        WRITE,
        YOUNG, //
    },
    smp,
    sync::Mutex, //
};
use mm_batch::{
    file_unmap::FileUnmapWalk,
    pte_batch::{
        Pte,
        PteIndex,
        PteTable,
        Reach,
        Respect,
        RunLength, //
    },
    pte_run::UnmapWalk, //
};
use std::{
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
    /// Without a file.
    pub anonymous: bool,
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
            anonymous: false,
            droppable: false,
            group: 1,
        }
    }

    /// The same, anonymous.
    pub fn anonymous(nr: usize) -> Self {
        Self {
            anonymous: true,
            ..Self::file(nr)
        }
    }
}

/// Counters of an mm, under the page table lock here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rss {
    /// Mapped pages of the kind that is unmapped.
    pub pages: i64,
    /// The peak, as far as it was told.
    pub hiwater: i64,
}

/// An mm of one VMA.
#[derive(Debug)]
pub struct Mm {
    layout: Layout,
    /// Its page tables, in a row: for hardware and GUP-fast, which take no lock.
    pub table: Table,
    ptl: Mutex<Rss>,
}

impl Mm {
    /// A VMA whose PTEs are `words`.
    pub fn new(layout: Layout, words: &[u64]) -> Self {
        let pages = words.iter().filter(|&word| word & PRESENT != 0).count() as i64;
        Self {
            layout,
            table: Table::new(words),
            ptl: Mutex::new(Rss { pages, hiwater: 0 }),
        }
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
        unmap: impl FnOnce(&mut Walk<'_>, Pte) -> T,
    ) -> (T, Vec<Event>) {
        let mut rss = self.ptl.lock().expect("a thread of the model panicked");
        let first = self.table.ptep_get_of_group(at, self.layout.group);
        assert_ne!(first & PRESENT, 0, "a walk stops at what maps nothing");
        let mut walk = Walk {
            mm: self,
            folio,
            at,
            rss: &mut rss,
            log: Log::default(),
        };
        let result = unmap(&mut walk, Pte::new(first));
        walk.log.unlock();
        (result, walk.log.events().to_vec())
    }

    /// The counters.
    pub fn rss(&self) -> Rss {
        *self.ptl.lock().expect("a thread of the model panicked")
    }
}

/// A walk that has stopped at a PTE: the port's implementation.
#[derive(Debug)]
pub struct Walk<'m> {
    mm: &'m Mm,
    folio: &'m Folio,
    at: usize,
    rss: &'m mut Rss,
    log: Log,
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

    fn places(&self, nr: RunLength) -> Range<usize> {
        self.at..self.place(nr.get() - 1) + 1
    }
}

impl PteTable for Walk<'_> {
    fn reach(&self) -> Reach {
        let pfn = pte_pfn(self.mm.table.ptep_get(self.at));
        Reach {
            vma: self.mm.layout.vma.end - self.at,
            table: self.mm.layout.table - self.at % self.mm.layout.table,
            folio: self.folio.pfn + self.folio.nr - pfn,
        }
    }

    fn ptep_get(&self, at: PteIndex) -> Pte {
        let place = self.place(at.get());
        Pte::new(self.mm.table.ptep_get_of_group(place, self.mm.layout.group))
    }

    fn pte_batch_hint(&self, at: PteIndex, pte: Pte) -> NonZero<u32> {
        if pte.raw() & CONT == 0 {
            return NonZero::<u32>::MIN;
        }
        let group = self.mm.layout.group;
        let left = group - (self.at + at.get() as usize) % group;
        NonZero::new(left as u32).expect("less than a group")
    }

    fn ignored(&self, respect: Respect) -> u64 {
        let unless = |respected, bits| if respected { 0 } else { bits };
        YOUNG
            | unless(respect.dirty, DIRTY)
            | unless(respect.soft_dirty, SOFT_DIRTY)
            | unless(respect.write, WRITE)
    }

    fn wrprotect(&self, pte: Pte) -> Pte {
        Pte::new(pte.raw() & !WRITE)
    }

    fn pfn_step(&self, _pte: Pte) -> u64 {
        1 << PFN_SHIFT
    }
}

impl UnmapWalk for Walk<'_> {
    fn get_and_clear_ptes(&mut self, nr: RunLength) -> Pte {
        let group = self.mm.layout.group;
        let run = self.places(nr);
        let groups = run.start / group * group..run.end.next_multiple_of(group);
        groups
            .filter(|&place| place < self.mm.table.nr())
            .for_each(|place| self.mm.table.unfold(place));
        let mut first = None;
        for place in run {
            let word = self.mm.table.get_and_clear(place);
            assert_ne!(word & PRESENT, 0, "PTE {place} was not present");
            let mut merged = first.unwrap_or(word) | word & (YOUNG | DIRTY);
            if word & DIRTY != 0 && first.is_some() {
                // As pte_mkdirty() does on x86.
                merged |= SOFT_DIRTY;
            }
            first = Some(merged);
        }
        self.log.note(Event::Cleared(nr.get()));
        Pte::new(first.expect("a run is not empty"))
    }

    fn flush_tlb(&mut self, _cleared: Pte, nr: RunLength) {
        self.log.note(Event::Flushed(nr.get()));
    }

    fn pte_dirty(&self, pte: Pte) -> bool {
        pte.raw() & DIRTY != 0
    }

    fn with_soft_dirty(&self, pte: Pte, as_in: Pte) -> Pte {
        Pte::new(pte.raw() & !SOFT_DIRTY | as_in.raw() & SOFT_DIRTY)
    }

    fn folio_mark_dirty(&mut self) {
        self.folio.mark_dirty();
        self.log.note(Event::MarkedDirty);
    }

    fn set_ptes(&mut self, pte: Pte, nr: RunLength) {
        for (place, i) in self.places(nr).zip(0..) {
            self.mm.table.set(place, pte.raw() + (i << PFN_SHIFT));
        }
        self.log.note(Event::Restored(nr.get()));
    }

    fn update_hiwater_rss(&mut self) {
        self.rss.hiwater = self.rss.hiwater.max(self.rss.pages);
        self.log.note(Event::Hiwater);
    }

    fn add_mm_counter(&mut self, pages: i64) {
        self.rss.pages += pages;
        self.log.note(Event::Counter(pages));
    }

    fn folio_remove_rmap_ptes(&mut self, nr: RunLength) {
        self.folio.remove_rmap(nr.get() as i32);
        self.log.note(Event::RmapRemoved(nr.get()));
    }

    fn folio_put_refs(&mut self, nr: RunLength) {
        self.folio.put_refs(nr.get() as i32);
        self.log.note(Event::RefsPut(nr.get()));
    }
}

impl FileUnmapWalk for Walk<'_> {
    fn userfaultfd_wp(&self) -> bool {
        self.mm.layout.uffd_wp
    }

    fn install_uffd_wp_markers(&mut self, cleared: Pte, nr: RunLength) {
        if self.mm.layout.anonymous || !self.mm.layout.uffd_wp || cleared.raw() & UFFD_WP == 0 {
            return;
        }
        for place in self.places(nr) {
            assert_eq!(self.mm.table.ptep_get(place), 0, "PTE {place} is not none");
            self.mm.table.set(place, UFFD_WP_MARKER);
        }
        self.log.note(Event::Markers(nr.get()));
    }

    fn smp_mb(&self) {
        smp::smp_mb();
    }

    fn smp_rmb(&self) {
        smp::smp_rmb();
    }

    fn folio_extra_refs(&self) -> i32 {
        self.folio.extra_refs()
    }

    fn folio_test_dirty(&self) -> bool {
        self.folio.is_dirty()
    }

    fn vma_droppable(&self) -> bool {
        self.mm.layout.droppable
    }

    fn folio_set_swapbacked(&mut self) {
        self.folio.set_swapbacked();
        self.log.note(Event::Swapbacked);
    }
}
