// SPDX-License-Identifier: GPL-2.0

//! Folios that reclaim has isolated, and all that there is of them: the machine that its port runs
//! against.
//!
//! | here                             | in 7.3                                                  |
//! |----------------------------------|---------------------------------------------------------|
//! | [`Folio::trylock`]               | `folio_trylock()`, include/linux/pagemap.h              |
//! | [`Folio::unlock`]                | `folio_unlock()`, mm/filemap.c                          |
//! | [`Folio::mapping`]               | `folio_mapping()`, mm/util.c, under the folio lock      |
//! | [`Machine::write`]               | a store by a CPU, by [`crate::tlb`]                     |
//! | [`Machine::try_to_unmap`]        | `try_to_unmap()`, mm/rmap.c, with `TTU_BATCH_FLUSH`     |
//! | [`Machine::isolate`]             | `isolate_lru_folios()`, mm/vmscan.c, of one folio       |
//! | [`Machine::put`]                 | `folio_put_refs()`, include/linux/mm.h, and the free    |
//! | [`Machine::assert_nothing_lost`] | what must hold                                      |
//! | [`meanwhile`], [`of_file`]       | who else has to do with such a folio                    |
//! | [`list`]                         | `shrink_folio_list()`, mm/vmscan.c: the port            |
//! | [`batch`], `together`            | the same by batches, by this series: the port, the loop |
//! | [`stop`]                         | how a batch is unmapped, by this series                 |
//! | `lazyfree`                       | what unmapping makes of lazyfree folios                 |
//! | [`pageout`]                      | `pageout()`, `__remove_mapping()`, same file            |
//!
//! A folio has one PTE, which maps all of it: its PTE, or the PMD of a large one. [`crate::unmap`]
//! has folios that are mapped page by page. All are of one mm, and one page table, whose lock has
//! `mm->tlb_flush_batched`, too.
//!
//! A folio that is freed panics if it is locked, or if a CPU has a translation of it.
//!
//! Left out: LRU lists but for the flag and the order in which folios go back, the rmap walk,
//! AnonExclusive but for batches, what is in buffers, swap slots beyond the one entry that the PTE
//! is, THP that is split while it is mapped; several mms ([`crate::folios`] has two, without TLBs):
//! who flushes one for what was put off for another is not noticed.

use crate::{
    folio,
    pte::{
        pte,
        swp_pte,
        Table,
        DIRTY,
        PRESENT,
        SWP_EXCLUSIVE, //
    },
    sync::{
        atomic::{
            AtomicI32,
            AtomicU64,
            AtomicUsize,
            Ordering::Relaxed, //
        },
        step,
        Mutex,
        MutexGuard, //
    },
    tlb::{
        Batched,
        Cpus,
        Deferred, //
    }, //
};
use std::{
    ops::Range,
    sync::atomic::{
        AtomicBool as PlainBool,
        AtomicU32 as PlainU32,
        AtomicUsize as PlainUsize,
        Ordering::SeqCst, //
    },
    sync::Mutex as PlainMutex, //
};

pub mod batch;
mod invariant;
mod lazyfree;
pub mod list;
pub mod meanwhile;
pub mod of_file;
pub mod pageout;
pub mod report;
mod spec;
pub mod stop;
mod together;

use invariant::Gone;
pub use spec::{
    Flag,
    Mapping,
    Spec,
    Write, //
};

#[cfg(test)]
mod tests;

/// One folio.
#[derive(Debug)]
pub struct Folio {
    /// Its counts, its dirty flag, its pins.
    pub core: folio::Folio,
    mapcount: AtomicI32,
    flags: AtomicU64,
    mapping: AtomicU64,
    /// Whether it is of no file.
    anon: bool,
    /// Changed by a split alone, whose thread has the folio locked and isolated.
    nr: PlainU32,
    write: Write,
    content: AtomicUsize,
    /// What was written out; outside of loom's memory, so never stale.
    stored: PlainUsize,
    freed: PlainUsize,
    gone: PlainMutex<Gone>,
    /// Whether it is anonymous, and has no slots. Changed by the thread that has it locked and isolated.
    no_slots: PlainBool,
    cgroup: u8,
    /// What a split makes of it.
    tails: Range<usize>,
}

const MAPPINGS: [Option<Mapping>; 4] = [
    None,
    Some(Mapping::Swap),
    Some(Mapping::Shmem),
    Some(Mapping::File),
];

impl Folio {
    fn new(pfn: usize, spec: &Spec, tails: Range<usize>) -> Self {
        let core = folio::Folio::new(pfn, spec.nr as usize);
        let lazyfree = spec.is_lazyfree();
        if !lazyfree {
            core.get(spec.nr as i32);
        }
        core.get(i32::from(spec.flags.contains(&Flag::Held)));
        if spec.flags.contains(&Flag::Lru) {
            core.put_refs(1);
        }
        core.get(i32::from(spec.flags.contains(&Flag::Private)));
        let mapped = i32::from(spec.pte.is_some());
        core.get(mapped * spec.nr as i32);
        if spec.mapping != Mapping::File && !lazyfree {
            core.set_swapbacked();
        }
        if spec.mapping == Mapping::Swap {
            core.anon.set_exclusive(0);
        }
        if spec.dirty {
            core.mark_dirty();
        }
        if spec.locked {
            core.lock();
        }
        let flags = spec
            .flags
            .iter()
            .fold(0, |all, &flag| all | (1 << flag as u32));
        let folio = Self {
            core,
            mapcount: AtomicI32::new(mapped),
            flags: AtomicU64::new(flags),
            mapping: AtomicU64::new(0),
            anon: spec.mapping == Mapping::Swap,
            nr: PlainU32::new(spec.nr),
            write: spec.write,
            content: AtomicUsize::new(0),
            stored: PlainUsize::new(0),
            freed: PlainUsize::new(0),
            gone: PlainMutex::new(Gone::No),
            no_slots: PlainBool::new(spec.has_no_slots()),
            cgroup: spec.cgroup,
            tails,
        };
        folio.set_mapping((!lazyfree).then_some(spec.mapping));
        folio
    }

    /// Its pages.
    pub fn nr(&self) -> u32 {
        self.nr.load(SeqCst)
    }

    fn set_nr(&self, nr: u32) {
        self.nr.store(nr, SeqCst);
    }

    /// A flag.
    pub fn test(&self, flag: Flag) -> bool {
        let set = self.flags.load(Relaxed) & (1 << flag as u32) != 0;
        step!("folio {:#x}: {flag:?} = {set}", self.core.pfn);
        set
    }

    /// Sets a flag.
    pub fn set(&self, flag: Flag) {
        self.flags.fetch_or(1 << flag as u32, Relaxed);
        step!("folio {:#x}: {flag:?}", self.core.pfn);
    }

    /// Of a file, and not of shmem: `folio_is_file_lru()`, and not `folio_test_anon()`.
    fn is_of_file(&self) -> bool {
        !self.anon && !self.core.is_swapbacked()
    }

    /// `folio_evictable()`.
    fn is_evictable(&self) -> bool {
        !self.test(Flag::Mlocked) && !self.test(Flag::Unevictable)
    }

    /// `folio_wants_swap()`, mm/vmscan.c, by this series.
    fn wants_swap(&self) -> bool {
        self.no_slots.load(SeqCst) && self.core.is_swapbacked()
    }

    /// Gives it slots, if it has none: whether that was so.
    fn alloc_swap(&self) -> bool {
        let wanted = self.wants_swap();
        if wanted {
            self.no_slots.store(false, SeqCst);
            self.core.mark_dirty();
        }
        wanted
    }

    fn test_and_clear(&self, flag: Flag) -> bool {
        let was = self.flags.fetch_and(!(1 << flag as u32), Relaxed) & (1 << flag as u32) != 0;
        step!("folio {:#x}: {flag:?} was {was}, and is not", self.core.pfn);
        was
    }

    /// Its writeback ends, which was waited for.
    fn written_out(&self) {
        self.test_and_clear(Flag::WaitedFor);
    }

    /// Locks it, unless somebody has: whether it did.
    pub fn trylock(&self) -> bool {
        self.core.trylock()
    }

    /// Unlocks it.
    ///
    /// # Panics
    ///
    /// If it is not locked.
    pub fn unlock(&self) {
        self.core.unlock();
    }

    /// What it is of; who has it locked knows. Of swap is only what is swap-backed, too (C:
    /// `folio_test_swapcache()`).
    pub fn mapping(&self) -> Option<Mapping> {
        let mapping = MAPPINGS[self.mapping.load(Relaxed) as usize];
        let mapping = mapping.filter(|&of| of != Mapping::Swap || self.core.is_swapbacked());
        step!("folio {:#x}: folio_mapping() = {mapping:?}", self.core.pfn);
        mapping
    }

    fn set_mapping(&self, mapping: Option<Mapping>) {
        let word = MAPPINGS.iter().position(|&of| of == mapping);
        self.mapping
            .store(word.expect("it is one of these") as u64, Relaxed);
    }

    /// A mapping more, or one less: an atomic operation without order.
    fn add_rmap(&self, nr: i32) {
        let now = self.mapcount.fetch_add(nr, Relaxed) + nr;
        step!("folio {:#x}: mapped by {now} PTEs", self.core.pfn);
        assert!(now >= 0, "a mapping was removed twice");
    }

    /// A write to its content, by whoever can.
    pub fn write(&self) {
        // Relaxed: only a flush, a lock or a reference may carry it to who writes it out.
        self.content.fetch_add(1, Relaxed);
        self.core.write();
    }

    /// Its content, as the writes that are in it.
    pub fn content(&self) -> usize {
        self.content.load(Relaxed)
    }

    /// Its content goes to swap.
    fn store(&self) {
        let content = self.content();
        step!(
            "folio {:#x}: {content} writes are written out",
            self.core.pfn
        );
        self.stored.store(content, SeqCst);
    }

    /// Whether it was freed.
    pub fn is_freed(&self) -> bool {
        self.freed.load(SeqCst) != 0
    }

    /// Whether what was written out is all that was written to it: at the end of a test.
    pub fn is_stored(&self) -> bool {
        self.stored.load(SeqCst) == self.core.written()
    }
}

/// The folios of a test, what maps them, and who uses them.
#[derive(Debug)]
pub struct Machine {
    /// Its CPUs.
    pub cpus: Cpus,
    /// The PTE of each folio.
    pub table: Table,
    folios: Vec<Folio>,
    ptl: Mutex<Batched>,
}

impl Machine {
    /// A machine of so many CPUs, with folios that are isolated; behind them are those that come of
    /// splits.
    pub fn new(nr_cpus: usize, specs: &[Spec]) -> Self {
        let (mut folios, mut tails, mut words) = (Vec::new(), Vec::new(), Vec::new());
        let mut pfn = 8;
        for spec in specs {
            let first = specs.len() + tails.len();
            let nr = if spec.write == Write::Split {
                spec.nr - 1
            } else {
                0
            };
            tails.extend((0..nr).map(|_| Spec {
                cgroup: spec.cgroup,
                ..Spec::page_of(spec.mapping)
            }));
            folios.push(Folio::new(pfn, spec, first..first + nr as usize));
            words.push(spec.pte.map_or(0, |bits| pte(pfn, bits)));
            pfn += spec.nr as usize;
        }
        for spec in &tails {
            folios.push(Folio::new(pfn, spec, 0..0));
            pfn += 1;
        }
        let (table, cpus) = (Table::new(&words), Cpus::new(nr_cpus, words.len()));
        for (index, _) in specs.iter().enumerate().filter(|(_, spec)| spec.translated) {
            (0..nr_cpus).for_each(|cpu| cpus.cpu(cpu).fill(&table, index));
        }
        Self {
            cpus,
            table,
            folios,
            ptl: Mutex::default(),
        }
    }

    /// A folio.
    pub fn folio(&self, index: usize) -> &Folio {
        &self.folios[index]
    }

    /// How many there are, with those that may come of splits.
    pub fn nr_folios(&self) -> usize {
        self.folios.len()
    }

    /// Whether a page of it is mapped.
    pub fn mapped(&self, index: usize) -> bool {
        let mapped = self.folio(index).mapcount.load(Relaxed) > 0;
        step!("folio_mapped() = {mapped}");
        mapped
    }

    /// A store by a CPU; false if it faults.
    pub fn write(&self, cpu: usize, index: usize) -> bool {
        let folio = self.folio(index);
        self.cpus
            .cpu(cpu)
            .write(&self.table, index, || folio.write())
    }

    fn lock_ptes(&self) -> MutexGuard<'_, Batched> {
        self.ptl.lock().expect("a thread of the model panicked")
    }

    /// Takes a folio off its LRU list, unless somebody has: whether it did, and has a reference.
    pub fn isolate(&self, index: usize) -> bool {
        let folio = self.folio(index);
        if !folio.core.try_get() {
            return false;
        }
        let isolated = folio.test_and_clear(Flag::Lru);
        if !isolated {
            self.put(index, 1);
        }
        isolated
    }

    /// Unmaps a folio that is locked, and owes the flush.
    pub fn try_to_unmap(&self, index: usize, deferred: &Deferred) {
        let flush = |batched: &mut Batched, was| {
            deferred.set_pending(index, was);
            batched.set_pending();
        };
        self.unmap(index, flush, |folio| {
            !folio.is_lazyfree() || self.discards(index)
        });
    }

    /// Unmaps a folio that is locked, and flushes at once.
    fn unmap_and_flush(&self, index: usize) {
        self.unmap(index, |_, _| self.cpus.flush_page(index), |_| true);
    }

    fn unmap(
        &self,
        index: usize,
        flush: impl FnOnce(&mut Batched, u64),
        goes: impl FnOnce(&Folio) -> bool,
    ) {
        let folio = self.folio(index);
        let mut ptl = self.lock_ptes();
        if self.table.ptep_get(index) & PRESENT == 0 || folio.test(Flag::Stuck) {
            return;
        }
        let was = self.table.get_and_clear(index);
        flush(&mut ptl, was);
        if was & DIRTY != 0 {
            folio.core.mark_dirty();
        }
        if !goes(folio) {
            self.table.set(index, was);
            return;
        }
        if folio.mapping() == Some(Mapping::Swap) {
            self.table.set(index, swp_pte(index, SWP_EXCLUSIVE));
        }
        folio.add_rmap(-1);
        drop(ptl);
        self.put(index, folio.nr() as i32);
    }

    /// Drops references, and frees the folio with the last.
    pub fn put(&self, index: usize, nr: i32) {
        if self.folio(index).core.put_refs(nr) {
            self.free(index);
        }
    }

    /// Frees a folio without references.
    ///
    /// # Panics
    ///
    /// If somebody has it locked, or may use it.
    fn free(&self, index: usize) {
        let folio = self.folio(index);
        assert_eq!(
            folio.core.ref_count(),
            0,
            "a folio with references is freed"
        );
        assert!(folio.trylock(), "a locked folio is freed");
        assert!(
            !self.cpus.translate(folio.core.pfn),
            "a folio is freed to which a CPU has a translation"
        );
        assert_eq!(
            folio.freed.fetch_add(1, SeqCst),
            0,
            "a folio is freed twice"
        );
    }
}
