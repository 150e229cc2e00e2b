// SPDX-License-Identifier: GPL-2.0

//! Who else has to do with the PTEs of a batch, under the lock of their page table.
//!
//! | here      | in 7.3                                                          |
//! |-----------|-----------------------------------------------------------------|
//! | [`fork`]  | `copy_pte_range()`, mm/memory.c, of anonymous pages             |
//! | [`fault`] | `do_swap_page()`, same file, of a folio in the swap cache       |
//! | [`zap`]   | `zap_pte_range()`, same file, of anonymous pages                |
//! | [`mlock`] | `mlock_vma_pages_range()`, mm/mlock.c                           |
//!
//! Left out: `mm->write_protect_seq` of a fork, which makes GUP-fast give up, and the copy of a
//! page that is pinned.

use super::{
    maps,
    slots, //
};
use crate::{
    fault::FolioLock,
    folio::Folio,
    pte::{
        pte_pfn,
        PRESENT,
        SWAP,
        SWP_EXCLUSIVE,
        WRITE,
        YOUNG, //
    },
    unmap::Mm, //
};

/// A folio of which a word names a page, or a slot.
fn named(word: u64, folios: &[Folio]) -> Option<&Folio> {
    let slot = |folio: &Folio| {
        let slots = folio.swap.as_ref();
        slots.is_some_and(|slots| (slots.of(0)..slots.of(folio.nr)).contains(&pte_pfn(word)))
    };
    let swapped = word & SWAP != 0;
    folios
        .iter()
        .find(|folio| maps(word, folio) || swapped && slot(folio))
}

/// The parent's PTEs and entries come to the child, each under the lock of both page tables. A page
/// that is one mm's alone is shared from then on, and not writable; one that is pinned is copied,
/// which is not here.
pub fn fork(parent: &Mm, child: &Mm, folios: &[Folio]) {
    let mut rss = parent.lock();
    let mut child_rss = child.lock();
    for at in 0..parent.table.nr() {
        let word = parent.table.ptep_get(at);
        let Some(folio) = named(word, folios) else {
            continue;
        };
        if word & PRESENT == 0 {
            let page = slots(folio).page(pte_pfn(word));
            assert!(slots(folio).dup(page..page + 1), "there is room");
            child_rss.swapents += 1;
            parent.table.get_and_clear(at);
            parent.table.set(at, word & !SWP_EXCLUSIVE);
            child.table.set(at, word & !SWP_EXCLUSIVE);
            continue;
        }
        let page = pte_pfn(word) - folio.pfn;
        if folio.anon.is_exclusive(page) {
            if folio.anon.maybe_dma_pinned() {
                continue;
            }
            folio.anon.clear_exclusive(page);
        }
        folio.copy_present_ptes(1);
        child_rss.pages += 1;
        // ptep_set_wrprotect(); it stays as dirty as hardware made it.
        let word = parent.table.get_and_clear(at) & !WRITE;
        parent.table.set(at, word);
        // Old, and as dirty as the parent's: a mapping that is not shared.
        child.table.set(at, word & !YOUNG);
    }
    rss.hiwater = rss.hiwater.max(rss.pages);
}

/// A fault at a PTE: whether it brought a page back.
pub fn fault(mm: &Mm, folios: &[Folio], locks: &[FolioLock], at: usize, write: bool) -> bool {
    let word = mm.table.ptep_get(at);
    let Some(folio) = named(word, folios).filter(|_| word & SWAP != 0) else {
        return false;
    };
    let i = folios.iter().position(|one| one.pfn == folio.pfn);
    let lock = &locks[i.expect("it is one of them")];
    crate::fault::do_swap_page(mm, folio, lock, at, write)
}

/// Unmaps a PTE, with its page or its swap entry.
pub fn zap(mm: &Mm, folios: &[Folio], at: usize) {
    let mut rss = mm.lock();
    let word = mm.table.get_and_clear(at);
    let Some(folio) = named(word, folios) else {
        return;
    };
    if word & PRESENT != 0 {
        rss.pages -= 1;
        folio.zap_present_ptes(1);
    } else {
        rss.swapents -= 1;
        let page = slots(folio).page(pte_pfn(word));
        slots(folio).put(page..page + 1);
    }
}

/// Locks the VMA's pages in memory: those PTEs whose pages it found there.
pub fn mlock(mm: &Mm) -> Vec<usize> {
    mm.set_mlocked();
    let _ptl = mm.lock();
    let present = |&at: &usize| mm.table.ptep_get(at) & PRESENT != 0;
    mm.layout.vma.clone().filter(present).collect()
}
