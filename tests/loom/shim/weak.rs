// SPDX-License-Identifier: GPL-2.0

//! What is relaxed in the kernel is relaxed in the shim, and what may be stale is.
//!
//! One thread does two things, another sees the second and not the first: each of these must occur.
//! A shim that were stronger, as x86 is, would hide the bugs of whoever forgets a barrier.

use crate::litmus::{
    passing,
    EARLY,
    SEEN,
    STALE, //
};
use mm_shim::{
    folio::Folio,
    gup::{
        pin_fast,
        Pin, //
    },
    page::Page,
    pte::{
        pte,
        Table, //
    },
    smp::{
        smp_mb,
        smp_rmb, //
    }, //
};

pub(crate) struct Shim {
    pub(crate) folio: Folio,
    pub(crate) table: Table,
    pub(crate) page: Page,
}

pub(crate) fn stale(change: fn(&Shim), look: fn(&Shim) -> (bool, bool)) {
    let shim = || {
        let folio = Folio::new(8, 1);
        folio.map(1);
        folio.anon.set_exclusive(0);
        Shim {
            folio,
            table: Table::new(&[pte(8, 0)]),
            page: Page::new(1),
        }
    };
    stale_in(shim, change, look);
}

/// The same with anything that two threads share.
pub(crate) fn stale_in<T: Send + Sync + 'static>(
    make: fn() -> T,
    change: fn(&T),
    look: fn(&T) -> (bool, bool),
) {
    passing(make, change, look, &[EARLY, SEEN, STALE]);
}

/// Neither taking a mapping away nor setting the dirty flag orders anything.
#[test]
fn weak_remove_rmap() {
    stale(
        |shim| {
            shim.folio.mark_dirty();
            shim.folio.remove_rmap(1);
        },
        |shim| {
            let second = shim.folio.mapcount() == 0;
            smp_rmb();
            (second, shim.folio.is_dirty())
        },
    );
}

/// Not even a fork's reference and its mapping, though the latter is counted under a lock.
#[test]
fn weak_add_rmap() {
    stale(
        |shim| shim.folio.copy_present_ptes(1),
        |shim| {
            let second = shim.folio.mapcount() == 2;
            smp_rmb();
            (second, shim.folio.ref_count() == 3)
        },
    );
}

#[test]
fn weak_get() {
    stale(
        |shim| {
            shim.folio.mark_dirty();
            shim.folio.get(1);
        },
        |shim| {
            let second = shim.folio.ref_count() == 3;
            smp_rmb();
            (second, shim.folio.is_dirty())
        },
    );
}

#[test]
fn weak_mark_dirty() {
    stale(
        |shim| {
            shim.folio.remove_rmap(1);
            shim.folio.mark_dirty();
        },
        |shim| {
            let second = shim.folio.is_dirty();
            smp_rmb();
            (second, shim.folio.mapcount() == 0)
        },
    );
}

/// As on arm64: on x86 it is a locked instruction.
#[test]
fn weak_get_and_clear() {
    stale(
        |shim| {
            shim.folio.mark_dirty();
            shim.table.get_and_clear(0);
        },
        |shim| {
            let second = shim.table.ptep_get(0) == 0;
            smp_rmb();
            (second, shim.folio.is_dirty())
        },
    );
}

#[test]
fn weak_ptep_get() {
    stale(
        |shim| {
            shim.table.get_and_clear(0);
            shim.folio.put_refs(1);
        },
        |shim| {
            let second = shim.folio.ref_count() == 1;
            (second, shim.table.ptep_get(0) == 0)
        },
    );
}

/// The reference is dropped in order: it is who reads the count that must have a barrier.
#[test]
fn weak_ref_count() {
    stale(
        |shim| {
            shim.folio.mark_dirty();
            shim.folio.put_refs(1);
        },
        |shim| {
            let second = shim.folio.ref_count() == 1;
            (second, shim.folio.is_dirty())
        },
    );
}

#[test]
fn weak_mapcount() {
    stale(
        |shim| {
            shim.folio.remove_rmap(1);
            shim.folio.put_refs(1);
        },
        |shim| {
            let second = shim.folio.ref_count() == 1;
            (second, shim.folio.mapcount() == 0)
        },
    );
}

/// A holder's write is on its way until somebody synchronizes with the drop of the reference.
#[test]
fn weak_page_write() {
    stale(
        |shim| {
            shim.page.write();
            shim.folio.put_refs(1);
        },
        |shim| {
            let second = shim.folio.ref_count() == 1;
            (second, shim.page.is_quiet())
        },
    );
}

/// An atomic operation that returns nothing, as `ClearPageAnonExclusive()`.
#[test]
fn weak_clear_exclusive() {
    stale(
        |shim| {
            shim.folio.mark_dirty();
            shim.folio.anon.clear_exclusive(0);
        },
        |shim| {
            let second = !shim.folio.anon.is_exclusive(0);
            smp_rmb();
            (second, shim.folio.is_dirty())
        },
    );
}

/// Others may run between the flag and a barrier behind it.
#[test]
fn clearing_exclusive_and_a_barrier_are_two_steps() {
    stale(
        |shim| {
            shim.folio.mark_dirty();
            shim.folio.anon.clear_exclusive(0);
            smp_mb();
        },
        |shim| {
            let second = !shim.folio.anon.is_exclusive(0);
            smp_mb();
            (second, shim.folio.is_dirty())
        },
    );
}

#[test]
fn weak_is_exclusive() {
    stale(
        |shim| {
            shim.folio.anon.clear_exclusive(0);
            shim.folio.put_refs(1);
        },
        |shim| {
            let second = shim.folio.ref_count() == 1;
            (second, !shim.folio.anon.is_exclusive(0))
        },
    );
}

#[test]
fn weak_set_exclusive() {
    stale(
        |shim| {
            shim.folio.anon.clear_exclusive(0);
            smp_mb();
            shim.folio.mark_dirty();
            shim.folio.anon.set_exclusive(0);
        },
        |shim| {
            let cleared = !shim.folio.anon.is_exclusive(0);
            let second = cleared && shim.folio.anon.is_exclusive(0);
            smp_rmb();
            (second, shim.folio.is_dirty())
        },
    );
}

pub(crate) fn pin(shim: &Shim) -> Pin<'_> {
    pin_fast(&shim.table, 0, &shim.folio, false).expect("it is exclusive")
}

/// Taking the pin is ordered: it is who looks for pins that must have a barrier.
#[test]
fn weak_maybe_dma_pinned() {
    stale(
        |shim| {
            pin(shim);
            shim.folio.mark_dirty();
        },
        |shim| {
            let second = shim.folio.is_dirty();
            (second, shim.folio.anon.maybe_dma_pinned())
        },
    );
}

/// A pin goes without order, before its reference does.
#[test]
fn weak_unpin() {
    stale(
        |shim| {
            let pin = pin(shim);
            shim.folio.mark_dirty();
            pin.put();
        },
        |shim| {
            let pinned = shim.folio.anon.maybe_dma_pinned();
            let second = pinned && !shim.folio.anon.maybe_dma_pinned();
            smp_rmb();
            (second, shim.folio.is_dirty())
        },
    );
}
