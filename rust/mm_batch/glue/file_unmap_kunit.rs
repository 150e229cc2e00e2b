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

/// The length of the run of PTEs that begins with `*ptep`.
///
/// # Safety
///
/// `vma`, within which `address` is, a multiple of `PAGE_SIZE`, and `folio`, which is large and of
/// which `*ptep` maps `page`, stay as they are. `ptep` is the entry of `address` in a whole page
/// table that nobody else has.
///
/// Context: any.
#[export]
pub(crate) unsafe extern "C" fn mm_batch_folio_pte_batch_kunit(
    folio: *mut bindings::folio,
    page: *mut bindings::page,
    vma: *mut bindings::vm_area_struct,
    address: usize,
    ptep: *mut bindings::pte_t,
    respect_write: bool,
    respect_soft_dirty: bool,
) -> c_uint {
    // SAFETY: By the function's requirement.
    let view = unsafe { PteView::new(folio, page, vma, address, ptep) };
    let respect = Respect {
        write: respect_write,
        soft_dirty: respect_soft_dirty,
    };
    folio_pte_batch(&PteSpan::new(&view), respect).get()
}
