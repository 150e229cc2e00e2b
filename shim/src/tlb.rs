// SPDX-License-Identifier: GPL-2.0

//! The TLBs of CPUs, whose translations outlive their PTEs, the flush that a task puts off, and what
//! the mm knows of it.
//!
//! | here                      | in 7.3                                                        |
//! |---------------------------|---------------------------------------------------------------|
//! | [`Cpu::write`]            | one store by a CPU: by its TLB, by a walk, or a fault         |
//! | [`Cpu::read`]             | one load                                                      |
//! | [`Cpus::flush`]           | `flush_tlb_mm()`, arch/x86/mm/tlb.c                           |
//! | [`Cpus::flush_page`]      | `flush_tlb_page()`, same file; `tlb_flush()` of one page      |
//! | [`Deferred`]              | `struct tlbflush_unmap_batch`, include/linux/mm_types_task.h  |
//! | [`Deferred::set_pending`] | `set_tlb_ubc_flush_pending()`, mm/rmap.c: what the task notes |
//! | [`Deferred::flush`]       | `try_to_unmap_flush()`, same file                             |
//! | [`Deferred::flush_dirty`] | `try_to_unmap_flush_dirty()`, same file                       |
//! | [`Batched::set_pending`]  | `set_tlb_ubc_flush_pending()`: what the mm notes              |
//! | [`Batched::flush`]        | `flush_tlb_batched_pending()`, same file                      |
//!
//! A CPU takes an interrupt between two instructions. Here its instruction and the handler of the
//! flush, which the flushing thread runs in its place, have a lock bit: a CPU sees in its next
//! instruction what was done before the flush, and who flushed sees what it wrote before. Nothing
//! else is ordered.
//!
//! A translation by which was written has the dirty bit; by one without, the CPU looks at the PTE
//! again before it writes.
//!
//! A task flushes for the pages that it has noted, as arm64 does; x86 flushes all that a CPU has, and
//! so those of others as well, on which nobody relies.
//!
//! Left out: `mm_cpumask`, address spaces, lazy TLBs, arm64's broadcast, the limit of
//! `mm->tlb_flush_batched`.

use crate::{
    pte::{
        pte_pfn,
        Table,
        DIRTY,
        PRESENT,
        WRITE, //
    },
    smp,
    sync::{
        atomic::AtomicU64,
        step,
        thread,
        Mutex, //
    }, //
};
use std::{
    cell::{
        Cell,
        RefCell, //
    },
    sync::atomic::{
        AtomicU64 as PlainU64,
        Ordering::SeqCst, //
    }, //
};

/// The lock bit.
const INTERRUPTS_OFF: u32 = 0;

/// One CPU, with room for a translation of each PTE of a table.
#[derive(Debug)]
pub struct Cpu {
    interrupts: AtomicU64,
    /// Who wants it to flush: one after the other, as `call_single_queue` has them.
    requests: Mutex<()>,
    /// No memory, so outside of loom's.
    translations: Vec<PlainU64>,
}

impl Cpu {
    fn new(ptes: usize) -> Self {
        Self {
            interrupts: AtomicU64::new(0),
            requests: Mutex::new(()),
            translations: (0..ptes).map(|_| PlainU64::new(0)).collect(),
        }
    }

    /// Gives it the translation that is in a PTE: before any thread is started.
    pub fn fill(&self, table: &Table, index: usize) {
        self.translations[index].store(table.ptep_get(index), SeqCst);
    }

    /// Does `store` by way of a PTE; false if that faults.
    pub fn write(&self, table: &Table, index: usize, store: impl FnOnce()) -> bool {
        self.instruction(|| {
            let known = self.translations[index].load(SeqCst);
            let stale = known & (PRESENT | WRITE | DIRTY) == PRESENT | WRITE | DIRTY;
            if !stale {
                let Some(pte) = table.hardware_write(index) else {
                    self.translations[index].store(0, SeqCst);
                    return false;
                };
                self.translations[index].store(pte.raw(), SeqCst);
            }
            step!("a CPU writes, by its TLB: {stale}");
            store();
            true
        })
    }

    /// Reads by way of a PTE; false if that faults.
    pub fn read(&self, table: &Table, index: usize) -> bool {
        self.instruction(|| {
            if self.translations[index].load(SeqCst) & PRESENT != 0 {
                return true;
            }
            let pte = table.hardware_read(index);
            self.translations[index].store(pte.map_or(0, |pte| pte.raw()), SeqCst);
            pte.is_some()
        })
    }

    /// Nothing comes in between.
    fn instruction<T>(&self, run: impl FnOnce() -> T) -> T {
        while smp::test_and_set_bit_lock(INTERRUPTS_OFF, &self.interrupts) {
            thread::yield_now();
        }
        let result = run();
        smp::clear_bit_unlock(INTERRUPTS_OFF, &self.interrupts);
        result
    }

    fn flush(&self, pages: impl Fn(usize) -> bool) {
        let _request = self
            .requests
            .lock()
            .expect("a thread of the model panicked");
        self.instruction(|| {
            for (index, translation) in self.translations.iter().enumerate() {
                if pages(index) {
                    translation.store(0, SeqCst);
                }
            }
        });
    }

    fn translates(&self, pfn: usize) -> bool {
        self.translations.iter().any(|translation| {
            let word = translation.load(SeqCst);
            word & PRESENT != 0 && pte_pfn(word) == pfn
        })
    }
}

/// All CPUs.
///
/// ```
/// use mm_shim::pte::{pte, Table, WRITE};
/// use mm_shim::tlb::Cpus;
///
/// let (table, cpus) = (Table::new(&[pte(8, WRITE)]), Cpus::new(1, 1));
/// let write = || cpus.cpu(0).write(&table, 0, || ());
/// assert!(write());
/// table.get_and_clear(0);
/// assert!(write(), "by the translation that is left");
/// cpus.flush();
/// assert!(!write(), "it faults");
/// ```
#[derive(Debug)]
pub struct Cpus(Vec<Cpu>);

impl Cpus {
    /// So many, each with nothing in its TLB.
    pub fn new(nr: usize, ptes: usize) -> Self {
        Self((0..nr).map(|_| Cpu::new(ptes)).collect())
    }

    /// One of them.
    pub fn cpu(&self, nr: usize) -> &Cpu {
        &self.0[nr]
    }

    /// No translation is left anywhere when it returns.
    pub fn flush(&self) {
        step!("the TLBs are flushed");
        self.0.iter().for_each(|cpu| cpu.flush(|_| true));
    }

    /// No translation of a PTE is left anywhere.
    pub fn flush_page(&self, index: usize) {
        step!("the TLBs are flushed of PTE {index}");
        self.0
            .iter()
            .for_each(|cpu| cpu.flush(|page| page == index));
    }

    /// Whether a CPU has a translation to a page, of which this thread knows that nobody gets a new
    /// one.
    pub fn translate(&self, pfn: usize) -> bool {
        self.0.iter().any(|cpu| cpu.translates(pfn))
    }
}

/// The flush that one task owes.
#[derive(Debug, Default)]
pub struct Deferred {
    /// The PTEs that were cleared.
    pages: RefCell<Vec<usize>>,
    /// Those of them that were dirty.
    dirty: RefCell<Vec<usize>>,
    flushes: Cell<usize>,
}

impl Deferred {
    /// Owes one for a PTE that was cleared: it may be written by one that was dirty.
    pub fn set_pending(&self, index: usize, pte: u64) {
        self.pages.borrow_mut().push(index);
        if pte & DIRTY != 0 {
            self.dirty.borrow_mut().push(index);
        }
    }

    /// Whether a CPU may write by a translation that is left.
    pub fn writable(&self) -> bool {
        !self.dirty.borrow().is_empty()
    }

    /// The same of one PTE.
    pub fn writable_to(&self, index: usize) -> bool {
        self.dirty.borrow().contains(&index)
    }

    /// Whether a CPU may have a translation that is left.
    pub fn pending(&self) -> bool {
        !self.pages.borrow().is_empty()
    }

    /// Flushes, if one is owed.
    pub fn flush(&self, cpus: &Cpus) {
        let pages = self.pages.take();
        if pages.is_empty() {
            return;
        }
        step!("the TLBs are flushed of PTEs {pages:?}");
        for cpu in &cpus.0 {
            cpu.flush(|page| pages.contains(&page));
        }
        self.dirty.take();
        self.flushes.set(self.flushes.get() + 1);
    }

    /// Flushes, if a CPU may write.
    pub fn flush_dirty(&self, cpus: &Cpus) {
        if self.writable() {
            self.flush(cpus);
        }
    }

    /// The flushes that were really made.
    pub fn flushes(&self) -> usize {
        self.flushes.get()
    }
}

/// `mm->tlb_flush_batched`: how often a flush for this mm was put off, by whomever, and how often of
/// these somebody who has to do with its PTEs has flushed. (That the one who put it off has flushed
/// is not noted.) It is read and written under the lock of a page table.
#[derive(Debug, Default)]
pub struct Batched {
    pending: u32,
    flushed: u32,
}

impl Batched {
    /// A flush is put off.
    pub fn set_pending(&mut self) {
        self.pending += 1;
    }

    /// Flushes, if one was put off since the last time.
    pub fn flush(&mut self, cpus: &Cpus) {
        step!("flushes put off: {}, seen: {}", self.pending, self.flushed);
        if self.pending != self.flushed {
            cpus.flush();
            self.flushed = self.pending;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        pte::pte,
        sync::explore, //
    };

    #[test]
    fn a_translation_outlives_its_pte_until_the_flush() {
        explore(|| {
            let (table, cpus) = (Table::new(&[pte(8, WRITE)]), Cpus::new(2, 1));
            let write = |cpu: usize| cpus.cpu(cpu).write(&table, 0, || ());
            assert!(write(1));
            assert_ne!(table.get_and_clear(0) & DIRTY, 0);
            assert!(write(1) && cpus.cpu(1).read(&table, 0));
            assert!(!write(0) && !cpus.cpu(0).read(&table, 0));
            assert!(cpus.translate(8) && !cpus.translate(9));
            cpus.flush();
            assert!(!write(1) && !cpus.cpu(1).read(&table, 0));
            assert!(!cpus.translate(8));
        });
    }

    #[test]
    fn a_clean_translation_is_not_written_by() {
        explore(|| {
            let (table, cpus) = (Table::new(&[pte(8, WRITE), pte(9, 0)]), Cpus::new(1, 2));
            let cpu = cpus.cpu(0);
            assert!(cpu.read(&table, 0) && cpu.read(&table, 1));
            assert!(!cpu.write(&table, 1, || panic!("it is read-only")));
            assert_eq!(table.get_and_clear(0) & DIRTY, 0);
            assert!(!cpu.write(&table, 0, || panic!("the PTE is gone")));
        });
    }

    /// Each that a CPU has keeps its frame, whatever it lets one do; a fault ends it.
    #[test]
    fn a_translation_by_which_nothing_is_written_is_one() {
        explore(|| {
            let (table, cpus) = (Table::new(&[pte(8, WRITE), pte(9, 0)]), Cpus::new(1, 2));
            let cpu = cpus.cpu(0);
            assert!(cpu.read(&table, 0) && cpu.read(&table, 1));
            assert!(cpus.translate(8) && cpus.translate(9));
            table.get_and_clear(0);
            table.get_and_clear(1);
            assert!(!cpu.write(&table, 0, || panic!("the PTE is gone")));
            assert!(!cpus.translate(8) && cpus.translate(9));
        });
    }

    #[test]
    fn a_flush_is_owed_until_it_is_done() {
        explore(|| {
            let (table, cpus) = (Table::new(&[pte(8, WRITE | DIRTY)]), Cpus::new(1, 1));
            let deferred = Deferred::default();
            deferred.flush(&cpus);
            assert_eq!(deferred.flushes(), 0);
            cpus.cpu(0).fill(&table, 0);
            deferred.set_pending(0, pte(8, WRITE));
            assert!(!deferred.writable());
            deferred.flush_dirty(&cpus);
            assert!(cpus.translate(8));
            deferred.flush(&cpus);
            assert!(!cpus.translate(8));
            deferred.set_pending(0, pte(8, DIRTY));
            deferred.set_pending(0, pte(9, 0));
            assert!(deferred.writable());
            deferred.flush_dirty(&cpus);
            deferred.flush(&cpus);
            assert!(!deferred.writable() && !deferred.pending());
            assert_eq!(deferred.flushes(), 2);
        });
    }

    /// What nobody has noted stays.
    #[test]
    fn a_flush_is_of_what_was_noted() {
        explore(|| {
            let words = [8, 9, 10].map(|pfn| pte(pfn, WRITE));
            let (table, cpus) = (Table::new(&words), Cpus::new(2, 3));
            let left = || [8, 9, 10].map(|pfn| cpus.translate(pfn));
            let fill = || (0..3).for_each(|index| cpus.cpu(1).fill(&table, index));
            fill();
            cpus.flush_page(1);
            assert_eq!(left(), [true, false, true]);
            fill();
            let deferred = Deferred::default();
            deferred.set_pending(0, words[0]);
            deferred.set_pending(2, words[2]);
            deferred.flush(&cpus);
            assert_eq!(left(), [false, true, false]);
        });
    }

    /// Once for all that was put off before; whoever put it off may have flushed himself.
    #[test]
    fn what_an_mm_is_owed_is_flushed_for_once() {
        explore(|| {
            let (table, cpus) = (Table::new(&[pte(8, WRITE)]), Cpus::new(1, 1));
            let mut batched = Batched::default();
            let flushes = |batched: &mut Batched| {
                cpus.cpu(0).fill(&table, 0);
                batched.flush(&cpus);
                !cpus.translate(8)
            };
            assert!(!flushes(&mut batched));
            batched.set_pending();
            batched.set_pending();
            assert!(flushes(&mut batched) && !flushes(&mut batched));
        });
    }
}
