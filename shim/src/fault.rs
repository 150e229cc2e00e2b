// SPDX-License-Identifier: GPL-2.0

//! A swap fault: a page that is still in the swap cache is mapped again.
//!
//! | here                 | in 7.3                                                           |
//! |----------------------|------------------------------------------------------------------|
//! | [`do_swap_page`]     | `do_swap_page()`, mm/memory.c, for one page of a large folio that is found in the swap cache |
//! | [`FolioLock`]        | `folio_lock()`, include/linux/pagemap.h                          |
//!
//! Left out: reading from swap, the folio's leaving of the swap cache, faults around, a fault of a
//! page that was not exclusive and is to be written to (it is copied, by another fault).

use crate::{
    folio::Folio,
    pte::{
        pte,
        pte_pfn,
        DIRTY,
        SOFT_DIRTY,
        SWAP,
        SWP_EXCLUSIVE,
        SWP_SOFT_DIRTY,
        SWP_UFFD,
        UFFD_WP,
        WRITE,
        YOUNG, //
    },
    sync::{
        step,
        Mutex,
        MutexGuard, //
    },
    unmap::Mm, //
};

/// The lock of a folio that is unmapped by one thread and mapped by another.
#[derive(Debug, Default)]
pub struct FolioLock(Mutex<()>);

impl FolioLock {
    /// Takes it.
    pub fn lock(&self) -> MutexGuard<'_, ()> {
        self.0.lock().expect("a thread of the model panicked")
    }
}

/// A fault at a PTE, for reading, or for writing; whether a page was mapped.
pub fn do_swap_page(mm: &Mm, folio: &Folio, lock: &FolioLock, index: usize, write: bool) -> bool {
    let orig = mm.table.ptep_get(index);
    if orig & SWAP == 0 {
        return false;
    }
    let _locked = lock.lock();
    let mut rss = mm.lock();
    if mm.table.ptep_get(index) != orig {
        return false;
    }
    let slots = folio
        .swap
        .as_ref()
        .expect("a swap entry of a folio with none");
    let page = slots.page(pte_pfn(orig));
    let exclusive = orig & SWP_EXCLUSIVE != 0;
    slots.put(page..page + 1);
    rss.pages += 1;
    rss.swapents -= 1;
    folio.get(1);
    folio.add_rmap(1);
    if exclusive {
        folio.anon.set_exclusive(page);
    }
    let bit = |there, bits| if there { bits } else { 0 };
    let bits = YOUNG
        | bit(exclusive && orig & SWP_UFFD == 0, WRITE)
        | bit(exclusive && orig & SWP_UFFD == 0 && write, DIRTY)
        | bit(orig & SWP_SOFT_DIRTY != 0, SOFT_DIRTY)
        | bit(orig & SWP_UFFD != 0, UFFD_WP);
    step!("page {page} is mapped again");
    mm.table.set(index, pte(folio.pfn + page, bits));
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        pte::swp_pte,
        swap::Slots,
        sync::explore,
        unmap::Layout, //
    };

    /// The PTE that a fault at a swap entry makes, and whether the page is one mm's alone then.
    fn faulted(bits: u64, write: bool) -> (u64, bool) {
        let mm = Mm::new(Layout::anonymous(2), &[0, swp_pte(65, bits)]);
        let folio = Folio::in_swap_cache(8, 2, Slots::new(64, &[1, 1], None));
        let lock = FolioLock::default();
        assert!(!do_swap_page(&mm, &folio, &lock, 0, write));
        assert!(do_swap_page(&mm, &folio, &lock, 1, write));
        assert!(!do_swap_page(&mm, &folio, &lock, 1, write));
        let slots = folio.swap.as_ref().expect("it is in the swap cache");
        assert_eq!(slots.counts(), [1, 0]);
        let rss = *mm.lock();
        assert_eq!((rss.pages, rss.swapents), (1, 0));
        assert_eq!((folio.mapcount(), folio.is_dirty()), (1, false));
        assert!(!folio.anon.is_exclusive(0));
        let pte = mm.table.ptep_get(1);
        assert_eq!(pte_pfn(pte), 9);
        (pte, folio.anon.is_exclusive(1))
    }

    #[test]
    fn a_page_is_mapped_as_its_entry_says() {
        explore(|| {
            let page = |bits, exclusive| (pte(9, YOUNG | bits), exclusive);
            let alone = SWP_EXCLUSIVE;
            assert_eq!(faulted(alone, true), page(WRITE | DIRTY, true));
            assert_eq!(faulted(alone, false), page(WRITE, true));
            assert_eq!(faulted(alone | SWP_UFFD, true), page(UFFD_WP, true));
            assert_eq!(
                faulted(alone | SWP_SOFT_DIRTY, false),
                page(WRITE | SOFT_DIRTY, true)
            );
            assert_eq!(faulted(0, true), page(0, false));
            assert_eq!(
                faulted(SWP_SOFT_DIRTY | SWP_UFFD, true),
                page(SOFT_DIRTY | UFFD_WP, false)
            );
        });
    }
}
