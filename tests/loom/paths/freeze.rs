// SPDX-License-Identifier: GPL-2.0

//! A file folio that is unmapped and then frozen, against GUP-fast.
//!
//! What `__remove_mapping()` relies on, mm/vmscan.c, 7.3: once the references are frozen, nobody has
//! one or gets one, and whoever had one has left the dirty flag. So a folio that is clean then has
//! nothing in it that was not written back.

use crate::paths::file_unmap::PFN;
use mm_batch::file_unmap::unmap_file_run;
use mm_shim::{
    folio::Folio,
    gup::{
        gup_fast,
        Pinned, //
    },
    model::{
        check,
        Bound, //
    },
    pte::{
        pte,
        DIRTY,
        WRITE, //
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

const NR: usize = 2;

const FREED: &str = "freed";
const DIRTIED: &str = "kept, as it is dirty";
const BUSY: &str = "kept, as somebody has it";

/// A folio in the page cache, whose references are the reclaimer's and the cache's: `bits` are those
/// of its first PTE. The second may not be written to, so that the run is a mixed one.
fn file(bits: u64) -> (Arc<Mm>, Arc<Folio>) {
    let folio = Folio::new(PFN, NR);
    folio.get(NR as i32);
    folio.map(NR);
    let words = [pte(PFN, WRITE | bits), pte(PFN + 1, 0)];
    (Arc::new(Mm::new(Layout::file(NR), &words)), Arc::new(folio))
}

/// `shrink_folio_list()`, for one folio that one mm maps.
fn reclaim(mm: &Mm, folio: &Folio) -> &'static str {
    let (nr, _) = mm.walk(folio, 0, |walk| unmap_file_run(walk, true));
    assert_eq!(nr.get(), NR as u32);
    let expected = 1 + NR as i32;
    if !folio.ref_freeze(expected) {
        return BUSY;
    }
    if folio.is_dirty() {
        folio.ref_unfreeze(expected);
        return DIRTIED;
    }
    FREED
}

/// GUP-fast of the page that may be written to, by as many as there are `users`, for what each does.
fn against_gup(bound: Bound, bits: u64, users: &'static [fn(Pinned<'_>)], ends: &[&'static str]) {
    check(bound, ends, move |outcomes| {
        let (mm, folio) = file(bits);
        let users: Vec<_> = users
            .iter()
            .map(|&user| {
                let (mm, folio) = (mm.clone(), folio.clone());
                thread::spawn(move || {
                    if let Some(pinned) = gup_fast(&mm.table, 0, &folio) {
                        user(pinned);
                    }
                })
            })
            .collect();
        let end = reclaim(&mm, &folio);
        for user in users {
            user.join().expect("a user panicked");
        }
        assert_eq!(mm.table.words(), [0; NR]);
        assert_eq!(folio.mapcount(), 0);
        if end == FREED {
            assert_eq!(folio.written(), 0, "a write was lost");
            assert_eq!(folio.ref_count(), 0, "a free folio has references");
        } else {
            assert_eq!(folio.ref_count(), 1 + NR as i32, "a reference was lost");
        }
        outcomes.saw(end);
    });
}

#[test]
fn file_frozen_against_gup() {
    let ends = [FREED, DIRTIED, BUSY];
    against_gup(
        Bound::Exhaustive,
        0,
        &[|pinned| pinned.write_and_put()],
        &ends,
    );
}

/// Frozen and unfrozen, as a PTE was dirty.
#[test]
fn file_dirty_frozen_against_gup() {
    against_gup(
        Bound::Preemptions(3),
        DIRTY,
        &[|pinned| pinned.put()],
        &[DIRTIED, BUSY],
    );
}

#[test]
fn file_frozen_against_two_gups() {
    let ends = [FREED, DIRTIED, BUSY];
    against_gup(
        Bound::Preemptions(2),
        0,
        &[|pinned| pinned.write_and_put(), |pinned| pinned.put()],
        &ends,
    );
}
