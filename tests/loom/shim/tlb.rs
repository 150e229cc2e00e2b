// SPDX-License-Identifier: GPL-2.0

//! A bit lock, a TLB flush and the test of the dirty flag order what the kernel's do, and no more.
//! As in smp.rs, the other side has the weakest barrier that will do.

use crate::litmus::{
    buffering,
    passing,
    race,
    BOTH,
    EARLY,
    NEITHER,
    ONE,
    SEEN,
    STALE, //
};
use mm_shim::{
    folio::Folio,
    pte::{
        pte,
        Table,
        DIRTY,
        WRITE, //
    },
    smp::{
        clear_bit_unlock,
        smp_mb,
        smp_rmb,
        test_and_set_bit_lock, //
    },
    sync::atomic::{
        AtomicI32,
        AtomicU64,
        Ordering::Relaxed, //
    },
    tlb::Cpus, //
};

/// One page, which was unmapped; one CPU has a translation of it that is left.
struct Shim {
    x: AtomicI32,
    y: AtomicI32,
    lock: AtomicU64,
    folio: Folio,
    table: Table,
    cpus: Cpus,
}

const LOCKED: u32 = 3;

impl Shim {
    fn new(locked: bool) -> Self {
        let table = Table::new(&[pte(8, WRITE | DIRTY)]);
        let cpus = Cpus::new(1, 1);
        cpus.cpu(0).fill(&table, 0);
        table.get_and_clear(0);
        let folio = Folio::new(8, 1);
        folio.mark_dirty();
        Self {
            x: AtomicI32::new(0),
            y: AtomicI32::new(0),
            lock: AtomicU64::new(u64::from(locked) << LOCKED),
            folio,
            table,
            cpus,
        }
    }

    fn trylock(&self) -> bool {
        !test_and_set_bit_lock(LOCKED, &self.lock)
    }

    fn unlock(&self) {
        assert!(clear_bit_unlock(LOCKED, &self.lock));
    }

    fn is_locked(&self) -> bool {
        self.lock.load(Relaxed) != 0
    }

    /// A write to the page by the CPU, whatever it does there.
    fn cpu_writes(&self, store: impl FnOnce()) -> bool {
        self.cpus.cpu(0).write(&self.table, 0, store)
    }
}

fn locked() -> Shim {
    Shim::new(true)
}

fn unlocked() -> Shim {
    Shim::new(false)
}

fn is_set(v: &AtomicI32) -> bool {
    v.load(Relaxed) == 1
}

#[test]
fn bit_lock_passes_on_what_was_written_under_it() {
    passing(
        locked,
        |shim| {
            shim.x.store(1, Relaxed);
            shim.unlock();
        },
        |shim| (shim.trylock(), is_set(&shim.x)),
        &[EARLY, SEEN],
    );
}

#[test]
fn bit_lock_that_fails_orders_nothing() {
    passing(
        locked,
        |shim| {
            shim.x.store(1, Relaxed);
            smp_mb();
            shim.y.store(1, Relaxed);
        },
        |shim| {
            let first = is_set(&shim.y);
            assert!(!shim.trylock());
            (first, is_set(&shim.x))
        },
        &[EARLY, SEEN, STALE],
    );
}

/// What was written in front of it may come behind.
#[test]
fn bit_lock_orders_nothing_before() {
    buffering(
        unlocked,
        |shim| {
            shim.x.store(1, Relaxed);
            assert!(shim.trylock());
            is_set(&shim.y)
        },
        |shim| {
            shim.y.store(1, Relaxed);
            smp_mb();
            is_set(&shim.x)
        },
        &[ONE, BOTH, NEITHER],
    );
}

/// Nor does it tell anybody of it.
#[test]
fn bit_lock_releases_nothing() {
    passing(
        unlocked,
        |shim| {
            shim.x.store(1, Relaxed);
            assert!(shim.trylock());
        },
        |shim| {
            let first = shim.is_locked();
            smp_rmb();
            (first, is_set(&shim.x))
        },
        &[EARLY, SEEN, STALE],
    );
}

#[test]
fn bit_unlock_orders_nothing_behind() {
    buffering(
        locked,
        |shim| {
            shim.unlock();
            is_set(&shim.y)
        },
        |shim| {
            shim.y.store(1, Relaxed);
            smp_mb();
            !shim.is_locked()
        },
        &[ONE, BOTH, NEITHER],
    );
}

/// Who unlocks has not seen what others wrote.
#[test]
fn bit_unlock_acquires_nothing() {
    passing(
        locked,
        |shim| {
            shim.x.store(1, Relaxed);
            smp_mb();
            shim.y.store(1, Relaxed);
        },
        |shim| {
            let first = is_set(&shim.y);
            shim.unlock();
            (first, is_set(&shim.x))
        },
        &[EARLY, SEEN, STALE],
    );
}

/// What a CPU wrote by a translation that is left is seen behind the flush.
#[test]
fn tlb_flush_acquires() {
    race(
        unlocked,
        |shim| {
            shim.cpus.flush();
            is_set(&shim.x)
        },
        |shim| shim.cpu_writes(|| shim.x.store(1, Relaxed)),
        |seen, wrote| match (wrote, seen) {
            // It faulted.
            (false, _) => EARLY,
            (true, true) => SEEN,
            (true, false) => STALE,
        },
        &[EARLY, SEEN],
    );
}

/// A CPU that faults has seen what was done before the flush.
#[test]
fn tlb_flush_releases() {
    passing(
        unlocked,
        |shim| {
            shim.x.store(1, Relaxed);
            shim.cpus.flush();
        },
        |shim| (!shim.cpu_writes(|| ()), is_set(&shim.x)),
        &[EARLY, SEEN],
    );
}

#[test]
fn tlb_flush_is_no_full_barrier() {
    buffering(
        unlocked,
        |shim| {
            shim.x.store(1, Relaxed);
            shim.cpus.flush();
            is_set(&shim.y)
        },
        |shim| {
            shim.y.store(1, Relaxed);
            smp_mb();
            is_set(&shim.x)
        },
        &[ONE, BOTH, NEITHER],
    );
}

/// A CPU's write is on its way, as long as nobody flushes.
#[test]
fn tlb_write_is_no_barrier() {
    buffering(
        unlocked,
        |shim| {
            assert!(shim.cpu_writes(|| shim.x.store(1, Relaxed)));
            is_set(&shim.y)
        },
        |shim| {
            shim.y.store(1, Relaxed);
            smp_mb();
            is_set(&shim.x)
        },
        &[ONE, BOTH, NEITHER],
    );
}

#[test]
fn test_clear_dirty_orders_before() {
    passing(
        unlocked,
        |shim| {
            shim.x.store(1, Relaxed);
            assert!(shim.folio.test_clear_dirty());
        },
        |shim| {
            let cleared = !shim.folio.is_dirty();
            smp_rmb();
            (cleared, is_set(&shim.x))
        },
        &[EARLY, SEEN],
    );
}

#[test]
fn test_clear_dirty_orders_behind() {
    buffering(
        unlocked,
        |shim| {
            assert!(shim.folio.test_clear_dirty());
            is_set(&shim.y)
        },
        |shim| {
            shim.y.store(1, Relaxed);
            smp_mb();
            !shim.folio.is_dirty()
        },
        &[ONE, BOTH],
    );
}
