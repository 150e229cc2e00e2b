// SPDX-License-Identifier: GPL-2.0

//! What whoever comes in while a folio waits, unlocked, finds: the model of the others keeps to what
//! the kernel's others may rely on.

use crate::paths::dirty_flush::{
    against,
    folio,
    one,
    one_of_shmem,
    From, //
};
use mm_shim::{
    model::Bound,
    reclaim::{
        report::Fate,
        Flag,
        Mapping,
        Spec,
        Write, //
    }, //
};

const FREED: &str = "freed";
const LEFT: &str = "left";

/// Somebody else has begun to write it.
#[test]
fn window_not_freed_under_writeback() {
    against(
        Bound::Preemptions(3),
        From::List,
        one_of_shmem,
        |machine| {
            if machine.fault(0, true) {
                machine.zap(0);
                machine.write_back(0);
            }
        },
        |machine, report| {
            if report.fates[&0] != Fate::Reclaimed {
                return LEFT;
            }
            assert!(
                !machine.folio(0).test(Flag::Writeback),
                "freed under writeback"
            );
            FREED
        },
        &[FREED, LEFT],
    );
}

/// A zap takes a swap entry away whose page's flush reclaim still owes.
#[test]
fn window_a_zap_has_flushed() {
    against(
        Bound::Preemptions(5),
        From::Window,
        one,
        |machine| {
            machine.zap(0);
            assert!(!machine.write(0, 0), "written to behind a zap");
        },
        |_, _| "zapped",
        &["zapped"],
    );
}

/// Who has the lock finds it dirty, or being written, and never neither.
#[test]
fn window_writeback_is_set_under_the_lock() {
    against(
        Bound::Preemptions(3),
        From::List,
        || {
            vec![Spec {
                write: Write::Begun,
                dirty: true,
                ..folio(Mapping::Shmem)
            }]
        },
        |machine| {
            let folio = machine.folio(0);
            if !folio.core.try_get() {
                return;
            }
            if folio.trylock() {
                assert!(
                    folio.core.is_dirty() || folio.test(Flag::Writeback),
                    "neither dirty nor under writeback"
                );
                folio.unlock();
            }
            machine.put(0, 1);
        },
        |_, _| "looked",
        &["looked"],
    );
}
