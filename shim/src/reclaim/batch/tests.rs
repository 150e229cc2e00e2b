// SPDX-License-Identifier: GPL-2.0

//! What the model of a batch objects to.

use super::*;
use crate::{
    pte::{
        DIRTY,
        WRITE, //
    },
    reclaim::{
        list::Port,
        Machine,
        Mapping,
        Spec, //
    },
    sync::explore, //
};
use mm_batch::reclaim::FolioList;

/// Does something to a batch of one, which is dirty by its PTE.
fn batch_of(mapping: Mapping, flags: &'static [Flag], does: fn(&Batch<'_, '_>)) {
    explore(move || {
        let dirty = Spec {
            pte: Some(WRITE | DIRTY),
            dirty: false,
            flags: flags.to_vec(),
            ..Spec::page_of(mapping)
        };
        let machine = Machine::new(1, &[dirty]);
        List::new(&machine, [0]).shrink_together(|batch| does(&batch));
    });
}

#[test]
#[should_panic(expected = "a folio is let go while a flush is owed for it")]
fn a_folio_of_shmem_that_is_let_go_unflushed_is_noticed() {
    batch_of(Mapping::Shmem, &[], |batch| {
        batch.unmap();
        // SAFETY: It is not flushed for, which is to be noticed.
        unsafe { batch.let_go() };
    });
}

#[test]
#[should_panic(expected = "a folio is freed while a CPU may write to it")]
fn a_folio_that_is_freed_unflushed_is_noticed() {
    batch_of(Mapping::Shmem, &[], |batch| {
        batch.unmap();
        batch.list.machine.folio(0).core.test_clear_dirty();
        batch.free_clean();
    });
}

#[test]
#[should_panic(expected = "a folio without slots is unmapped")]
fn a_folio_that_has_no_slots_and_is_unmapped_is_noticed() {
    batch_of(Mapping::Swap, &[Flag::NoSlots], |batch| batch.unmap());
}

#[test]
#[should_panic(expected = "folios get slots that may be in use")]
fn a_batch_that_gets_slots_unasked_is_noticed() {
    batch_of(Mapping::Swap, &[], |batch| batch.alloc_swap());
}

#[test]
#[should_panic(expected = "a flush while a batch is locked")]
fn a_list_that_is_flushed_for_while_its_batch_is_locked_is_noticed() {
    batch_of(Mapping::Swap, &[], |batch| {
        Port(batch.list).try_to_unmap_flush_dirty()
    });
}

#[test]
#[should_panic(expected = "one more is locked while a batch is locked")]
fn one_more_that_is_locked_is_noticed() {
    batch_of(Mapping::Swap, &[], |batch| {
        batch.list.trylock(0);
    });
}
