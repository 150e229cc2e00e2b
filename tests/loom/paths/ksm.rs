// SPDX-License-Identifier: GPL-2.0

//! Sharing a page whose PTE comes back as it was: what the barrier behind (A3) is for.
//!
//! Unmapping puts a swap entry where the PTE was, which no GUP-fast takes for the PTE that it read.
//! KSM maps the page read-only, which it may have been before: then GUP-fast goes by the page alone,
//! and must not see its bit from before the sharing through a PTE from behind it.

use mm_shim::{
    folio::Folio,
    gup::pin_fast,
    model::{
        check,
        Bound, //
    },
    pte::{
        pte,
        Table, //
    },
    smp::smp_mb,
    sync::{
        thread,
        Arc, //
    }, //
};

/// `write_protect_page()`, mm/ksm.c, 7.3, of a page that is mapped read-only: whether it is shared
/// now.
fn write_protect_page(folio: &Folio, table: &Table) -> bool {
    // (A1)
    let was = table.get_and_clear(0);
    smp_mb();
    // (A2)
    let shared = !folio.anon.maybe_dma_pinned();
    if shared {
        // (A3), and smp_mb__after_atomic().
        folio.anon.clear_exclusive(0);
        smp_mb();
    }
    // (A4)
    table.set(0, was);
    shared
}

#[test]
fn ksm_shares_a_page_that_is_read_only() {
    let ends = ["shared", "pinned, and not shared", "pinned in between"];
    check(Bound::Exhaustive, &ends, move |outcomes| {
        let folio = Folio::new(8, 1);
        folio.map(1);
        folio.anon.set_exclusive(0);
        let page = Arc::new((folio, Table::new(&[pte(8, 0)])));
        let theirs = page.clone();
        let user = thread::spawn(move || pin_fast(&theirs.1, 0, &theirs.0, false).is_some());
        let shared = write_protect_page(&page.0, &page.1);
        let pinned = user.join().expect("the user panicked");
        outcomes.saw(match (shared, pinned) {
            (true, false) => ends[0],
            (false, true) => ends[1],
            (false, false) => ends[2],
            (true, true) => "pinned, and shared",
        });
    });
}
