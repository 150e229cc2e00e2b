// SPDX-License-Identifier: GPL-2.0

//! What the model of a batch objects to.

use super::*;
use crate::{
    pte::{
        DIRTY,
        WRITE, //
    },
    reclaim::{
        Machine,
        Mapping,
        Spec, //
    },
    sync::explore, //
};
use mm_batch::reclaim::FolioList;

/// Does something to a batch of one, which is dirty by its PTE.
fn batch_of(flags: &'static [Flag], does: fn(&Batch<'_, '_>)) {
    explore(move || {
        let dirty = Spec {
            pte: Some(WRITE | DIRTY),
            dirty: false,
            flags: flags.to_vec(),
            ..Spec::page_of(Mapping::Swap)
        };
        let machine = Machine::new(1, &[dirty]);
        List::new(&machine, [0]).shrink_together(|batch, _| {
            does(&batch);
            0
        });
    });
}

#[test]
#[should_panic(expected = "a folio is unlocked while a flush is owed")]
fn a_batch_that_is_unlocked_unflushed_is_noticed() {
    batch_of(&[], |batch| {
        // SAFETY: It is not flushed for, which is to be noticed.
        unsafe {
            batch.unmap();
            batch.let_go();
        }
    });
}

#[test]
#[should_panic(expected = "folios are freed while a flush is owed")]
fn a_batch_that_is_freed_unflushed_is_noticed() {
    batch_of(&[], |batch| {
        // SAFETY: It is not flushed for, which is to be noticed.
        unsafe {
            batch.unmap();
            batch.free_clean();
        }
    });
}

#[test]
#[should_panic(expected = "a folio without slots is unmapped")]
fn a_folio_that_has_no_slots_and_is_unmapped_is_noticed() {
    // SAFETY: That it is flushed for does not matter here.
    batch_of(&[Flag::NoSlots], |batch| unsafe { batch.unmap() });
}

#[test]
#[should_panic(expected = "folios get slots that may be in use")]
fn a_batch_that_gets_slots_unasked_is_noticed() {
    batch_of(&[], |batch| batch.alloc_swap());
}

#[test]
#[should_panic(expected = "a flush while a batch is locked")]
fn a_list_that_is_flushed_for_while_its_batch_is_locked_is_noticed() {
    batch_of(&[], |batch| Port(batch.list).try_to_unmap_flush_dirty());
}

#[test]
#[should_panic(expected = "one more is locked while a batch is locked")]
fn one_more_that_is_locked_is_noticed() {
    batch_of(&[], |batch| {
        batch.list.trylock(0);
    });
}
