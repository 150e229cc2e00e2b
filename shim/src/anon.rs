// SPDX-License-Identifier: GPL-2.0

//! Anonymous pages: whether each is one mm's alone, and who has pinned it.
//!
//! | here                        | in 7.3                                                      |
//! |-----------------------------|-------------------------------------------------------------|
//! | [`Anon::is_exclusive`] and what changes it | `PageAnonExclusive()` etc., include/linux/page-flags.h |
//! | [`Anon::maybe_dma_pinned`]  | `folio_maybe_dma_pinned()`, include/linux/mm.h, of a large folio |
//! | [`pin_fast`]                | `gup_fast_pte_range()`, mm/gup.c, for one PTE and `FOLL_PIN`, with `try_grab_folio_fast()` |
//! | [`Pin::put`]                | `gup_put_folio()`, same file                                |
//!
//! The steps of [`pin_fast`] are called as the comment of `__folio_try_share_anon_rmap()`,
//! include/linux/rmap.h, calls them: (B1) to (B5).
//!
//! Left out: the check of the PMD, `FOLL_LONGTERM`, KSM pages (never exclusive, so never pinned),
//! counting a pin of a small folio by its references.

use crate::{
    folio::Folio,
    pte::{
        pte_pfn,
        Table,
        PRESENT,
        PROT_NONE,
        WRITE, //
    },
    smp,
    sync::{
        atomic::{
            AtomicI32,
            AtomicU64,
            Ordering::Relaxed, //
        },
        step, //
    }, //
};

const EXCLUSIVE: u64 = 1 << 0;

/// What is anonymous about a folio.
#[derive(Debug)]
pub struct Anon {
    /// Of each page, its flags.
    flags: Vec<AtomicU64>,
    pincount: AtomicI32,
}

impl Anon {
    /// Of a folio of `nr` pages, which may be shared, and which nobody has pinned.
    pub(crate) fn new(nr: usize) -> Self {
        Self {
            flags: (0..nr).map(|_| AtomicU64::new(0)).collect(),
            pincount: AtomicI32::new(0),
        }
    }

    /// Makes a page one mm's alone.
    pub fn set_exclusive(&self, page: usize) {
        self.flags[page].fetch_or(EXCLUSIVE, Relaxed);
        step!("page {page} is exclusive");
    }

    /// Lets it be shared. What comes behind it is not ordered.
    pub fn clear_exclusive(&self, page: usize) {
        self.flags[page].fetch_and(!EXCLUSIVE, Relaxed);
        step!("page {page} is not exclusive");
        // Whoever shares it has an smp_mb__after_atomic() behind the last of them.
        smp::place_to_switch(&self.flags[page]);
    }

    /// Whether it is one mm's alone.
    pub fn is_exclusive(&self, page: usize) -> bool {
        let exclusive = self.flags[page].load(Relaxed) & EXCLUSIVE != 0;
        step!("PageAnonExclusive({page}) = {exclusive}");
        exclusive
    }

    /// Whether a page of it is pinned.
    pub fn maybe_dma_pinned(&self) -> bool {
        let pins = self.pincount.load(Relaxed);
        step!("folio_maybe_dma_pinned(), {pins} pins");
        pins > 0
    }

    /// The pins: at the end of a test.
    pub fn pins(&self) -> i32 {
        self.pincount.load(Relaxed)
    }

    fn pin(&self) {
        self.pincount.fetch_add(1, Relaxed);
        step!("pinned");
    }

    fn unpin(&self) {
        let left = self.pincount.fetch_sub(1, Relaxed) - 1;
        step!("unpinned, {left} pins left");
        assert!(left >= 0, "a pin was dropped twice");
    }
}

/// A page that GUP-fast has pinned: it stays the mm's alone for as long.
#[derive(Debug)]
pub struct Pin<'f> {
    folio: &'f Folio,
    /// Which one, in pages from the folio's first.
    pub page: usize,
}

impl Pin<'_> {
    /// Drops it.
    pub fn put(self) {
        self.folio.anon.unpin();
        self.folio.put_refs(1);
    }
}

/// GUP-fast with `FOLL_PIN`, at one PTE.
pub fn pin_fast<'f>(table: &Table, index: usize, folio: &'f Folio, write: bool) -> Option<Pin<'f>> {
    // (B1)
    let pte = table.ptep_get(index);
    if pte & (PRESENT | PROT_NONE) != PRESENT || !folio.has(pte_pfn(pte)) {
        return None;
    }
    // (B2)
    if write && pte & WRITE == 0 {
        return None;
    }
    // (B3)
    if !folio.try_get() {
        return None;
    }
    folio.anon.pin();
    smp::smp_mb();
    let pin = Pin {
        folio,
        page: pte_pfn(pte) - folio.pfn,
    };
    // (B4)
    if table.ptep_get(index) != pte {
        pin.put();
        return None;
    }
    // (B5)
    if pte & WRITE == 0 {
        smp::smp_rmb();
        if !folio.anon.is_exclusive(pin.page) {
            pin.put();
            return None;
        }
    }
    Some(pin)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        pte::pte,
        sync::explore, //
    };

    #[test]
    fn a_pin_wants_a_page_that_is_exclusive_or_written_to() {
        explore(|| {
            let folio = Folio::new(8, 4);
            let words = [
                pte(8, WRITE),
                pte(9, 0),
                pte(10, 0),
                pte(11, WRITE | PROT_NONE),
                pte(12, WRITE),
            ];
            let table = Table::new(&words);
            folio.anon.set_exclusive(0);
            folio.anon.set_exclusive(1);
            let pinned = |write: bool| {
                [0, 1, 2, 3, 4].map(|i| pin_fast(&table, i, &folio, write).map(Pin::put).is_some())
            };
            assert_eq!(pinned(false), [true, true, false, false, false]);
            assert_eq!(pinned(true), [true, false, false, false, false]);
            assert_eq!((folio.anon.pins(), folio.ref_count()), (0, 1));
        });
    }

    #[test]
    fn a_pin_is_counted_until_it_is_dropped() {
        explore(|| {
            let folio = Folio::new(8, 2);
            let table = Table::new(&[pte(8, WRITE), pte(9, WRITE)]);
            let pin = pin_fast(&table, 1, &folio, true).expect("mapped");
            assert_eq!((pin.page, folio.ref_count()), (1, 2));
            assert!(folio.anon.maybe_dma_pinned());
            pin.put();
            assert!(!folio.anon.maybe_dma_pinned());
        });
    }

    #[test]
    #[should_panic(expected = "a pin was dropped twice")]
    fn a_pin_dropped_twice_is_noticed() {
        explore(|| Folio::new(8, 1).anon.unpin());
    }
}
