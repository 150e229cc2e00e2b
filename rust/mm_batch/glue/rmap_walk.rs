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
        PteTable,
        Reach,
        RunLength, //
    },
    unmap::{
        Part,
        UnmapWalk, //
    }, //
};
use core::num::NonZero;
use kernel::{
    bindings::{
        self,
        mm_batch_run_outcome_MM_BATCH_RUN_DONE as DONE,
        mm_batch_run_outcome_MM_BATCH_RUN_RESTORED as RESTORED,
        mm_batch_run_path as RunPath, //
    },
    page::PAGE_SIZE,
    prelude::*,
    sync::barrier,
    unsafe_precondition_assert, //
};

// The helpers pass a PTE as a u64; 128-bit PTEs would be cut.
const _: () = assert!(size_of::<bindings::pte_t>() == size_of::<u64>());

/// A PTE, and what it maps.
///
/// # Invariants
///
/// `ptep` is the PTE of `address`, a multiple of `PAGE_SIZE` within `vma`; it maps `page`, of
/// `folio`, or did before it was cleared. The folio is large and not freed. None of it goes while
/// this exists, nor does the page table.
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
#[derive(Debug)]
pub(super) struct Arch;

// SAFETY: The answers are those of the architecture's functions in C.
unsafe impl PteArch for Arch {
    #[inline]
    fn ignored(respect: Respect) -> u64 {
        let Respect { write, soft_dirty } = respect;
        // SAFETY: It works on constants.
        unsafe { bindings::mm_batch_pte_batch_ignored(write, soft_dirty) }
    }

    #[inline]
    fn pfn_step(pte: Pte) -> u64 {
        // SAFETY: It touches no memory of the caller's. (Xen PV looks the frame up in a table of
        // its own, which has an answer for each.)
        unsafe { bindings::mm_batch_pte_pfn_step(pte.raw()) }
    }

    #[inline]
    fn pte_dirty(pte: Pte) -> bool {
        // SAFETY: It looks at bits of the word.
        unsafe { bindings::mm_batch_pte_dirty(pte.raw()) }
    }
}

// SAFETY: By the invariants, the ends are those of the VMA, the page table and the folio that the
// PTE at `ptep` is of, and what is read is read there.
unsafe impl PteTable for PteView {
    type Arch = Arch;

    #[inline]
    fn reach(&self) -> Reach {
        // SAFETY: By the invariants, `address` is within `vma`.
        let vma = unsafe { bindings::mm_batch_ptes_to_vma_end(self.vma, self.address) };
        // SAFETY: It works on the number.
        let table = unsafe { bindings::mm_batch_ptes_to_table_end(self.address) };
        // SAFETY: By the invariants, `page` is of `folio`.
        let folio = unsafe { bindings::mm_batch_pages_to_folio_end(self.folio, self.page) };
        // SAFETY: By the invariants, the page of `address` is within each of the three, whole.
        let nr = |ptes| unsafe { NonZero::new_unchecked(ptes) };
        Reach {
            vma: nr(vma),
            table: nr(table),
            folio: nr(folio),
        }
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
/// For as long as it exists: the folio is locked, not hugetlb, and referenced by the caller; the
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
    /// maps its `page` at `address`, a multiple of `PAGE_SIZE` within `vma`. The page table lock is
    /// held, and an rmap lock that keeps `vma` and its mm; `flags` is without `TTU_HWPOISON`. All
    /// that for as long as the walk exists, but that the PTE may be cleared by it; and there is no
    /// other walk at this stop.
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

    /// The address and the entry of a part's first PTE.
    #[inline]
    pub(super) fn place(&self, part: &Part<Self>) -> (usize, *mut bindings::pte_t) {
        let at = part.at() as usize;
        (
            self.view.address.wrapping_add(at.wrapping_mul(PAGE_SIZE)),
            self.view.ptep.wrapping_add(at),
        )
    }
}

// SAFETY: Each method works on the PTEs from `view.ptep` on.
unsafe impl UnmapWalk for RmapWalk {
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
    unsafe fn flush_tlb(&self, cleared: &Part<Self>) {
        let (address, _) = self.place(cleared);
        let (nr, pte) = (cleared.nr().get(), cleared.first().raw());
        // SAFETY: By the method's requirement, the run is of `vma`, and `pte` tells whether it was
        // dirty; by the invariants, its lock is held.
        unsafe { bindings::ttu_flush_run(self.view.vma, address, nr, pte, self.flags) }
    }

    #[inline]
    fn smp_mb(&self) {
        barrier::smp_mb(barrier::Full);
    }

    #[inline]
    fn folio_test_swapcache(&self) -> bool {
        // SAFETY: By the invariants, there is a folio.
        unsafe { bindings::mm_batch_folio_test_swapcache(self.view.folio) }
    }

    #[cold]
    fn warn_swapcache(&self) {
        // SAFETY: It prints a warning.
        unsafe { bindings::mm_batch_warn_swapcache() }
    }

    #[inline]
    fn folio_mark_dirty(&self) {
        // SAFETY: By the invariants, the folio is locked.
        unsafe { bindings::folio_mark_dirty(self.view.folio) };
    }

    #[inline]
    unsafe fn flush_before_restore(&self, cleared: &Part<Self>) {
        let (address, _) = self.place(cleared);
        let (vma, nr) = (self.view.vma, cleared.nr().get());
        // SAFETY: By the method's requirement, the run is of `vma`.
        unsafe { bindings::ttu_flush_before_restore(vma, address, nr, self.flags) }
    }

    #[inline]
    unsafe fn set_ptes(&self, cleared: &Part<Self>) {
        let (address, ptep) = self.place(cleared);
        let (nr, pte) = (cleared.nr().get(), cleared.first().raw());
        // SAFETY: By the method's requirement, the PTEs are not present, while rmap and references
        // count their pages; by the invariants, their lock is held.
        unsafe { bindings::mm_batch_set_run(self.view.vma, address, ptep, pte, nr) }
    }

    #[inline]
    unsafe fn leave_behind(&self, cleared: &Part<Self>) {
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

/// Traces a run that a path has unmapped, or mapped again. Returns what C is told: the pages that
/// were unmapped, or 0 if the folio is to stay mapped.
#[inline]
pub(super) fn traced(path: RunPath, run: Result<RunLength, RunLength>) -> c_uint {
    match run {
        Ok(unmapped) => {
            trace::run(path, unmapped.get() as usize, DONE);
            unmapped.get()
        }
        Err(kept) => {
            trace::run(path, kept.get() as usize, RESTORED);
            0
        }
    }
}
