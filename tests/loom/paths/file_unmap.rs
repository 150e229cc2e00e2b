// SPDX-License-Identifier: GPL-2.0

//! `file_unmap` of a lazyfree folio against those who may write to it without asking.
//!
//! GUP-fast takes a reference by a PTE that it reads without a lock; the CPU's MMU writes by one and
//! sets its dirty bit. A write that was made must not be discarded. What happens wholly under the
//! page table lock has no interleavings, and is in tests/properties/.

use mm_batch::file_unmap::unmap_lazyfree_run;
use mm_shim::{
    folio::Folio,
    gup::gup_fast,
    model::{
        check,
        Bound,
        Outcomes, //
    },
    pte::{
        pte,
        DIRTY,
        WRITE,
        YOUNG, //
    },
    sync::{
        thread,
        Arc, //
    },
    unmap::{
        Layout,
        Mm, //
    }, //
};

pub(crate) const PFN: usize = 8;

pub(crate) const DISCARDED: &str = "discarded";
pub(crate) const REDIRTIED: &str = "redirtied";
pub(crate) const REFERENCED: &str = "referenced";

/// A lazyfree folio of `nr` pages, mapped whole, writable and clean.
pub(crate) fn lazyfree(nr: usize) -> (Arc<Mm>, Arc<Folio>) {
    let folio = Folio::new(PFN, nr);
    folio.map(nr);
    let words: Vec<u64> = (0..nr).map(|i| pte(PFN + i, WRITE)).collect();
    (
        Arc::new(Mm::new(Layout::anonymous(nr), &words)),
        Arc::new(folio),
    )
}

pub(crate) fn unmap(mm: &Mm, folio: &Folio) -> bool {
    let (outcome, _) = mm.walk(folio, 0, |walk| unmap_lazyfree_run(walk));
    outcome.is_ok()
}

/// GUP-fast by the last PTE, and a write by what it got.
fn write_by_gup(mm: &Mm, folio: &Folio) {
    if let Some(pinned) = gup_fast(&mm.table, mm.table.nr() - 1, folio) {
        pinned.write_and_put();
    }
}

/// A write by the CPU, through the last PTE.
fn write_by_hardware(mm: &Mm, folio: &Folio) {
    if mm.table.hardware_write(mm.table.nr() - 1).is_some() {
        folio.write();
    }
}

/// No write is lost; what was not discarded is mapped as before, but for young and dirty.
fn settle(mm: &Mm, folio: &Folio, unmapped: bool, outcomes: &Outcomes) {
    let nr = mm.table.nr();
    if unmapped {
        assert_eq!(folio.written(), 0, "a write was discarded");
        assert_eq!(mm.table.words(), vec![0; nr]);
        assert_eq!((folio.mapcount(), folio.ref_count()), (0, 1));
        return outcomes.saw(DISCARDED);
    }
    for (i, word) in mm.table.words().into_iter().enumerate() {
        assert_eq!(word & !(YOUNG | DIRTY), pte(PFN + i, WRITE));
    }
    assert_eq!(folio.mapcount(), nr as i32);
    assert_eq!(folio.ref_count(), 1 + nr as i32);
    outcomes.saw(if folio.is_swapbacked() {
        REDIRTIED
    } else {
        REFERENCED
    });
}

fn against(bound: Bound, nr: usize, racers: &'static [fn(&Mm, &Folio)], ends: &[&'static str]) {
    check(bound, ends, move |outcomes| {
        let (mm, folio) = lazyfree(nr);
        let racers: Vec<_> = racers
            .iter()
            .map(|&racer| {
                let (mm, folio) = (mm.clone(), folio.clone());
                thread::spawn(move || racer(&mm, &folio))
            })
            .collect();
        let unmapped = unmap(&mm, &folio);
        for racer in racers {
            racer.join().expect("a racer panicked");
        }
        settle(&mm, &folio, unmapped, outcomes);
    });
}

/// More pages have no more interleavings: nobody else has to do with their PTEs.
#[test]
fn lazyfree_gup() {
    let ends = [DISCARDED, REDIRTIED, REFERENCED];
    against(Bound::Exhaustive, 2, &[write_by_gup], &ends);
}

#[test]
fn lazyfree_hardware_write() {
    let ends = [DISCARDED, REDIRTIED];
    against(Bound::Exhaustive, 2, &[write_by_hardware], &ends);
}

#[test]
fn lazyfree_gup_and_hardware_write() {
    let ends = [DISCARDED, REDIRTIED, REFERENCED];
    against(
        Bound::Preemptions(3),
        2,
        &[write_by_gup, write_by_hardware],
        &ends,
    );
}

/// A folio that somebody holds is restored; GUP-fast, which compares the PTE with what it read, may
/// have read it before or after, and takes the page in both cases, or sees it gone.
#[test]
fn rollback_gup() {
    let ends = ["pinned", "backed off"];
    check(Bound::Exhaustive, &ends, move |outcomes| {
        let (mm, folio) = lazyfree(2);
        folio.get(1);
        let before = mm.table.words();
        let racer = {
            let (mm, folio) = (mm.clone(), folio.clone());
            thread::spawn(move || gup_fast(&mm.table, 1, &folio).map(|pinned| pinned.put()))
        };
        assert!(!unmap(&mm, &folio));
        let pinned = racer.join().expect("the racer panicked");
        assert_eq!(mm.table.words(), before);
        assert_eq!((folio.mapcount(), folio.ref_count()), (2, 4));
        outcomes.saw(if pinned.is_some() { ends[0] } else { ends[1] });
    });
}
