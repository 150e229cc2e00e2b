// SPDX-License-Identifier: GPL-2.0

//! PTEs: words that software changes under the page table lock, and hardware at any time.
//!
//! | here                         | in 7.3                                                       |
//! |------------------------------|--------------------------------------------------------------|
//! | [`Table::ptep_get`]          | `ptep_get()`, include/linux/pgtable.h: one `READ_ONCE()`      |
//! | [`Table::ptep_get_of_group`] | `contpte_ptep_get()`, arch/arm64/mm/contpte.c                 |
//! | [`Table::get_and_clear`]     | `ptep_get_and_clear()`; relaxed, as on arm64                  |
//! | [`Table::unfold`]            | `__contpte_try_unfold()`, arch/arm64/mm/contpte.c, for one    |
//! | [`Table::set`]               | `set_pte()`: one `WRITE_ONCE()`                               |
//! | [`Table::hardware_read`]     | a read by the CPU's MMU, which sets the young bit             |
//! | [`Table::hardware_write`]    | a write by it, which sets young and dirty, or faults          |
//!
//! The layout is nobody's: each bit that the algorithm tells apart has a place, and `SPECIAL` stands
//! for all that always count. Hardware does not make a PTE soft-dirty; merging a dirty bit does, as
//! x86's `pte_mkdirty()` (see [`crate::unmap`]).
//!
//! Left out: TLBs (a translation is looked up for each access; what a stale one can do is in the
//! PTE's young and dirty bits), page table levels, young and dirty bits that hardware sets in
//! another PTE of a group.

use crate::{
    smp,
    sync::{
        atomic::{
            AtomicU64,
            Ordering::Relaxed, //
        },
        step, //
    }, //
};
use mm_batch::pte::Pte;

/// The entry maps a page.
pub const PRESENT: u64 = 1 << 0;
/// It may be written to.
pub const WRITE: u64 = 1 << 1;
/// It was used.
pub const YOUNG: u64 = 1 << 5;
/// It was written to.
pub const DIRTY: u64 = 1 << 6;
/// A bit that always counts.
pub const SPECIAL: u64 = 1 << 9;
/// Write-protected by userfaultfd, or with `PROT_NONE` protected from any access (RWP).
pub const UFFD_WP: u64 = 1 << 10;
/// Written to since the soft-dirty bits were last cleared.
pub const SOFT_DIRTY: u64 = 1 << 11;
/// One of an aligned group of PTEs that are all alike, as arm64's `PTE_CONT`.
pub const CONT: u64 = 1 << 52;
/// Not present, and not none: a marker that userfaultfd wants writes to know of.
pub const UFFD_WP_MARKER: u64 = 1 << 62;
/// It may not be used, as mprotect(PROT_NONE) or userfaultfd RWP leave it; software sees it present.
pub const PROT_NONE: u64 = 1 << 8;
/// Not present: the page's content is, or will be, in a swap slot.
pub const SWAP: u64 = 1 << 61;
/// Of a swap entry: the page was one mm's alone.
pub const SWP_EXCLUSIVE: u64 = 1 << 1;
/// Of a swap entry: the PTE was soft-dirty.
pub const SWP_SOFT_DIRTY: u64 = 1 << 2;
/// Of a swap entry: the PTE had the uffd bit.
pub const SWP_UFFD: u64 = 1 << 3;
/// Where the page frame number, or the swap slot, begins.
pub const PFN_SHIFT: u32 = 12;

/// A present PTE for a page frame, with more bits.
pub fn pte(pfn: usize, bits: u64) -> u64 {
    ((pfn as u64) << PFN_SHIFT) | PRESENT | bits
}

/// A swap entry for a slot, with more bits.
pub fn swp_pte(slot: usize, bits: u64) -> u64 {
    ((slot as u64) << PFN_SHIFT) | SWAP | bits
}

/// The page frame that a present PTE maps, or the slot of a swap entry.
pub fn pte_pfn(pte: u64) -> usize {
    (pte >> PFN_SHIFT) as usize & 0xfff_ffff
}

/// Some page tables in a row, as words.
#[derive(Debug)]
pub struct Table(Vec<AtomicU64>);

impl Table {
    /// The words given.
    pub fn new(words: &[u64]) -> Self {
        Self(words.iter().map(|&word| AtomicU64::new(word)).collect())
    }

    /// The number of PTEs.
    pub fn nr(&self) -> usize {
        self.0.len()
    }

    /// Reads a PTE.
    pub fn ptep_get(&self, index: usize) -> u64 {
        let word = self.0[index].load(Relaxed);
        step!("PTE {index} is {word:#x}");
        word
    }

    /// All of them: at the end of a test.
    pub fn words(&self) -> Vec<u64> {
        (0..self.nr()).map(|index| self.ptep_get(index)).collect()
    }

    /// Reads a PTE; one of a group of `group` is as young and as dirty as any of them.
    pub fn ptep_get_of_group(&self, index: usize, group: usize) -> u64 {
        let word = self.ptep_get(index);
        if word & CONT == 0 {
            return word;
        }
        let start = index / group * group;
        (start..start + group).fold(word, |all, i| all | self.ptep_get(i) & (YOUNG | DIRTY))
    }

    /// Clears a PTE and returns what it was, hardware's last word included.
    pub fn get_and_clear(&self, index: usize) -> u64 {
        let was = self.0[index].swap(0, Relaxed);
        step!("PTE {index} cleared, was {was:#x}");
        // Unmapping has an smp_mb() behind the last of them.
        smp::place_to_switch(&self.0[index]);
        was
    }

    /// Takes a PTE out of its group.
    pub fn unfold(&self, index: usize) {
        self.0[index].fetch_and(!CONT, Relaxed);
    }

    /// Sets a PTE that hardware does not change: one that is not present; and returns what it was.
    ///
    /// In one access: behind a look at it first, loom tries fewer interleavings of the store.
    ///
    /// # Panics
    ///
    /// If it is present.
    pub fn set(&self, index: usize, word: u64) -> u64 {
        let was = self.0[index].swap(word, Relaxed);
        step!("PTE {index} set to {word:#x}, was {was:#x}");
        assert_eq!(was & PRESENT, 0, "a present PTE is overwritten");
        was
    }

    /// The MMU, on a read: the word that it went by, or a fault.
    pub fn hardware_read(&self, index: usize) -> Option<Pte> {
        self.hardware(index, 0, YOUNG)
    }

    /// The MMU, on a write: the word that it went by, or a fault.
    pub fn hardware_write(&self, index: usize) -> Option<Pte> {
        self.hardware(index, WRITE, YOUNG | DIRTY)
    }

    fn hardware(&self, index: usize, needs: u64, sets: u64) -> Option<Pte> {
        let (usable, needs) = (PRESENT | PROT_NONE | needs, PRESENT | needs);
        let mut old = self.0[index].load(Relaxed);
        while old & usable == needs {
            match self.0[index].compare_exchange(old, old | sets, Relaxed, Relaxed) {
                Ok(_) => {
                    step!("the MMU makes PTE {index} {:#x}", old | sets);
                    return Some(Pte::new(old | sets));
                }
                Err(now) => old = now,
            }
        }
        step!("the MMU faults on PTE {index}, {old:#x}");
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::explore;

    #[test]
    fn hardware_notes_what_it_does_and_faults_on_what_it_may_not() {
        explore(|| {
            let table = Table::new(&[pte(7, WRITE), pte(8, 0), 0, pte(9, WRITE | PROT_NONE)]);
            assert!(table.hardware_read(1).is_some());
            assert!(table.hardware_write(1).is_none());
            assert!(table.hardware_read(2).is_none());
            assert!(table.hardware_read(3).is_none());
            assert!(table.hardware_write(3).is_none());
            assert!(table.hardware_write(0).is_some());
            assert_eq!(table.get_and_clear(0), pte(7, WRITE | YOUNG | DIRTY));
            assert_eq!(table.get_and_clear(1), pte(8, YOUNG));
            assert!(table.hardware_read(0).is_none());
        });
    }

    #[test]
    #[should_panic(expected = "a present PTE is overwritten")]
    fn a_present_pte_that_is_overwritten_is_noticed() {
        explore(|| {
            Table::new(&[pte(7, 0)]).set(0, pte(8, 0));
        });
    }
}
