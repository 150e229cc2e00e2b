// SPDX-License-Identifier: GPL-2.0

//! `folio_pte_batch()` as the kernel runs it, for mm/tests/mm_batch_pte_run_kunit.c, which
//! compares it with C's.

use super::rmap_walk::PteView;
use crate::{
    pte::Respect,
    pte_run::{
        folio_pte_batch,
        PteSpan, //
    }, //
};
use kernel::{
    bindings,
    prelude::*, //
};

/// The length of the run of PTEs that begins with the walk's.
///
/// # Safety
///
/// `pvmw` is at an entry of a whole page table that nobody else has, which was `pteval` and maps
/// `page`, of all of `folio`, which is large. Its VMA, and the folio, stay as they are.
///
/// Context: any.
#[export]
pub(crate) unsafe extern "C" fn mm_batch_folio_pte_batch_kunit(
    folio: *mut bindings::folio,
    page: *mut bindings::page,
    pvmw: *const bindings::page_vma_mapped_walk,
    pteval: u64,
    respect_write: bool,
    respect_soft_dirty: bool,
) -> c_uint {
    // SAFETY: By the function's requirement.
    let view = unsafe { PteView::new(folio, page, pvmw, pteval) };
    let respect = Respect {
        write: respect_write,
        soft_dirty: respect_soft_dirty,
    };
    folio_pte_batch(&PteSpan::new(&view), respect).get()
}
