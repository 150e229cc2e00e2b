// SPDX-License-Identifier: GPL-2.0

//! What others do to a folio that reclaim has isolated, by any thread and at any time: those that
//! have to do with the mm that maps it. [`super::of_file`] has those of its file.
//!
//! Each does what C does under C's conditions, and flushes where C does, and nowhere else:
//!
//! | who                        | C, 7.3                                   | if                        | flushes                                  |
//! |----------------------------|------------------------------------------|---------------------------|------------------------------------------|
//! | [`Machine::fault`]         | `do_swap_page()`, mm/memory.c            | in the swap cache, locked, its entry still there | never             |
//! | same, of a file            | `do_read_fault()`, `do_shared_fault()`, `do_wp_page()`, same file | locked, of the file | never                  |
//! | [`Machine::fault_around`]  | `filemap_map_pages()`, mm/filemap.c      | locked, of the file, its PTE none; not asking for a hole that is punched | never |
//! | [`Machine::swapoff`]       | `unuse_pte()`, `folio_free_swap()`, mm/swapfile.c | as a swap fault  | never                                    |
//! | [`Machine::zap`]           | `zap_pte_range()`, mm/memory.c           | always                    | what was put off for the mm, with the lock of the page table; its own if a PTE was present: of a file's dirty page under that lock, else before the references are dropped |
//! | [`Machine::uffd_move`]     | `move_swap_pte()`, mm/userfaultfd.c      | in the swap cache, locked, its entry still there | what was put off for the mm, by patches/dirty_flush/0007 |
//! | [`Machine::pin_and_write`] | `gup_fast_pte_range()`, mm/gup.c, and a driver that writes | its PTE writable | never                          |
//! | [`Machine::free_swap`]     | `folio_free_swap()`, mm/swapfile.c       | locked, in the swap cache, no entry of it left, not being written | never |
//!
//! A file's fault marks the folio dirty before it maps it for writing (`page_mkwrite()`,
//! `fault_dirty_shared_page()`), and maps what is not shmem's for reading only otherwise, so that a
//! write is noticed; shmem's is mapped for writing, by a PTE that is as dirty as the folio. A zap does
//! not take the dirty bit of an anonymous page to its folio.
//!
//! Whoever wants the folio lock and does not get it gives up: that he waits is what comes of the
//! same thread a little later, which is another interleaving.
//!
//! Left out, as it comes to the same as one of these here:
//!
//! * reading from swap, and a write fault of a page that has left the swap cache: a fault that does not
//!   find the folio there does nothing;
//! * GUP that is not fast: what GUP-fast does, under the lock of the page table;
//! * mprotect(), mremap(), MADV_FREE: the pending flush of a zap, and then less; UFFDIO_MOVE of a PTE
//!   that is present: a flush of that page;
//! * UFFDIO_CONTINUE: what a fault-around does, but read-only. It is of shmem, for which no flush of
//!   anything writable is owed where it is not locked;
//! * memory failure and device-exclusive access, which unmap as [`super::pageout`] does what is
//!   poisoned: they flush with the lock of the page table.
//!
//! Left out, as one PTE of one mm cannot have it: fork() and KSM, which share a page. fork() copies
//! the entry and flushes the mm before the child runs; KSM asks for a PTE that is present, and flushes
//! for that address under the folio lock and that of the page table. Left out, as reclaim has
//! isolated the folio, or has its reference: migration, compaction and the split of a folio; of those
//! [`Machine::collapse_file`] is here, which unmaps folios of an LRU list.

use super::{
    Flag,
    Folio,
    Machine,
    Mapping, //
};
use crate::{
    gup::{
        pin_fast,
        Pin, //
    },
    pte::{
        pte,
        DIRTY,
        PRESENT,
        SWAP,
        WRITE,
        YOUNG, //
    },
    sync::step, //
};

impl Machine {
    /// What somebody does who finds a folio, and gets its lock; `None` if he does not.
    pub(super) fn found_and_locked<T>(
        &self,
        index: usize,
        does: impl FnOnce(&Folio) -> T,
    ) -> Option<T> {
        let folio = self.folio(index);
        if !folio.core.try_get() {
            return None;
        }
        let done = folio.trylock().then(|| {
            let done = does(folio);
            folio.unlock();
            done
        });
        // The reference that was for finding it.
        self.put(index, 1);
        done
    }

    /// A fault at a folio's PTE: whether the folio is mapped now as it asks for.
    pub fn fault(&self, index: usize, write: bool) -> bool {
        let orig = self.table.ptep_get(index);
        if orig & PRESENT != 0 && (!write || orig & WRITE != 0) {
            return false;
        }
        self.found_and_locked(index, |folio| {
            let bits = match folio.mapping() {
                Some(Mapping::Swap) if orig & SWAP == 0 => return false,
                Some(Mapping::Swap) if write => WRITE | DIRTY,
                Some(Mapping::Swap) => WRITE,
                Some(_) if orig & SWAP != 0 => return false,
                Some(_) if write => {
                    folio.core.mark_dirty();
                    WRITE | DIRTY
                }
                Some(mapping) => of_file(folio, mapping),
                None => return false,
            };
            self.map(index, orig, YOUNG | bits)
        })
        .unwrap_or(false)
    }

    /// A fault elsewhere maps what is about it, too: whether that is this folio.
    pub fn fault_around(&self, index: usize) -> bool {
        self.found_and_locked(index, |folio| match folio.mapping() {
            Some(mapping @ (Mapping::Shmem | Mapping::File)) => {
                self.map(index, 0, YOUNG | of_file(folio, mapping))
            }
            Some(Mapping::Swap) | None => false,
        })
        .unwrap_or(false)
    }

    /// The swap device goes: whether the page is mapped again, read-only and old, and has left the swap
    /// cache.
    pub fn swapoff(&self, index: usize) -> bool {
        let orig = self.table.ptep_get(index);
        self.found_and_locked(index, |folio| {
            let found = orig & SWAP != 0 && folio.mapping() == Some(Mapping::Swap);
            let mapped = found && self.map(index, orig, 0);
            if mapped {
                self.free_swap(index);
            }
            mapped
        })
        .unwrap_or(false)
    }

    /// Maps a folio that is locked, if its PTE is what it was.
    fn map(&self, index: usize, orig: u64, bits: u64) -> bool {
        let folio = self.folio(index);
        let _ptl = self.lock_ptes();
        if self.table.ptep_get(index) != orig {
            return false;
        }
        if orig & PRESENT == 0 {
            folio.core.get(folio.nr() as i32);
            folio.add_rmap(1);
        } else {
            // Made writable: in two steps, of which hardware faults in between.
            self.table.get_and_clear(index);
        }
        if orig & SWAP != 0 {
            // Each entry is exclusive here.
            folio.core.anon.set_exclusive(0);
        }
        self.table.set(index, pte(folio.core.pfn, bits));
        step!("folio {index} is mapped again");
        true
    }

    /// The range that a folio is in is unmapped, with its swap entry.
    pub fn zap(&self, index: usize) {
        let folio = self.folio(index);
        let mut ptl = self.lock_ptes();
        ptl.flush(&self.cpus);
        let was = self.table.get_and_clear(index);
        let present = was & PRESENT != 0;
        let flushed = present && was & DIRTY != 0 && !folio.anon;
        if flushed {
            folio.core.mark_dirty();
            // tlb_delay_rmap(): a flusher waits for this lock, or finds it mapped and dirty.
            self.cpus.flush_page(index);
        }
        if present {
            folio.add_rmap(-1);
        }
        drop(ptl);
        step!("folio {index} is zapped");
        if present && !flushed {
            self.cpus.flush_page(index);
        }
        if folio.anon && was != 0 {
            folio.give_up();
        }
        if present {
            self.put(index, folio.nr() as i32);
        }
        if was & SWAP != 0 {
            self.found_and_locked(index, |_| self.free_swap(index));
        }
    }

    /// Takes a folio out of the swap cache, whose slot nobody names. The caller has it locked.
    pub fn free_swap(&self, index: usize) {
        let folio = self.folio(index);
        let named = self.table.ptep_get(index) & SWAP != 0 || folio.is_moved();
        if folio.mapping() != Some(Mapping::Swap) || named || folio.test(Flag::Writeback) {
            return;
        }
        folio.set_mapping(None);
        folio.core.mark_dirty();
        step!("folio {index} leaves the swap cache");
        self.put(index, folio.nr() as i32);
    }

    /// The mm moves a page that is in the swap cache to another address: whether it did.
    pub fn uffd_move(&self, index: usize) -> bool {
        let orig = self.table.ptep_get(index);
        self.found_and_locked(index, |folio| {
            if orig & SWAP == 0 || folio.mapping() != Some(Mapping::Swap) {
                return false;
            }
            let mut ptl = self.lock_ptes();
            if self.table.ptep_get(index) != orig {
                return false;
            }
            ptl.flush(&self.cpus);
            // It is set at the other address, which is not here.
            self.table.get_and_clear(index);
            drop(ptl);
            folio.move_away();
            step!("folio {index} is at another address");
            true
        })
        .unwrap_or(false)
    }

    /// GUP-fast for writing, which writes, and says so; it has the pin still.
    pub fn pin_and_write(&self, index: usize) -> Option<Pin<'_>> {
        let folio = self.folio(index);
        let pin = pin_fast(&self.table, index, &folio.core, true)?;
        folio.write_pinned();
        folio.core.mark_dirty();
        Some(pin)
    }
}

/// The bits by which a read fault maps a page of a file.
fn of_file(folio: &Folio, mapping: Mapping) -> u64 {
    match mapping {
        Mapping::Shmem if folio.core.is_dirty() => WRITE | DIRTY,
        Mapping::Shmem => WRITE,
        Mapping::Swap | Mapping::File => 0,
    }
}

#[cfg(test)]
mod tests;
