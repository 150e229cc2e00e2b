// SPDX-License-Identifier: GPL-2.0

//! What others do to a folio that reclaim has isolated, by any thread and at any time.
//!
//! | here                       | in 7.3                                                       |
//! |----------------------------|--------------------------------------------------------------|
//! | [`Machine::fault`]         | `do_swap_page()`, mm/memory.c; `shmem_fault()`, mm/shmem.c   |
//! | [`Machine::zap`]           | `zap_pte_range()`, `tlb_flush_mmu()`, mm/memory.c            |
//! | [`Machine::free_swap`]     | `folio_free_swap()`, mm/swapfile.c                           |
//! | [`Machine::truncate`]      | `truncate_inode_folio()`, mm/truncate.c                      |
//! | [`Machine::write_back`]    | `swap_writeout()`, mm/page_io.c, of somebody else who flushed |
//! | [`Machine::clean`]         | the same, done                                               |
//! | [`Machine::pin_and_write`] | a driver that pins, writes, and keeps the pin or not         |
//!
//! A fault is of a folio in the swap cache, or in the page cache; a zap is of the swap entry, too.
//! Whoever wants the folio lock and does not get it gives up: that he waits is what comes of the
//! same thread a little later, which is another interleaving.
//!
//! Left out: reading from swap (a fault that does not find the folio does nothing), COW.

use super::{
    Flag,
    Folio,
    Machine,
    Mapping, //
};
use crate::{
    anon::{
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
    fn found_and_locked<T>(&self, index: usize, does: impl FnOnce(&Folio) -> T) -> Option<T> {
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

    /// A fault at a folio's PTE: whether the folio is mapped again.
    pub fn fault(&self, index: usize, write: bool) -> bool {
        let orig = self.table.ptep_get(index);
        if orig & PRESENT != 0 {
            return false;
        }
        self.found_and_locked(index, |_| self.fault_locked(index, orig, write))
            .unwrap_or(false)
    }

    fn fault_locked(&self, index: usize, orig: u64, write: bool) -> bool {
        let folio = self.folio(index);
        let found = match folio.mapping() {
            Some(Mapping::Swap) => orig & SWAP != 0,
            Some(_) => orig == 0,
            None => false,
        };
        let _ptl = self.lock_ptes();
        if !found || self.table.ptep_get(index) != orig {
            return false;
        }
        folio.core.get(folio.nr() as i32);
        folio.add_rmap(1);
        let dirty = if write { DIRTY } else { 0 };
        self.table
            .set(index, pte(folio.core.pfn, WRITE | YOUNG | dirty));
        step!("folio {index} is mapped again");
        true
    }

    /// The mm unmaps the range that a folio is in, with its swap entry.
    pub fn zap(&self, index: usize) {
        let folio = self.folio(index);
        let ptl = self.lock_ptes();
        let was = self.table.get_and_clear(index);
        if was & PRESENT != 0 {
            if was & DIRTY != 0 {
                folio.core.mark_dirty();
            }
            folio.add_rmap(-1);
        }
        drop(ptl);
        // Also for what reclaim has unmapped and not flushed.
        self.cpus.flush();
        step!("folio {index} is zapped");
        if was & PRESENT != 0 {
            self.put(index, folio.nr() as i32);
        }
        if was & SWAP != 0 {
            self.found_and_locked(index, |_| self.free_swap(index));
        }
    }

    /// Takes a folio out of the swap cache, whose slot nobody names: of who has it locked.
    pub fn free_swap(&self, index: usize) {
        let folio = self.folio(index);
        let named = self.table.ptep_get(index) & SWAP != 0;
        if folio.mapping() != Some(Mapping::Swap) || named || folio.test(Flag::Writeback) {
            return;
        }
        folio.set_mapping(None);
        folio.core.mark_dirty();
        step!("folio {index} leaves the swap cache");
        self.put(index, folio.nr() as i32);
    }

    /// Takes a folio from its file, and unmaps it.
    pub fn truncate(&self, index: usize) {
        self.found_and_locked(index, |folio| {
            if matches!(folio.mapping(), Some(Mapping::Shmem | Mapping::File)) {
                self.zap(index);
                folio.set_mapping(None);
                folio.core.test_clear_dirty();
                self.put(index, folio.nr() as i32);
            }
        });
    }

    /// Somebody else writes it out, and has not done yet.
    pub fn write_back(&self, index: usize) {
        self.write_out(index, Some(Flag::Writeback));
    }

    /// Somebody else writes it out.
    pub fn clean(&self, index: usize) {
        self.write_out(index, None);
    }

    fn write_out(&self, index: usize, flag: Option<Flag>) {
        self.found_and_locked(index, |folio| {
            if !self.mapped(index) {
                self.cpus.flush();
                if folio.core.test_clear_dirty() {
                    flag.into_iter().for_each(|flag| folio.set(flag));
                    folio.store();
                }
            }
        });
    }

    /// GUP-fast for writing, which writes, and says so; it has the pin still.
    pub fn pin_and_write(&self, index: usize) -> Option<Pin<'_>> {
        let folio = self.folio(index);
        let pin = pin_fast(&self.table, index, &folio.core, true)?;
        folio.write();
        folio.core.mark_dirty();
        Some(pin)
    }
}
