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

/// The length of the run of PTEs that begins with `*ptep`; `*seen` PTEs beyond the first were read
/// and are of it, and `words` has them.
///
/// # Safety
///
/// `vma`, within which `address` is, a multiple of `PAGE_SIZE`, and `folio`, which is large and of
/// which `*ptep` maps `page`, stay as they are. `ptep` is the entry of `address` in a whole page
/// table that nobody else has. `words` has room for as many entries as a page table has, and `seen`
/// for a number.
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
    respect_dirty: bool,
    words: *mut u64,
    seen: *mut c_uint,
) -> c_uint {
    // SAFETY: By the function's requirement.
    let view = unsafe { PteView::new(folio, page, vma, address, ptep) };
    let respect = Respect {
        write: respect_write,
        soft_dirty: respect_soft_dirty,
        dirty: respect_dirty,
    };
    let mut nr_seen = 0;
    let nr = folio_pte_batch(&PteSpan::new(&view), respect, |pte| {
        // SAFETY: A span is within the page table, no entry of it is read twice, and by the
        // function's requirement there is room for as many.
        unsafe { words.add(nr_seen).write(pte.raw()) };
        nr_seen += 1;
    });
    // SAFETY: By the function's requirement.
    unsafe { seen.write(nr_seen as c_uint) };
    nr.get()
}
