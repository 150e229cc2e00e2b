// SPDX-License-Identifier: GPL-2.0

//! `file_unmap` in the kernel (C: `try_to_unmap_one()`, mm/rmap.c, 7.2).

use super::trace;
use crate::{
    file_unmap::{
        unmap_run,
        Differences,
        FileUnmapWalk,
        Kind, //
    },
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
use core::num::NonZero;
use kernel::{
    bindings::{
        self,
        mm_batch_run_outcome_MM_BATCH_RUN_DONE as DONE,
        mm_batch_run_outcome_MM_BATCH_RUN_RESTORED as RESTORED,
        mm_batch_run_path_MM_BATCH_RUN_FILE_UNMAP as FILE_UNMAP, //
    },
    prelude::*,
    sync::barrier, //
};

#[cfg(CONFIG_MM_BATCH_KUNIT_TEST)]
mod pte_batch_kunit;

/// A stop of `try_to_unmap_one()`'s walk, as the port of one run.
///
/// # Invariants
///
/// For as long as it exists: the folio is locked, large, and neither hugetlb nor freed; the page
/// table lock of `ptep` is held; `ptep` is the PTE of `address` in `vma`, within which `address`
/// is; and the PTE is, or was before the run was cleared, present and of the folio's `page`.
///
/// A [`RunLength`] that it is given is of a run found from there.
struct RmapWalk {
    folio: *mut bindings::folio,
    page: *mut bindings::page,
    vma: *mut bindings::vm_area_struct,
    address: usize,
    ptep: *mut bindings::pte_t,
    flags: c_uint,
}

/// Reads a PTE.
///
/// # Safety
///
/// `ptep` points to an entry of a page table that cannot go.
#[inline]
unsafe fn ptep_get(ptep: *mut bindings::pte_t) -> Pte {
    if cfg!(CONFIG_ARM64_CONTPTE) {
        // SAFETY: By the function's requirement.
        Pte::new(unsafe { bindings::ptep_get(ptep) })
    } else {
        // READ_ONCE(*ptep), without a call where helpers are not inlined.
        // SAFETY: By the function's requirement. Hardware may change it, which a volatile read
        // allows.
        Pte::new(unsafe { ptep.cast::<u64>().read_volatile() })
    }
}

/// As `pte_batch_hint()`; 1 where hardware knows no groups.
#[inline]
fn pte_batch_hint(ptep: *mut bindings::pte_t, pte: Pte) -> NonZero<u32> {
    if cfg!(CONFIG_ARM64_CONTPTE) {
        // SAFETY: Only the entry's address counts.
        let hint = unsafe { bindings::pte_batch_hint(ptep, pte.raw()) };
        NonZero::new(hint).unwrap_or(NonZero::<u32>::MIN)
    } else {
        NonZero::<u32>::MIN
    }
}

impl PteTable for RmapWalk {
    #[inline]
    fn reach(&self) -> Reach {
        // SAFETY: By the invariants, `address` is within `vma` and `page` within `folio`.
        unsafe {
            Reach {
                vma: bindings::ptes_to_vma_end(self.vma, self.address),
                table: bindings::ptes_to_table_end(self.address),
                folio: bindings::pages_to_folio_end(self.folio, self.page),
            }
        }
    }

    #[inline]
    fn ptep_get(&self, at: PteIndex) -> Pte {
        // SAFETY: An index is within the page table of `ptep`, which cannot go under its lock.
        unsafe { ptep_get(self.ptep.add(at.get() as usize)) }
    }

    #[inline]
    fn pte_batch_hint(&self, at: PteIndex, pte: Pte) -> NonZero<u32> {
        pte_batch_hint(self.ptep.wrapping_add(at.get() as usize), pte)
    }

    #[inline]
    fn ignored(&self, respect: Respect) -> u64 {
        // SAFETY: Arithmetic only.
        unsafe { bindings::pte_batch_ignored(respect.write, respect.soft_dirty, respect.dirty) }
    }

    #[inline]
    fn wrprotect(&self, pte: Pte) -> Pte {
        // SAFETY: Arithmetic only.
        Pte::new(unsafe { bindings::pte_wrprotect(pte.raw()) })
    }

    #[inline]
    fn pfn_step(&self, pte: Pte) -> u64 {
        // SAFETY: Arithmetic only.
        unsafe { bindings::pte_pfn_step(pte.raw()) }
    }
}

impl UnmapWalk for RmapWalk {
    #[inline]
    fn get_and_clear_ptes(&mut self, nr: RunLength) -> Pte {
        // SAFETY: By the invariants, these are present PTEs of the folio, under their lock.
        Pte::new(unsafe {
            bindings::get_and_clear_run(self.vma, self.address, self.ptep, nr.get())
        })
    }

    #[inline]
    fn flush_tlb(&mut self, cleared: Pte, nr: RunLength) {
        // SAFETY: By the invariants, the run is within `vma`, and its lock is held.
        unsafe {
            bindings::ttu_flush_run(self.vma, self.address, nr.get(), cleared.raw(), self.flags)
        }
    }

    #[inline]
    fn pte_dirty(&self, pte: Pte) -> bool {
        // SAFETY: Arithmetic only.
        unsafe { bindings::pte_dirty(pte.raw()) }
    }

    #[inline]
    fn with_soft_dirty(&self, pte: Pte, as_in: Pte) -> Pte {
        // SAFETY: Arithmetic only.
        Pte::new(unsafe { bindings::pte_with_soft_dirty(pte.raw(), as_in.raw()) })
    }

    #[inline]
    fn folio_mark_dirty(&mut self) {
        // SAFETY: By the invariants, the folio is locked.
        unsafe { bindings::folio_mark_dirty(self.folio) };
    }

    #[inline]
    fn set_ptes(&mut self, pte: Pte, nr: RunLength) {
        // SAFETY: The run's PTEs are not present, and rmap and references still count its pages.
        unsafe { bindings::set_run(self.vma, self.address, self.ptep, pte.raw(), nr.get()) };
        trace::run(FILE_UNMAP, nr.get() as usize, RESTORED);
    }

    #[inline]
    fn update_hiwater_rss(&mut self) {
        // SAFETY: By the invariants, there is an mm.
        unsafe { bindings::vma_update_hiwater_rss(self.vma) }
    }

    #[inline]
    fn add_mm_counter(&mut self, pages: i64) {
        // SAFETY: By the invariants, there are an mm and a folio.
        unsafe { bindings::vma_add_mm_counter(self.vma, self.folio, pages as isize) }
    }

    #[inline]
    fn folio_remove_rmap_ptes(&mut self, nr: RunLength) {
        // SAFETY: The run's pages, from `page` on, were mapped in `vma`, and its lock is held.
        unsafe { bindings::remove_rmap_run(self.folio, self.page, nr.get() as c_int, self.vma) }
    }

    #[inline]
    fn folio_put_refs(&mut self, nr: RunLength) {
        // SAFETY: Each mapping had a reference; the caller of try_to_unmap() has one more.
        unsafe { bindings::folio_put_refs(self.folio, nr.get() as c_int) };
        trace::run(FILE_UNMAP, nr.get() as usize, DONE);
    }
}

impl FileUnmapWalk for RmapWalk {
    #[inline]
    fn userfaultfd_wp(&self) -> bool {
        // SAFETY: By the invariants, there is a VMA.
        unsafe { bindings::userfaultfd_wp(self.vma) }
    }

    #[inline]
    fn install_uffd_wp_markers(&mut self, cleared: Pte, nr: RunLength) {
        // SAFETY: The run's PTEs are none, and their lock is held.
        unsafe {
            bindings::install_uffd_wp_run(
                self.vma,
                self.address,
                self.ptep,
                cleared.raw(),
                nr.get(),
            )
        }
    }

    #[inline]
    fn smp_mb(&self) {
        barrier::smp_mb();
    }

    #[inline]
    fn smp_rmb(&self) {
        barrier::smp_rmb();
    }

    #[inline]
    fn folio_extra_refs(&self) -> i32 {
        // SAFETY: By the invariants, there is a large folio, whose mapcount is not locked here.
        unsafe { bindings::folio_extra_refs(self.folio) }
    }

    #[inline]
    fn folio_test_dirty(&self) -> bool {
        // SAFETY: By the invariants, there is a folio.
        unsafe { bindings::folio_test_dirty(self.folio) }
    }

    #[inline]
    fn vma_droppable(&self) -> bool {
        // SAFETY: By the invariants, there is a VMA.
        unsafe { bindings::vma_droppable(self.vma) }
    }

    #[inline]
    fn folio_set_swapbacked(&mut self) {
        // SAFETY: By the invariants, the folio is locked.
        unsafe { bindings::folio_set_swapbacked(self.folio) }
    }
}

/// Unmaps the run of PTEs that begins with `*ptep`.
///
/// Returns the run's length in pages; 0 if the folio is to stay mapped, which then is as it was.
///
/// # Safety
///
/// The folio is locked, large, referenced by the caller, not hugetlb, and not both anonymous and
/// swap-backed. `page` is its page that `*ptep` maps at `address`, which is within `vma`. The page
/// table lock is held. `flags` is without `TTU_HWPOISON`.
///
/// Context: page table lock held. Does not sleep.
#[export]
pub(crate) unsafe extern "C" fn mm_batch_unmap_run(
    folio: *mut bindings::folio,
    page: *mut bindings::page,
    vma: *mut bindings::vm_area_struct,
    address: usize,
    ptep: *mut bindings::pte_t,
    flags: c_uint,
) -> c_uint {
    // SAFETY: By the function's requirement.
    let first = unsafe { ptep_get(ptep) };
    // SAFETY: By the function's requirement.
    let kind = if unsafe { bindings::folio_test_anon(folio) } {
        Kind::Lazyfree
    } else {
        Kind::File
    };
    // INVARIANT: By the function's requirement.
    let mut walk = RmapWalk {
        folio,
        page,
        vma,
        address,
        ptep,
        flags,
    };
    // SAFETY: Written to by tests alone, one at a time and with nobody unmapping.
    let differences = unsafe { bindings::mm_batch_file_unmap_differences };
    let differences = Differences {
        uffd_wp_runs: differences.uffd_wp_runs,
        mixed_file_runs: differences.mixed_file_runs,
    };
    unmap_run(&mut walk, first, kind, differences).map_or(0, RunLength::get)
}
