// SPDX-License-Identifier: GPL-2.0

//! A stop of an rmap walk in the kernel, as the port of one run (C: `try_to_unmap_one()`,
//! mm/rmap.c, 7.3, which calls each path by an exported function of its own).

use super::trace;
use crate::{
    pte::{
        Pte,
        PteArch,
        Respect, //
    },
    pte_run::{
        PteIndex,
        PtePart,
        PteTable,
        Reach,
        RunLength, //
    },
    unmap::{
        FlushOwed,
        UnmapWalk,
        UnmappedRun, //
    }, //
};
use core::num::NonZero;
use kernel::{
    bindings::{
        self,
        mm_batch_run_outcome as RunOutcome,
        mm_batch_run_outcome_MM_BATCH_RUN_DONE as DONE,
        mm_batch_run_outcome_MM_BATCH_RUN_RESTORED as RESTORED,
        mm_batch_run_path as RunPath, //
    },
    page::PAGE_SIZE,
    prelude::*,
    unsafe_precondition_assert, //
};

// The helpers pass a PTE as a u64; 128-bit PTEs would be cut.
const _: () = assert!(size_of::<bindings::pte_t>() == size_of::<u64>());

/// A PTE, and what it maps.
///
/// # Invariants
///
/// `ptep` is the PTE of `address` in `vma`, within which `address` is; it maps `page`, of `folio`,
/// or did before it was cleared. The folio is large and not freed. None of it goes while this
/// exists, nor does the page table.
pub(super) struct PteView {
    pub(super) folio: *mut bindings::folio,
    pub(super) page: *mut bindings::page,
    pub(super) vma: *mut bindings::vm_area_struct,
    address: usize,
    ptep: *mut bindings::pte_t,
}

impl PteView {
    /// # Safety
    ///
    /// As the invariants say, for as long as it exists.
    #[inline]
    pub(super) unsafe fn new(
        folio: *mut bindings::folio,
        page: *mut bindings::page,
        vma: *mut bindings::vm_area_struct,
        address: usize,
        ptep: *mut bindings::pte_t,
    ) -> Self {
        // INVARIANT: By the function's requirement.
        Self {
            folio,
            page,
            vma,
            address,
            ptep,
        }
    }
}

/// The PTEs of the architecture that the kernel is built for.
pub(super) struct Arch;

impl PteArch for Arch {
    #[inline]
    fn ignored(respect: Respect) -> u64 {
        let Respect {
            write,
            soft_dirty,
            dirty,
        } = respect;
        // SAFETY: Arithmetic only.
        unsafe { bindings::mm_batch_pte_batch_ignored(write, soft_dirty, dirty) }
    }

    #[inline]
    fn wrprotect(pte: Pte) -> Pte {
        // SAFETY: Arithmetic only.
        Pte::new(unsafe { bindings::mm_batch_pte_wrprotect(pte.raw()) })
    }

    #[inline]
    fn pfn_step(pte: Pte) -> u64 {
        // SAFETY: Arithmetic only.
        unsafe { bindings::mm_batch_pte_pfn_step(pte.raw()) }
    }

    #[inline]
    fn pte_dirty(pte: Pte) -> bool {
        // SAFETY: Arithmetic only.
        unsafe { bindings::mm_batch_pte_dirty(pte.raw()) }
    }
}

impl PteTable for PteView {
    type Arch = Arch;

    #[inline]
    fn reach(&self) -> Reach {
        // SAFETY: By the invariants, `address` is within `vma`.
        let vma = unsafe { bindings::mm_batch_ptes_to_vma_end(self.vma, self.address) };
        // SAFETY: Arithmetic only.
        let table = unsafe { bindings::mm_batch_ptes_to_table_end(self.address) };
        // SAFETY: By the invariants, `page` is of `folio`.
        let folio = unsafe { bindings::mm_batch_pages_to_folio_end(self.folio, self.page) };
        Reach { vma, table, folio }
    }

    #[inline]
    fn ptep_get(at: &PteIndex<'_, Self>) -> Pte {
        let ptep = at.table().ptep.wrapping_add(at.get() as usize);
        // SAFETY: The index is within the reach of its view, so within the page table, which cannot
        // go.
        Pte::new(unsafe { bindings::mm_batch_ptep_get(ptep) })
    }

    /// 1 where hardware knows no groups.
    #[inline]
    fn pte_batch_hint(at: &PteIndex<'_, Self>, pte: Pte) -> NonZero<u32> {
        if !cfg!(CONFIG_ARM64_CONTPTE) {
            return NonZero::<u32>::MIN;
        }
        let ptep = at.table().ptep.wrapping_add(at.get() as usize);
        // SAFETY: Only the entry's address counts.
        let hint = unsafe { bindings::mm_batch_pte_batch_hint(ptep, pte.raw()) };
        NonZero::new(hint).unwrap_or(NonZero::<u32>::MIN)
    }
}

/// A stop of `try_to_unmap_one()`'s walk, as the port of one run.
///
/// # Invariants
///
/// For as long as it exists: the folio is locked, not hugetlb, and referenced by who walks; the
/// page table lock of the view's PTE is held, and an rmap lock that keeps its VMA. When it was
/// made, the PTE was present. No other walk is at this stop.
pub(super) struct RmapWalk {
    view: PteView,
    flags: c_uint,
}

impl RmapWalk {
    /// The walk that `try_to_unmap_one()` is on, from what it passes.
    ///
    /// # Safety
    ///
    /// The folio is locked, large, referenced by the caller and not hugetlb. `*ptep` is present and
    /// maps its `page` at `address`, which is within `vma`. The page table lock is held, and an
    /// rmap lock that keeps `vma` and its mm; `flags` is without `TTU_HWPOISON`. All that for as
    /// long as the walk exists, but that the PTE may be cleared by it; and there is no other walk
    /// at this stop.
    #[inline]
    pub(super) unsafe fn new(
        folio: *mut bindings::folio,
        page: *mut bindings::page,
        vma: *mut bindings::vm_area_struct,
        address: usize,
        ptep: *mut bindings::pte_t,
        flags: c_uint,
    ) -> Self {
        unsafe_precondition_assert!(address % PAGE_SIZE == 0);
        // SAFETY: By the function's requirement.
        let view = unsafe { PteView::new(folio, page, vma, address, ptep) };
        // INVARIANT: By the function's requirement.
        Self { view, flags }
    }

    /// What the PTE that the walk is at maps.
    #[inline]
    pub(super) fn at(&self) -> &PteView {
        &self.view
    }

    /// Whether the folio is in the swap cache (C: `folio_test_swapcache()`).
    #[inline]
    pub(super) fn folio_test_swapcache(&self) -> bool {
        // SAFETY: By the invariants, there is a folio.
        unsafe { bindings::mm_batch_folio_test_swapcache(self.view.folio) }
    }

    /// The address and the entry of a part's first PTE.
    #[inline]
    pub(super) fn place(&self, part: &PtePart) -> (usize, *mut bindings::pte_t) {
        let at = part.at() as usize;
        (
            self.view.address.wrapping_add(at.wrapping_mul(PAGE_SIZE)),
            self.view.ptep.wrapping_add(at),
        )
    }
}

impl UnmapWalk for RmapWalk {
    type View = PteView;

    #[inline]
    fn view(&self) -> &PteView {
        &self.view
    }

    #[inline]
    unsafe fn get_and_clear_ptes(&self, nr: RunLength) -> Pte {
        let PteView {
            vma, address, ptep, ..
        } = self.view;
        // SAFETY: By the method's requirement, these are present PTEs of the folio, and by the
        // invariants their lock is held.
        Pte::new(unsafe { bindings::mm_batch_get_and_clear_run(vma, address, ptep, nr.get()) })
    }

    #[inline]
    unsafe fn flush_tlb(&self, cleared: &PtePart) -> FlushOwed {
        let (address, _) = self.place(cleared);
        let (nr, pte) = (cleared.nr().get(), cleared.first().raw());
        // SAFETY: By the method's requirement, the run is of `vma`, and `pte` tells whether it was
        // dirty; by the invariants, its lock is held.
        unsafe { bindings::ttu_flush_run(self.view.vma, address, nr, pte, self.flags) };
        // SAFETY: It was flushed just now, or is in `current->tlb_ubc`, unless there is nothing to
        // flush: `set_tlb_ubc_flush_pending()` leaves out what no CPU can have cached.
        unsafe { FlushOwed::noted() }
    }

    #[inline]
    fn folio_mark_dirty(&self) {
        // SAFETY: By the invariants, the folio is locked.
        unsafe { bindings::folio_mark_dirty(self.view.folio) };
    }

    #[inline]
    unsafe fn flush_before_restore(&self, cleared: &PtePart) {
        let (address, _) = self.place(cleared);
        let (vma, nr) = (self.view.vma, cleared.nr().get());
        // SAFETY: By the method's requirement, the run is of `vma`.
        unsafe { bindings::ttu_flush_before_restore(vma, address, nr, self.flags) }
    }

    #[inline]
    unsafe fn set_ptes(&self, cleared: &PtePart) {
        let (address, ptep) = self.place(cleared);
        let (nr, pte) = (cleared.nr().get(), cleared.first().raw());
        // SAFETY: By the method's requirement, the PTEs are not present, while rmap and references
        // count their pages; by the invariants, their lock is held.
        unsafe { bindings::mm_batch_set_run(self.view.vma, address, ptep, pte, nr) }
    }

    #[inline]
    unsafe fn leave_behind(&self, cleared: &PtePart) {
        let (address, ptep) = self.place(cleared);
        let (nr, pte) = (cleared.nr().get(), cleared.first().raw());
        // SAFETY: By the method's requirement, the PTEs are none; by the invariants, their lock is
        // held.
        unsafe { bindings::mm_batch_install_uffd_wp_run(self.view.vma, address, ptep, pte, nr) }
    }

    #[inline]
    fn update_hiwater_rss(&self) {
        // SAFETY: By the invariants, there is an mm.
        unsafe { bindings::mm_batch_update_hiwater_rss(self.view.vma) }
    }

    #[inline]
    unsafe fn add_mm_counter(&self, removed: RunLength) {
        let PteView { vma, folio, .. } = self.view;
        // As wide as the counter before it is negated.
        let pages = (removed.get() as isize).wrapping_neg();
        // SAFETY: By the method's requirement, so many of the folio's pages were counted in this
        // mm.
        unsafe { bindings::mm_batch_add_mm_counter(vma, folio, pages) }
    }

    #[inline]
    unsafe fn folio_remove_rmap_ptes(&self, nr: RunLength) {
        let PteView {
            folio, page, vma, ..
        } = self.view;
        // SAFETY: By the method's requirement, the mappings of so many pages from `page` on are
        // gone and still counted; by the invariants, their lock is held.
        unsafe { bindings::mm_batch_remove_rmap_run(folio, page, nr.get() as c_int, vma) }
    }

    #[inline]
    unsafe fn folio_put_refs(&self, nr: RunLength) {
        // SAFETY: By the method's requirement, the mappings' references are to be dropped; by the
        // invariants, there is one more.
        unsafe { bindings::mm_batch_folio_put_refs(self.view.folio, nr.get() as c_int) }
    }
}

/// What C is told of a run that a path has unmapped, and traces. What is owed for it is in
/// `current->tlb_ubc`, for reclaim.
#[inline]
pub(super) fn unmapped(path: RunPath, run: UnmappedRun) -> bindings::mm_batch_unmapped {
    let (nr, owed) = run.into_parts();
    owed.left_with_task();
    dealt_with(path, nr, DONE)
}

/// What C is told of a run that a path has mapped again, and traces.
#[inline]
pub(super) fn kept(path: RunPath, nr: RunLength) -> bindings::mm_batch_unmapped {
    dealt_with(path, nr, RESTORED)
}

#[inline]
fn dealt_with(path: RunPath, nr: RunLength, outcome: RunOutcome) -> bindings::mm_batch_unmapped {
    let nr_pages = nr.get();
    trace::run(path, nr_pages as usize, outcome);
    bindings::mm_batch_unmapped { outcome, nr_pages }
}

/// What C is told of a run that was not even looked for.
#[inline]
pub(super) fn untouched(outcome: RunOutcome) -> bindings::mm_batch_unmapped {
    let nr_pages = 0;
    bindings::mm_batch_unmapped { outcome, nr_pages }
}
