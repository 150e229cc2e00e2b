// SPDX-License-Identifier: GPL-2.0

//! A cache with a slot for one folio: reclaimers take it out while it is clean and nobody uses it,
//! and users find it and write to it.
//!
//! With `--cfg planted`, a reclaimer asks whether the folio is dirty before it knows that nobody has
//! a reference.

use mm_shim::{
    folio::Folio,
    percpu::PerCpu,
    raced::Raced,
    smp::{
        read_once,
        smp_store_release, //
    },
    step,
    sync::{
        atomic::AtomicBool,
        Mutex, //
    },
};

/// The cache. The slot has a reference of the folio.
#[derive(Debug)]
pub struct Cache {
    /// Whether the folio is in the slot.
    full: AtomicBool,
    /// The folio; once it is taken out, it is somebody else's.
    pub folio: Folio,
    /// Whether the folio is on the LRU list, under the list's lock.
    lru: Mutex<bool>,
    /// How many folios each CPU has taken out.
    evicted: PerCpu<Raced<usize>>,
}

impl Cache {
    /// With a clean folio in its slot.
    pub fn new(nr_cpus: usize) -> Self {
        Self {
            full: AtomicBool::new(true),
            folio: Folio::new(8, 1),
            lru: Mutex::new(true),
            evicted: PerCpu::new(nr_cpus, |_| Raced::new(0)),
        }
    }

    /// Takes the folio out, if it is clean and nobody uses it. Whether it did.
    pub fn evict(&self, cpu: usize) -> bool {
        if !self.isolate() {
            return false;
        }
        let evicted = self.folio.trylock() && {
            let evicted = self.take_out();
            self.folio.unlock();
            evicted
        };
        if evicted {
            self.evicted.get(cpu, |nr| nr.set(nr.get() + 1));
            self.folio.hand_out_again();
        } else {
            *self.lru.lock().expect("nobody panics") = true;
        }
        evicted
    }

    /// Takes it off the LRU list: one reclaimer has it.
    fn isolate(&self) -> bool {
        let isolated = std::mem::take(&mut *self.lru.lock().expect("nobody panics"));
        step!("isolated: {isolated}");
        isolated
    }

    fn take_out(&self) -> bool {
        if cfg!(planted) && self.folio.is_dirty() {
            return false;
        }
        if !self.folio.ref_freeze(1) {
            return false;
        }
        // Nobody has a reference: who had one has left the dirty flag.
        if !cfg!(planted) && self.folio.is_dirty() {
            self.folio.ref_unfreeze(1);
            return false;
        }
        smp_store_release(&self.full, false);
        true
    }

    /// Finds the folio and pins it.
    pub fn pin(&self) -> Option<Pin<'_>> {
        if !read_once(&self.full) || !self.folio.try_get() {
            return None;
        }
        let pin = Pin(self);
        // It may be somebody else's by now.
        read_once(&self.full).then_some(pin)
    }

    /// How many folios were taken out, by all CPUs. Nobody reclaims any more.
    pub fn evicted(&self, nr_cpus: usize) -> usize {
        (0..nr_cpus).map(|cpu| self.evicted.remote(cpu).get()).sum()
    }
}

/// A folio that is in use.
#[derive(Debug)]
pub struct Pin<'c>(&'c Cache);

impl Pin<'_> {
    /// Writes to the folio.
    pub fn write(&self) {
        self.0.folio.write();
        self.0.folio.mark_dirty();
    }
}

impl Drop for Pin<'_> {
    fn drop(&mut self) {
        self.0.folio.put_refs(1);
    }
}
