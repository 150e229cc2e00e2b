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
