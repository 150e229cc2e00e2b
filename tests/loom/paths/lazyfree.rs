// SPDX-License-Identifier: GPL-2.0

//! A lazyfree folio in reclaim, by itself and in a batch: who has it by GUP-fast writes to it, says so,
//! and drops it. It is discarded only if nobody has.

use crate::paths::{
    dirty_flush::folio,
    unlocked::{
        shrink_against,
        Shrink,
        OFF, //
    }, //
};
use mm_batch::folio_batch::shrink_batch;
use mm_shim::{
    pte::WRITE,
    reclaim::{
        report::Fate,
        Flag,
        Mapping,
        Spec, //
    }, //
};

const DISCARDED: &str = "discarded";
const KEPT: &str = "kept";

fn given_up() -> Vec<Spec> {
    vec![Spec {
        pte: Some(WRITE),
        flags: vec![Flag::Lazyfree],
        ..folio(Mapping::Swap)
    }]
}

fn against_a_writer(shrink: Shrink) {
    shrink_against(
        shrink,
        given_up,
        |machine| machine.pin_and_write(0).map(|pin| pin.put()).is_some(),
        |_, report, _| match report.fates[&0] {
            Fate::Reclaimed => DISCARDED,
            _ => KEPT,
        },
        &[DISCARDED, KEPT],
    );
}

#[test]
fn lazyfree_written_by_itself() {
    against_a_writer(OFF);
}

#[test]
fn lazyfree_written_in_a_batch() {
    against_a_writer(|list| list.shrink_together(|batch| shrink_batch(batch)));
}
