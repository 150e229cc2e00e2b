// SPDX-License-Identifier: GPL-2.0

//! A stop of an rmap walk in the kernel, as the port of one run (C: `try_to_unmap_one()`,
//! mm/rmap.c, 7.3, which calls each path by an exported function of its own).

use super::trace;
use crate::{
    pte::{
        Pte,
        PteArch,
        PteFormat,
        Respect, //
    },
    pte_run::{
        PteIndex,
        PteTable,
        Reach,
        RunLength, //
    },
    unmap::{
        Cleared,
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
/// `ptep` is the PTE of `address`, a multiple of `PAGE_SIZE` within `vma`, where `pvmw` is; it was
/// `first` when it was read under its lock, and mapped `page`, of `folio`, which has `folio_pages`
/// pages. The folio is large and not freed. None of it goes while this exists, nor does the page
/// table.
pub(super) struct PteView {
    pvmw: *const bindings::page_vma_mapped_walk,
    pub(super) folio: *mut bindings::folio,
    pub(super) page: *mut bindings::page,
    pub(super) vma: *mut bindings::vm_area_struct,
    address: usize,
    ptep: *mut bindings::pte_t,
    first: Pte,
    folio_pages: usize,
}

impl PteView {
    /// # Safety
    ///
    /// `pvmw` is at a PTE that maps `page`, of a whole `folio`, which is large and not freed;
    /// `pteval` is its `pte_val()`, read under the lock. None of it goes while this exists, nor
    /// does the page table.
    #[inline]
    pub(super) unsafe fn new(
        folio: *mut bindings::folio,
        page: *mut bindings::page,
        pvmw: *const bindings::page_vma_mapped_walk,
        pteval: u64,
    ) -> Self {
        // SAFETY: By the function's requirement.
        let at = unsafe { &*pvmw };
        // INVARIANT: By the function's requirement.
        Self {
            pvmw,
            folio,
            page,
            vma: at.vma,
            address: at.address,
            ptep: at.pte,
            first: Pte::new(pteval),
            folio_pages: at.nr_pages,
        }
    }

    /// The place of a PTE.
    #[inline]
    fn ptep(at: &PteIndex<'_, Self>) -> *mut bindings::pte_t {
        at.table().ptep.wrapping_add(at.get() as usize)
    }
}

/// The PTEs of the architecture that the kernel is built for.
#[derive(Debug)]
pub(super) struct Arch;

// SAFETY: The answers are those of the architecture's functions in C.
unsafe impl PteArch for Arch {
    #[inline]
    fn format(pte: Pte, respect: Respect) -> PteFormat {
        let counts = usize::from(respect.write) | usize::from(respect.soft_dirty) << 1;
        PteFormat {
            // SAFETY: C writes to it while it boots, before there is anything to unmap.
            ignored: unsafe { bindings::mm_batch_pte_ignored[counts] },
            step: step(pte),
        }
    }
}

/// From the PTE of a page to that of the folio's next one (C: `pte_advance_pfn(pte, 1)`).
#[inline]
fn step(pte: Pte) -> u64 {
    #[cfg(all(CONFIG_X86_64, not(CONFIG_UML)))]
    if ptes_are_words() {
        // PROT_NONE entries have their frame inverted (C: `__pte_needs_invert()`).
        let present = pte.raw() & 1 << bindings::_PAGE_BIT_PRESENT != 0;
        let page = PAGE_SIZE as u64;
        return if present { page } else { page.wrapping_neg() };
    }
    step_by_c(pte)
}

/// Where PTEs are words but on Xen PV, that is the rare case.
#[cfg_attr(CONFIG_PARAVIRT_XXL, cold)]
fn step_by_c(pte: Pte) -> u64 {
    // SAFETY: It works on the word. (Xen PV looks the frame up in a table of its own, which has
    // an answer for each.)
    unsafe { bindings::mm_batch_pte_step(pte.raw()) }
}

/// # Safety
///
/// `ptep` is a PTE in a page table that does not go.
#[cfg_attr(CONFIG_PARAVIRT_XXL, cold)]
unsafe fn ptep_get_by_c(ptep: *mut bindings::pte_t) -> Pte {
    // SAFETY: By the function's requirement.
    Pte::new(unsafe { bindings::mm_batch_ptep_get(ptep) })
}

/// PTEs of a page table, which has one page (C: `PTRS_PER_PTE`).
const PTRS_PER_PTE: usize = PAGE_SIZE / size_of::<bindings::pte_t>();

/// Whether `pte_val()` of a PTE is the word that is in the page table, and all that `ptep_get()`
/// looks at. Then it is read without a call.
#[cfg(not(CONFIG_PARAVIRT_XXL))]
#[inline]
fn ptes_are_words() -> bool {
    // arm64 has groups of PTEs, whose young and dirty bits are gathered.
    cfg!(CONFIG_X86_64)
}

/// Not on Xen PV, where frames in page tables are the host's (C: `boot_cpu_has()`).
#[cfg(CONFIG_PARAVIRT_XXL)]
#[inline]
fn ptes_are_words() -> bool {
    const WORD: usize = bindings::X86_FEATURE_XENPV as usize / 32;
    const BIT: u32 = 1 << (bindings::X86_FEATURE_XENPV % 32);
    // SAFETY: It is a variable of C, of which this bit does not change once there are page tables
    // of user space.
    unsafe { bindings::boot_cpu_data.__bindgen_anon_3.x86_capability[WORD] & BIT == 0 }
}

// SAFETY: By the invariants, the ends are those of the VMA, the page table and the folio that the
// PTE at `ptep` is of, and what is read is read there.
unsafe impl PteTable for PteView {
    type Arch = Arch;

    #[inline]
    fn reach(&self) -> Reach {
        // SAFETY: By the invariants, there is a VMA, whose end cannot change.
        let end = unsafe { (*self.vma).__bindgen_anon_1.__bindgen_anon_1.vm_end };
        let vma = end.wrapping_sub(self.address) / PAGE_SIZE;
        let table = PTRS_PER_PTE.wrapping_sub(self.address / PAGE_SIZE % PTRS_PER_PTE);
        // The struct pages of a folio are one behind the other, from its own on.
        let index = self.page.addr().wrapping_sub(self.folio.addr()) / size_of::<bindings::page>();
        let folio = self.folio_pages.wrapping_sub(index);
        // SAFETY: By the invariants, the page of `address` is within each of the three, whole.
        let nr = |ptes| unsafe { NonZero::new_unchecked(ptes) };
        Reach {
            vma: nr(vma),
            table: nr(table),
            folio: nr(folio),
        }
    }

    #[inline]
    fn first(&self) -> Pte {
        self.first
    }

    #[inline]
    fn ptep_get(at: &PteIndex<'_, Self>) -> Pte {
        let ptep = Self::ptep(at);
        if ptes_are_words() {
            // READ_ONCE(), as hardware may write to it meanwhile: a word, whatever it is.
            // SAFETY: The index is within the reach of its view, so within the page table, which
            // cannot go.
            return Pte::new(unsafe { ptep.cast::<u64>().read_volatile() });
        }
        // SAFETY: As above.
        unsafe { ptep_get_by_c(ptep) }
    }

    /// 1 where hardware knows no groups.
    #[inline]
    fn pte_batch_hint(at: &PteIndex<'_, Self>, pte: Pte) -> NonZero<u32> {
        if !cfg!(CONFIG_ARM64_CONTPTE) {
            return NonZero::<u32>::MIN;
        }
        // SAFETY: No memory is read: the entry's address counts, and the word.
        let hint = unsafe { bindings::mm_batch_pte_batch_hint(Self::ptep(at), pte.raw()) };
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
    /// The folio is locked, large, referenced by the caller and not hugetlb. `pvmw` is at a present
    /// PTE that maps `page`, of all of the folio's; `pteval` is its `pte_val()`, read under the
    /// lock. The page table lock is held, and an rmap lock that keeps the VMA and its mm; `flags`
    /// is without `TTU_HWPOISON`. All that for as long as the walk exists, but that the PTE may be
    /// cleared by it; and there is no other walk at this stop.
    #[inline]
    pub(super) unsafe fn new(
        folio: *mut bindings::folio,
        page: *mut bindings::page,
        pvmw: *const bindings::page_vma_mapped_walk,
        pteval: u64,
        flags: c_uint,
    ) -> Self {
        // SAFETY: By the function's requirement.
        let view = unsafe { PteView::new(folio, page, pvmw, pteval) };
        unsafe_precondition_assert!(view.address % PAGE_SIZE == 0);
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
    unsafe fn clear_flush_ptes(&self, nr: RunLength) -> Cleared {
        // SAFETY: By the method's requirement, these are present PTEs of the folio, and by the
        // invariants their lock is held.
        let run = unsafe { bindings::ttu_clear_run(self.view.pvmw, nr.get(), self.flags) };
        Cleared {
            first: Pte::new(run.pteval),
            dirty: run.dirty,
        }
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
    unsafe fn end_mappings(&self, nr: RunLength) {
        let PteView {
            folio, page, vma, ..
        } = self.view;
        // SAFETY: By the method's requirement, the mappings of so many pages from `page` on are
        // gone and still counted; by the invariants, their lock is held, and there is one more
        // reference.
        unsafe { bindings::mm_batch_end_mappings(folio, page, vma, nr.get()) }
    }

    #[inline]
    unsafe fn vanish(&self, cleared: &Part<Self>) {
        let PteView {
            folio, page, pvmw, ..
        } = self.view;
        let (nr, pte) = (cleared.nr().get(), cleared.first().raw());
        // SAFETY: As above, and by the method's requirement the PTEs are none.
        unsafe { bindings::mm_batch_vanish_run(folio, page, pvmw, pte, nr) }
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
