// SPDX-License-Identifier: GPL-2.0

//! What is no acquire in the kernel is none in the shim: whoever reads a word, by an operation that
//! changes it or fails to, sees that word as it is now, and nothing else. Nor is it a release.

use super::weak::{
    stale,
    stale_in, //
};
use crate::litmus::race;
use mm_shim::{
    folio::Folio,
    pte::{
        pte,
        swp_pte,
        Table,
        CONT,
        UFFD_WP_MARKER,
        WRITE, //
    },
    smp::{
        clear_bit_unlock,
        smp_mb,
        smp_rmb,
        test_and_set_bit_lock, //
    },
    sync::atomic::{
        AtomicU64,
        Ordering::Relaxed, //
    }, //
};

fn none_mapped() -> (Folio, Table) {
    (Folio::new(8, 1), Table::new(&[0]))
}

#[test]
fn acquire_no_get_and_clear() {
    stale_in(
        none_mapped,
        |(folio, table)| {
            folio.mark_dirty();
            smp_mb();
            table.set(0, pte(8, WRITE));
        },
        |(folio, table)| {
            let second = table.get_and_clear(0) != 0;
            (second, folio.is_dirty())
        },
    );
}

#[test]
fn acquire_no_set_pte() {
    stale_in(
        none_mapped,
        |(folio, table)| {
            folio.mark_dirty();
            smp_mb();
            table.set(0, swp_pte(1, 0));
        },
        |(folio, table)| {
            let second = table.set(0, UFFD_WP_MARKER) != 0;
            (second, folio.is_dirty())
        },
    );
}

#[test]
fn acquire_no_release_by_unfold() {
    stale_in(
        || (Folio::new(8, 1), Table::new(&[pte(8, CONT)])),
        |(folio, table)| {
            folio.mark_dirty();
            table.unfold(0);
        },
        |(folio, table)| {
            let second = table.ptep_get(0) & CONT == 0;
            smp_rmb();
            (second, folio.is_dirty())
        },
    );
}

#[test]
fn acquire_no_is_swapbacked() {
    stale(
        |shim| {
            shim.folio.remove_rmap(1);
            smp_mb();
            shim.folio.set_swapbacked();
        },
        |shim| {
            let second = shim.folio.is_swapbacked();
            (second, shim.folio.mapcount() == 0)
        },
    );
}

#[test]
fn acquire_no_release_by_set_swapbacked() {
    stale(
        |shim| {
            shim.folio.remove_rmap(1);
            shim.folio.set_swapbacked();
        },
        |shim| {
            let second = shim.folio.is_swapbacked();
            smp_rmb();
            (second, shim.folio.mapcount() == 0)
        },
    );
}

#[test]
fn acquire_no_failed_try_get() {
    stale_in(
        || Folio::new(8, 1),
        |folio| {
            folio.mark_dirty();
            folio.put_refs(1);
        },
        |folio| {
            let second = folio.ref_count() == 0 && !folio.try_get();
            (second, folio.is_dirty())
        },
    );
}

#[test]
fn acquire_no_failed_freeze() {
    stale_in(
        || Folio::new(8, 1),
        |folio| {
            folio.mark_dirty();
            smp_mb();
            folio.get(1);
        },
        |folio| {
            let second = folio.ref_count() == 2 && !folio.ref_freeze(1);
            (second, folio.is_dirty())
        },
    );
}

const BIT: u32 = 3;

#[test]
fn acquire_no_failed_bit_lock() {
    stale_in(
        || (Folio::new(8, 1), AtomicU64::new(0)),
        |(folio, lock)| {
            folio.mark_dirty();
            smp_mb();
            test_and_set_bit_lock(BIT, lock);
        },
        |(folio, lock)| {
            let second = test_and_set_bit_lock(BIT, lock);
            (second, folio.is_dirty())
        },
    );
}

/// Here it is the one that changes something who learns whether the other came behind it.
fn stale_behind<T: Send + Sync + 'static>(
    make: fn() -> T,
    change: fn(&T) -> bool,
    look: fn(&T) -> bool,
) {
    let ends = ["the look came first", "in order", "behind, and stale"];
    let end = |first, seen| match (first, seen) {
        (false, _) => "the look came first",
        (true, true) => "in order",
        (true, false) => "behind, and stale",
    };
    race(make, change, look, end, &ends);
}

#[test]
fn acquire_no_bit_unlock() {
    stale_behind(
        || (Folio::new(8, 1), AtomicU64::new(1 << BIT)),
        |(folio, lock)| {
            folio.mark_dirty();
            smp_mb();
            lock.fetch_or(1 << (BIT + 2), Relaxed) & (1 << BIT) != 0
        },
        |(folio, lock)| {
            assert!(clear_bit_unlock(BIT, lock));
            folio.is_dirty()
        },
    );
}

#[test]
fn acquire_no_mark_dirty() {
    stale_behind(
        || {
            let folio = Folio::new(8, 1);
            folio.map(1);
            folio
        },
        |folio| {
            folio.remove_rmap(1);
            !folio.test_clear_dirty()
        },
        |folio| {
            folio.mark_dirty();
            folio.mapcount() == 0
        },
    );
}

#[test]
fn acquire_no_get() {
    stale_behind(
        || Folio::new(8, 1),
        |folio| {
            folio.mark_dirty();
            folio.put_refs(1)
        },
        |folio| {
            folio.get(1);
            folio.is_dirty()
        },
    );
}
