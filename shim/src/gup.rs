// SPDX-License-Identifier: GPL-2.0

//! GUP-fast at one PTE: it reads the PTE without a lock, takes a reference or a pin, and reads it
//! again.
//!
//! | here                         | in 7.3, mm/gup.c                                                   |
//! |------------------------------|--------------------------------------------------------------------|
//! | [`gup_fast`]                 | `gup_fast_pte_range()`, for one PTE and `FOLL_GET`                  |
//! | [`Pinned::write_and_put`]    | what a driver does with the page: write, `set_page_dirty()`        |
//! | [`pin_fast`]                 | `gup_fast_pte_range()`, for one PTE and `FOLL_PIN`, with `try_grab_folio_fast()` |
//! | [`Pin::put`]                 | `gup_put_folio()`                                                  |
//!
//! The steps of [`pin_fast`] are called as the comment of `__folio_try_share_anon_rmap()`,
//! include/linux/rmap.h, calls them: (B1) to (B5).
//!
//! Left out: the check of the PMD, `FOLL_LONGTERM`.

use crate::{
    folio::Folio,
    pte::{
        pte_pfn,
        Table,
        PRESENT,
        PROT_NONE,
        WRITE, //
    },
    smp, //
};

/// A reference that GUP-fast took: one may read and write the page without a mapping of it.
#[derive(Debug)]
pub struct Pinned<'f>(&'f Folio);

impl Pinned<'_> {
    /// Writes to the page, says so, and drops the reference, in this order.
    pub fn write_and_put(self) {
        self.0.write();
        self.0.mark_dirty();
        self.0.put_refs(1);
    }

    /// Drops the reference.
    pub fn put(self) {
        self.0.put_refs(1);
    }
}

/// GUP-fast for writing, at one PTE: read it, take a reference, read it again.
pub fn gup_fast<'f>(table: &Table, index: usize, folio: &'f Folio) -> Option<Pinned<'f>> {
    let pte = table.ptep_get(index);
    if pte & (PRESENT | WRITE) != PRESENT | WRITE || !folio.has(pte_pfn(pte)) {
        return None;
    }
    if !folio.try_get() {
        return None;
    }
    if table.ptep_get(index) != pte {
        folio.put_refs(1);
        return None;
    }
    Some(Pinned(folio))
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
    fn gup_takes_what_is_mapped_and_writable() {
        explore(|| {
            let folio = Folio::new(8, 2);
            let table = Table::new(&[pte(8, WRITE), pte(9, 0), pte(10, WRITE), 0]);
            let taken = |i| gup_fast(&table, i, &folio).map(Pinned::put).is_some();
            assert_eq!(
                [taken(0), taken(1), taken(2), taken(3)],
                [true, false, false, false]
            );
            assert_eq!(folio.ref_count(), 1);
        });
    }

    #[test]
    fn a_pinned_write_leaves_the_flag() {
        explore(|| {
            let folio = Folio::new(8, 1);
            let table = Table::new(&[pte(8, WRITE)]);
            gup_fast(&table, 0, &folio).expect("mapped").write_and_put();
            assert!(folio.is_dirty());
            assert_eq!((folio.written(), folio.ref_count()), (1, 1));
        });
    }

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
}
