// SPDX-License-Identifier: GPL-2.0

//! What others do to a folio of a file, shmem's or another, by any thread and at any time.
//!
//! | who                        | C, 7.3                                   | if                         | flushes                                 |
//! |----------------------------|------------------------------------------|----------------------------|-----------------------------------------|
//! | [`Machine::punch_hole`]    | `shmem_fallocate()`, `shmem_undo_range()`, mm/shmem.c; `truncate_inode_folio()`, mm/truncate.c | always; the folio: locked, and still of the file | as a zap of the range at first; as a zap of the folio under its lock if `folio_mapped()` |
//! | [`Machine::truncate`]      | `shmem_setattr()`, mm/shmem.c; `truncate_pagecache()`, mm/truncate.c | same | as the hole, and as a zap of the range in the end |
//! | [`Machine::write_back`], [`Machine::clean`] | `folio_clear_dirty_for_io()`, mm/page-writeback.c, of a flusher or fsync() | locked, not being written | that page, in `folio_mkclean()`, mm/rmap.c, if it is mapped and writable |
//! | same, of shmem             | `__shmem_writeback()`, drivers/gpu/drm/i915/gem/i915_gem_shmem.c | locked, not mapped, not being written | never |
//! | [`Machine::collapse_file`] | `collapse_file()`, mm/khugepaged.c, that fails | locked, isolated by this, of shmem or clean | for what it has unmapped, before it unlocks |
//!
//! 7.3 has the last one otherwise: it unlocks the folio, puts it back, and flushes then. (Mended
//! upstream, by "mm/khugepaged: flush deferred unmaps before dropping a failed folio".)
//!
//! What is written is the content at the moment when the dirty flag is cleared, which is the earliest
//! that the device may read. Nobody but reclaim writes out what is in the swap cache.
//!
//! Left out: the success of `collapse_file()`, folios of which a part is truncated, and as of
//! [`super::meanwhile`].

use super::{
    Flag,
    Machine,
    Mapping, //
};
use crate::{
    pte::{
        DIRTY,
        PRESENT,
        WRITE, //
    },
    sync::step,
    tlb::Deferred, //
};

impl Machine {
    /// Punches a hole where a folio is, with `between` behind the first of its two parts: whether
    /// that took the folio from its file.
    pub fn punch_hole(&self, index: usize, between: impl FnOnce()) -> bool {
        self.zap(index);
        between();
        let removed = self.remove_from_file(index);
        if removed {
            self.folio(index).give_up();
        }
        removed
    }

    /// Cuts the file in front of a folio: whether that took the folio from its file.
    pub fn truncate(&self, index: usize) -> bool {
        self.zap(index);
        let removed = self.remove_from_file(index);
        if removed {
            self.zap(index);
            self.folio(index).give_up();
        }
        removed
    }

    /// `truncate_inode_folio()`.
    fn remove_from_file(&self, index: usize) -> bool {
        self.found_and_locked(index, |folio| {
            if !matches!(folio.mapping(), Some(Mapping::Shmem | Mapping::File)) {
                return false;
            }
            if self.mapped(index) {
                self.zap(index);
            }
            folio.core.test_clear_dirty();
            folio.set_mapping(None);
            self.put(index, folio.nr() as i32);
            true
        })
        .unwrap_or(false)
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
            if folio.test(Flag::Writeback) {
                return;
            }
            match folio.mapping() {
                Some(Mapping::File) if self.mapped(index) => {
                    if self.mkclean(index) {
                        folio.core.mark_dirty();
                    }
                }
                Some(Mapping::File) => (),
                Some(Mapping::Shmem) if !self.mapped(index) => (),
                _ => return,
            }
            if folio.core.test_clear_dirty() {
                flag.into_iter().for_each(|flag| folio.set(flag));
                folio.store();
            }
        });
    }

    /// Write-protects its PTE, and makes it clean: whether there was something to do.
    fn mkclean(&self, index: usize) -> bool {
        let _ptl = self.lock_ptes();
        let entry = self.table.ptep_get(index);
        if entry & PRESENT == 0 || entry & (WRITE | DIRTY) == 0 {
            return false;
        }
        let was = self.table.get_and_clear(index);
        self.cpus.flush_page(index);
        self.table.set(index, was & !(WRITE | DIRTY));
        step!("folio {index} is write-protected");
        true
    }

    /// khugepaged isolates and unmaps it, and then fails, as if somebody else had a reference:
    /// whether it came so far.
    pub fn collapse_file(&self, index: usize) -> bool {
        self.found_and_locked(index, |folio| {
            let takes = match folio.mapping() {
                Some(Mapping::Shmem) => true,
                Some(Mapping::File) => !folio.core.is_dirty() && !folio.test(Flag::Writeback),
                Some(Mapping::Swap) | None => false,
            };
            if !takes || !self.isolate(index) {
                return false;
            }
            let deferred = Deferred::default();
            if self.mapped(index) {
                self.try_to_unmap(index, &deferred);
            }
            deferred.flush(&self.cpus);
            folio.set(Flag::Lru);
            self.put(index, 1);
            true
        })
        .unwrap_or(false)
    }
}
