// SPDX-License-Identifier: GPL-2.0

//! Runs of PTEs that map consecutive pages of one folio.
//!
//! C: `folio_pte_batch_flags()`, mm/internal.h, 7.2. A run is within one VMA, one page table and
//! one folio. Its PTEs differ in the page frame, which goes up by one from each to the next, and in
//! bits that do not count: young always, dirty, soft-dirty and write unless they are respected.
//!
//! What cannot be written: a read beyond the [`PteSpan`], a run of no PTE, and the length of a run
//! as a counter's delta in anything but signed 64 bits.

#![forbid(unsafe_code)]

use core::num::NonZero;

/// A page table entry, as the word that it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Pte(u64);

impl Pte {
    /// The entry with the bits `raw`.
    #[inline]
    pub const fn new(raw: u64) -> Self {
        Self(raw)
    }

    /// Its bits.
    #[inline]
    pub const fn raw(self) -> u64 {
        self.0
    }
}

/// Bits in which the PTEs of a run must not differ, beyond those that always count.
///
/// C: `FPB_RESPECT_*`, mm/internal.h, 7.2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Respect {
    /// `FPB_RESPECT_WRITE`: the write bit.
    pub write: bool,
    /// `FPB_RESPECT_SOFT_DIRTY`: the soft-dirty bit.
    pub soft_dirty: bool,
    /// `FPB_RESPECT_DIRTY`: the dirty bit.
    pub dirty: bool,
}

impl Respect {
    /// Nothing beyond what always counts.
    pub const NOTHING: Self = Self {
        write: false,
        soft_dirty: false,
        dirty: false,
    };

    /// What a restored run must have in common: restoring stamps all its PTEs from the first.
    pub const TO_RESTORE: Self = Self {
        write: true,
        soft_dirty: true,
        dirty: false,
    };
}

/// The length of a run in pages, which is also in PTEs: from 1 to the PTEs of a page table.
///
/// Only a [`PteSpan`] makes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub struct RunLength(NonZero<u32>);

impl RunLength {
    /// In pages.
    #[inline]
    pub const fn get(self) -> u32 {
        self.0.get()
    }

    /// What a counter changes by when the run goes, in pages: negative.
    ///
    /// Signed 64 bits, as a counter of mm is: a negation in 32 bits would add 4 Gi pages instead.
    #[inline]
    pub const fn removed(self) -> i64 {
        -(self.0.get() as i64)
    }
}

/// The place of a PTE in a [`PteSpan`], counted from its first one.
///
/// Only the span makes one, so it is within.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct PteIndex(u32);

impl PteIndex {
    /// In PTEs from the span's first.
    #[inline]
    pub const fn get(self) -> u32 {
        self.0
    }
}

/// How many PTEs there are from a given one on, itself included, until something ends.
#[derive(Clone, Copy, Debug)]
pub struct Reach {
    /// The VMA, in PTEs.
    pub vma: usize,
    /// The page table, in PTEs: at most 512 with 4 KiB pages.
    pub table: usize,
    /// The folio, in pages from the one that the PTE maps.
    pub folio: usize,
}

/// A page table, seen from one present PTE on, that maps a page of a large folio.
///
/// Context of all methods: page table lock held; none sleeps.
pub trait PteTable {
    /// How far one may go from the PTE on. Each is at least 1.
    ///
    /// C: `pmd_addr_end(addr, vma->vm_end)` in `folio_unmap_pte_batch()`, mm/rmap.c, and the
    /// folio's end in `folio_pte_batch_flags()`, mm/internal.h, 7.2.
    fn reach(&self) -> Reach;

    /// Reads a PTE once.
    ///
    /// C: `ptep_get()`, include/linux/pgtable.h, 7.2.
    fn ptep_get(&self, at: PteIndex) -> Pte;

    /// How many PTEs from `at` on are known to go on as `pte` there does, itself included, without
    /// a look at them. May be more than the span has.
    ///
    /// C: `pte_batch_hint()`, include/linux/pgtable.h, 7.2; more than 1 with arm64's contiguous
    /// PTEs.
    fn pte_batch_hint(&self, at: PteIndex, pte: Pte) -> NonZero<u32>;

    /// The bits that do not count.
    ///
    /// C: what `__pte_batch_clear_ignored()`, mm/internal.h, 7.2, makes the same in all PTEs.
    fn ignored(&self, respect: Respect) -> u64;

    /// The PTE without its write bit, which may move its dirty bit (x86: to the saved one; arm64:
    /// to the software's).
    ///
    /// C: `pte_wrprotect()`.
    fn wrprotect(&self, pte: Pte) -> Pte;

    /// What to add to the word for the next page frame, modulo 2^64: the same for all of a run.
    ///
    /// C: `pte_advance_pfn(pte, 1)`, include/linux/pgtable.h, 7.2; negative where x86 inverts the
    /// frame of a PROT_NONE entry.
    fn pfn_step(&self, pte: Pte) -> u64;
}

/// The PTEs that a run may have: from one on, within its VMA, its page table and its folio.
///
/// # Invariants
///
/// The table has `max` PTEs from its first on.
#[derive(Debug)]
pub struct PteSpan<'t, T: PteTable> {
    table: &'t T,
    max: u32,
}

impl<'t, T: PteTable> PteSpan<'t, T> {
    /// What can be reached from the table's first PTE on.
    #[inline]
    pub fn new(table: &'t T) -> Self {
        let reach = table.reach();
        let max = reach.vma.min(reach.table).min(reach.folio);
        // INVARIANT: the nearest end; each is at least 1, and a page table has far fewer than 2^32.
        Self {
            table,
            max: max.min(u32::MAX as usize) as u32,
        }
    }

    #[inline]
    fn at(&self, index: u64) -> Option<PteIndex> {
        (index < u64::from(self.max)).then_some(PteIndex(index as u32))
    }

    /// A run of the first `nr` PTEs, or of all that there are.
    #[inline]
    fn run_of(&self, nr: u64) -> RunLength {
        let nr = nr.min(u64::from(self.max)) as u32;
        RunLength(NonZero::new(nr).unwrap_or(NonZero::<u32>::MIN))
    }

    /// A run of the first PTE alone.
    #[inline]
    pub fn run_of_one(&self) -> RunLength {
        RunLength(NonZero::<u32>::MIN)
    }
}

/// The length of the run that begins with the span's first PTE, which is `first`.
///
/// `each` is called for every further PTE that is read and belongs to the run, so that a caller can
/// merge what it needs: the bits that do not count may differ. (What a hint skips was gathered by
/// the read in front of it.)
///
/// Context: page table lock held. Does not sleep; at most one page table is read.
///
/// C: `folio_pte_batch_flags()`, mm/internal.h, 7.2, whose `FPB_MERGE_*` is `each`.
#[inline]
pub fn folio_pte_batch<T: PteTable>(
    span: &PteSpan<'_, T>,
    first: Pte,
    respect: Respect,
    mut each: impl FnMut(Pte),
) -> RunLength {
    let table = span.table;
    let counting = !table.ignored(respect);
    // Only then is taking away the write bit more than a mask.
    let moves_dirty = respect.dirty && !respect.write;
    let comparable = |pte: Pte| {
        let pte = if moves_dirty {
            table.wrprotect(pte)
        } else {
            pte
        };
        pte.0 & counting
    };
    let step = table.pfn_step(first);
    let after = |expected: u64, nr: u64| expected.wrapping_add(step.wrapping_mul(nr));

    // A hint has 32 bits: their sum does not wrap before the span ends.
    let mut nr = u64::from(table.pte_batch_hint(PteIndex(0), first).get());
    let mut expected = after(comparable(first), nr);
    while let Some(at) = span.at(nr) {
        let pte = table.ptep_get(at);
        if comparable(pte) != expected {
            break;
        }
        each(pte);
        let more = u64::from(table.pte_batch_hint(at, pte).get());
        expected = after(expected, more);
        nr = nr.wrapping_add(more);
    }
    span.run_of(nr)
}

// One source for KUnit in the kernel and the test runner in user space.
#[cfg_attr(
    CONFIG_MM_BATCH_KUNIT_TEST,
    kernel::prelude::kunit_tests(mm_batch_pte_batch)
)]
#[cfg_attr(not(CONFIG_MM_BATCH_KUNIT_TEST), cfg(test))]
mod tests {
    use super::*;

    const YOUNG: u64 = 1;
    const DIRTY: u64 = 2;
    const SOFT_DIRTY: u64 = 4;
    const WRITE: u64 = 8;
    const OTHER: u64 = 16;
    const STEP: u64 = 4096;

    /// Eight PTEs of page frames 0 to 7, with these bits; where things end.
    struct Words {
        bits: [u64; 8],
        reach: Reach,
        hint: u32,
    }

    impl Words {
        fn new(bits: [u64; 8]) -> Self {
            let reach = Reach {
                vma: 8,
                table: 8,
                folio: 8,
            };
            Self {
                bits,
                reach,
                hint: 1,
            }
        }

        fn run(&self, respect: Respect) -> u32 {
            let span = PteSpan::new(self);
            folio_pte_batch(&span, self.ptep_get(PteIndex(0)), respect, |_| ()).get()
        }
    }

    impl PteTable for Words {
        fn reach(&self) -> Reach {
            self.reach
        }

        fn ptep_get(&self, at: PteIndex) -> Pte {
            let bits = self.bits.get(at.0 as usize).copied();
            Pte(bits.map_or(u64::MAX, |bits| bits + STEP * u64::from(at.0)))
        }

        fn pte_batch_hint(&self, _at: PteIndex, _pte: Pte) -> NonZero<u32> {
            NonZero::new(self.hint).unwrap_or(NonZero::<u32>::MIN)
        }

        fn ignored(&self, respect: Respect) -> u64 {
            let unless = |respected, bit| if respected { 0 } else { bit };
            YOUNG
                | unless(respect.dirty, DIRTY)
                | unless(respect.soft_dirty, SOFT_DIRTY)
                | unless(respect.write, WRITE)
        }

        fn wrprotect(&self, pte: Pte) -> Pte {
            Pte(pte.0 & !WRITE)
        }

        fn pfn_step(&self, _pte: Pte) -> u64 {
            STEP
        }
    }

    #[test]
    fn young_never_ends_a_run() {
        let words = Words::new([0, YOUNG, 0, YOUNG, 0, 0, YOUNG, 0]);
        assert_eq!(words.run(Respect::NOTHING), 8);
        assert_eq!(words.run(Respect::TO_RESTORE), 8);
    }

    #[test]
    fn dirty_ends_a_run_if_respected() {
        let words = Words::new([0, 0, 0, DIRTY, 0, 0, 0, 0]);
        assert_eq!(words.run(Respect::TO_RESTORE), 8);
        let dirty = Respect {
            dirty: true,
            ..Respect::NOTHING
        };
        assert_eq!(words.run(dirty), 3);
    }

    #[test]
    fn what_is_to_be_restored_has_write_and_soft_dirty_in_common() {
        let write = Words::new([WRITE, WRITE, 0, WRITE, 0, 0, 0, 0]);
        assert_eq!(write.run(Respect::TO_RESTORE), 2);
        assert_eq!(write.run(Respect::NOTHING), 8);
        let soft = Words::new([0, 0, 0, 0, 0, SOFT_DIRTY, 0, 0]);
        assert_eq!(soft.run(Respect::TO_RESTORE), 5);
        assert_eq!(soft.run(Respect::NOTHING), 8);
    }

    #[test]
    fn any_other_bit_ends_a_run() {
        let words = Words::new([0, 0, 0, 0, OTHER, OTHER, 0, 0]);
        assert_eq!(words.run(Respect::NOTHING), 4);
    }

    #[test]
    fn a_run_ends_at_the_nearest_end() {
        let mut words = Words::new([0; 8]);
        words.reach.folio = 7;
        assert_eq!(words.run(Respect::NOTHING), 7);
        words.reach.table = 6;
        assert_eq!(words.run(Respect::NOTHING), 6);
        words.reach.vma = 5;
        assert_eq!(words.run(Respect::NOTHING), 5);
    }

    #[test]
    fn a_hint_that_overshoots_is_cut() {
        let mut words = Words::new([0; 8]);
        words.hint = 3;
        assert_eq!(words.run(Respect::NOTHING), 8);
        words.hint = u32::MAX;
        assert_eq!(words.run(Respect::NOTHING), 8);
    }

    #[test]
    fn a_length_is_removed_in_64_bits() {
        let words = Words::new([0; 8]);
        let nr = folio_pte_batch(&PteSpan::new(&words), Pte(0), Respect::NOTHING, |_| ());
        assert_eq!(nr.removed(), -8);
    }
}
