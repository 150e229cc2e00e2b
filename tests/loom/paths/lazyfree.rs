// SPDX-License-Identifier: GPL-2.0

//! A lazyfree folio in reclaim, by itself and in a batch: who has it by GUP-fast writes to it, says so,
//! and drops it. It is discarded only if nobody has.

use crate::paths::dirty_flush::folio;
use mm_batch::folio_batch::shrink_batch;
use mm_shim::{
    model::{
        check,
        Bound, //
    },
    pte::WRITE,
    reclaim::{
        list::List,
        report::{
            Fate,
            Report, //
        },
        Flag,
        Machine,
        Mapping,
        Spec, //
    },
    sync::{
        thread,
        Arc, //
    }, //
};

const DISCARDED: &str = "discarded";
const KEPT: &str = "kept";

fn against_a_writer(shrink: fn(List<'_>) -> Report) {
    check(Bound::Preemptions(3), &[DISCARDED, KEPT], move |outcomes| {
        let given_up = Spec {
            pte: Some(WRITE),
            flags: vec![Flag::Lazyfree],
            ..folio(Mapping::Swap)
        };
        let machine = Arc::new(Machine::new(1, &[given_up]));
        let theirs = machine.clone();
        let writer = thread::spawn(move || {
            if let Some(pin) = theirs.pin_and_write(0) {
                pin.put();
            }
        });
        let report = shrink(List::new(&machine, [0]));
        writer.join().expect("the writer panicked");
        machine.assert_nothing_lost(0);
        outcomes.saw(match report.fates[&0] {
            Fate::Reclaimed => DISCARDED,
            _ => KEPT,
        });
    });
}

#[test]
fn lazyfree_written_by_itself() {
    against_a_writer(|list| list.shrink_unbatched());
}

#[test]
fn lazyfree_written_in_a_batch() {
    against_a_writer(|list| list.shrink_together(|batch| shrink_batch(batch)));
}
