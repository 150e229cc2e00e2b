// SPDX-License-Identifier: GPL-2.0

//! GUP-fast against a PTE that changes from one page to another, as at a write that copies the page.
//!
//! It is present all the time, as far as GUP-fast sees: only the whole word tells.

use mm_shim::{
    folio::Folio,
    gup::gup_fast,
    model::{
        check,
        Bound, //
    },
    pte::{
        pte,
        Table,
        WRITE, //
    },
    smp::smp_mb,
    sync::{
        thread,
        Arc, //
    }, //
};

/// `wp_page_copy()`, mm/memory.c, 7.3: who finds no reference behind the change may take the page for
/// nobody's, so nobody gets it by the PTE that was.
#[test]
fn gup_against_another_page() {
    let ends = ["nobody had it", "pinned", "it was got, and put back"];
    check(Bound::Exhaustive, &ends, move |outcomes| {
        let mapped = Arc::new((Folio::new(8, 1), Table::new(&[pte(8, WRITE)])));
        let theirs = mapped.clone();
        let user = thread::spawn(move || gup_fast(&theirs.1, 0, &theirs.0).is_some());
        let (folio, table) = &*mapped;
        table.get_and_clear(0);
        table.set(0, pte(9, WRITE));
        smp_mb();
        let unused = folio.ref_count() == 1;
        let pinned = user.join().expect("the user panicked");
        outcomes.saw(match (unused, pinned) {
            (true, false) => ends[0],
            (false, true) => ends[1],
            (false, false) => ends[2],
            (true, true) => "pinned, and nobody knows",
        });
    });
}
