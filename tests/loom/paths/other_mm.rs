// SPDX-License-Identifier: GPL-2.0

//! A lazyfree folio that other mms map as well, and fork or unmap meanwhile.
//!
//! Neither takes a lock that reclaim has. A fork takes references and then adds mappings, an
//! unmapping takes mappings away and then drops references; whoever reads the two counts one after
//! the other may find a sum that never was.

use crate::paths::file_unmap::{
    lazyfree,
    unmap,
    DISCARDED,
    REDIRTIED,
    REFERENCED, //
};
use mm_shim::{
    folio::Folio,
    model::{
        check,
        Bound, //
    },
    sync::thread, //
};

fn fork(folio: &Folio) {
    folio.copy_present_ptes(1);
}

fn zap(folio: &Folio) {
    folio.zap_present_ptes(1);
}

fn fork_and_zap(folio: &Folio) {
    fork(folio);
    zap(folio);
}

/// Whoever got a reference when the folio was not shared yet writes, and drops it.
fn write_and_put(folio: &Folio) {
    folio.write();
    folio.mark_dirty();
    folio.put_refs(1);
}

/// Unmaps a folio with `held` references beyond those of its mappings, of which another mm has one,
/// while `others` do something about it. No write is lost.
fn against(held: i32, others: &'static [fn(&Folio)], ends: &[&'static str]) {
    check(Bound::Exhaustive, ends, move |outcomes| {
        let (mm, folio) = lazyfree(2);
        folio.get(held);
        folio.map(1);
        let others: Vec<_> = others
            .iter()
            .map(|&other| {
                let folio = folio.clone();
                thread::spawn(move || other(&folio))
            })
            .collect();
        let unmapped = unmap(&mm, &folio);
        for other in others {
            other.join().expect("another mm panicked");
        }
        if unmapped {
            assert_eq!(folio.written(), 0, "a write was discarded");
        }
        outcomes.saw(match (unmapped, folio.is_swapbacked()) {
            (true, _) => DISCARDED,
            (false, true) => REDIRTIED,
            (false, false) => REFERENCED,
        });
    });
}

/// The mapping goes, then its reference: who counts mappings first, or whose reads are not ordered,
/// takes the holder's reference for that of the mapping which is gone.
#[test]
fn lazyfree_held_against_zap() {
    against(1, &[zap], &[REFERENCED]);
}

/// The reference comes, then the mapping: who counts references first takes the holder's for that of
/// the mapping which is new.
#[test]
fn lazyfree_held_against_fork() {
    against(1, &[fork], &[REFERENCED]);
}

/// When both are over, the references are as many as before.
#[test]
fn lazyfree_held_against_fork_and_zap() {
    against(1, &[fork_and_zap], &[REFERENCED]);
}

#[test]
fn lazyfree_held_against_fork_and_another_zap() {
    against(1, &[fork, zap], &[REFERENCED]);
}

/// The dirty flag that a holder leaves is seen by whoever does not see the reference any more.
#[test]
fn lazyfree_written_against_fork() {
    against(1, &[fork, write_and_put], &[REDIRTIED, REFERENCED]);
}

/// The lock of the counts is not held for the reference that a mapping has, in neither order.
#[test]
fn lazyfree_shared_against_fork() {
    against(0, &[fork], &[DISCARDED, REFERENCED]);
}

#[test]
fn lazyfree_shared_against_zap() {
    against(0, &[zap], &[DISCARDED, REFERENCED]);
}

/// A folio that is shared and that nobody holds is discarded all the same, but for a moment.
#[test]
fn lazyfree_shared_against_fork_and_zap() {
    against(0, &[fork_and_zap], &[DISCARDED, REFERENCED]);
}
