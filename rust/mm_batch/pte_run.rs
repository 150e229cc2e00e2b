// SPDX-License-Identifier: GPL-2.0

//! Runs of PTEs that map consecutive pages of one folio: how long one is, and how it is cut.
//!
//! C: `folio_pte_batch_flags()`, mm/internal.h, 7.3. A run is within one VMA, one page table and
//! one folio. Its PTEs differ in the page frame, which goes up by one from each to the next, and in
//! bits that do not count: young and dirty, and soft-dirty and write unless they are respected.
//!
//! Only a [`PteSpan`] makes a [`PteIndex`] or a [`RunLength`], so that no PTE beyond the span is
//! read and no run is empty. An index refers to its own table. A length does not say of which span
//! it is, so methods that change PTEs by a length are unsafe.

use crate::pte::{
    Pte,
    PteArch,
    PteFormat,
    Respect, //
};
use core::{
    marker::PhantomData,
    num::NonZero, //
};

/// The length of a run in pages, which is also in PTEs.
///
/// # Invariants
///
/// From 1 to the PTEs of the [`PteSpan`] that made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub struct RunLength(NonZero<u32>);

impl RunLength {
    /// In pages.
    #[inline]
    pub const fn get(self) -> u32 {
        self.0.get()
    }

    /// Cuts off the first `nr` pages, or all if there are not so many: their number, and that of
    /// the rest if there is any.
    #[inline]
    pub fn split_off_front(self, nr: NonZero<u32>) -> (Self, Option<Self>) {
        let rest = NonZero::new(self.get().saturating_sub(nr.get()));
        // INVARIANT: Neither is longer than `self`.
        (Self(self.0.min(nr)), rest.map(Self))
    }
}

/// Consecutive PTEs of a run: all of it, or what was cut off.
///
/// # Invariants
///
/// `at + nr` is at most the length of the run, and `first` is the word of its PTE `at`, but for
/// bits that do not count in the run.
#[derive(Debug)]
pub struct PtePart<A: PteArch> {
    first: Pte,
    at: u32,
    nr: RunLength,
    arch: PhantomData<A>,
}

impl<A: PteArch> PtePart<A> {
    /// All `nr` PTEs of a run, of which the first is `first`.
    ///
    /// # Safety
    ///
    /// There is such a run, of PTEs of the architecture `A`.
    #[inline]
    pub(crate) const unsafe fn whole(first: Pte, nr: RunLength) -> Self {
        // INVARIANT: By the function's requirement, `first` is the word of the run's PTE 0.
        Self::new(first, 0, nr)
    }

    #[inline]
    const fn new(first: Pte, at: u32, nr: RunLength) -> Self {
        Self {
            first,
            at,
            nr,
            arch: PhantomData,
        }
    }

    /// The word of the part's first PTE.
    #[inline]
    pub const fn first(&self) -> Pte {
        self.first
    }

    /// Where the part begins, in PTEs from the run's first.
    #[inline]
    pub const fn at(&self) -> u32 {
        self.at
    }

    /// Its length.
    #[inline]
    pub const fn nr(&self) -> RunLength {
        self.nr
    }

    /// The same PTEs, to be cut. For transactions, which do not use both.
    #[inline]
    pub(crate) const fn all(&self) -> Self {
        // INVARIANT: That of `self`.
        Self::new(self.first, self.at, self.nr)
    }

    /// Cuts off the first `nr` PTEs, or all if there are not so many: those, and the rest if there
    /// is any, which begins with the word of its own first page.
    #[inline]
    pub fn split_off_front(self, nr: NonZero<u32>) -> (Self, Option<Self>) {
        let Self { first, at, .. } = self;
        let (front, rest) = self.nr.split_off_front(nr);
        let rest = rest.map(|rest| {
            // The step is the same in all of a run.
            let PteFormat { step, .. } = A::format(first, Respect::NOTHING);
            let first = first.advanced(step, u64::from(front.get()));
            // INVARIANT: The rest begins where the front ends, and ends where `self` does.
            Self::new(first, at.wrapping_add(front.get()), rest)
        });
        // INVARIANT: The front begins where `self` does, and is not longer.
        (Self::new(first, at, front), rest)
    }
}

/// How many PTEs there are from a given one on, itself included, until something ends.
#[derive(Clone, Copy, Debug)]
pub struct Reach {
    /// The VMA, in PTEs: of which there may be more than 2^32.
    pub vma: NonZero<usize>,
    /// The page table, in PTEs: at most 512 with 4 KiB pages.
    pub table: NonZero<usize>,
    /// The folio, in pages from the one that the PTE maps.
    pub folio: NonZero<usize>,
}

/// A page table, seen from one present PTE on, that maps a page of a large folio.
///
/// Context of all methods: page table lock held; none sleeps.
///
/// # Safety
///
/// As many PTEs as [`reach`](Self::reach) says can be read from the first on, which
/// [`first`](Self::first) is. [`ptep_get`](Self::ptep_get) and
/// [`pte_batch_hint`](Self::pte_batch_hint) say what the others are.
pub unsafe trait PteTable: Sized {
    /// What its PTEs are like.
    type Arch: PteArch;

    /// How far one may go from the PTE on.
    ///
    /// C: `pmd_addr_end(addr, vma->vm_end)` in `folio_unmap_pte_batch()`, mm/rmap.c, and the
    /// folio's end in `folio_pte_batch_flags()`, mm/internal.h, 7.3.
    fn reach(&self) -> Reach;

    /// The first PTE, which was read under the lock.
    fn first(&self) -> Pte;

    /// Reads a PTE once.
    ///
    /// C: `ptep_get()`, include/linux/pgtable.h, 7.3.
    fn ptep_get(at: &PteIndex<'_, Self>) -> Pte;

    /// The number of PTEs from `at` on, itself included, that are known to continue the run of
    /// `pte` without being read. May be more than the span has.
    ///
    /// C: `pte_batch_hint()`, include/linux/pgtable.h, 7.3; more than 1 with arm64's contiguous
    /// PTEs.
    fn pte_batch_hint(at: &PteIndex<'_, Self>, pte: Pte) -> NonZero<u32>;
}

/// The place of a PTE in a [`PteSpan`], and the table that it is a place in.
///
/// # Invariants
///
/// `index` is less than the PTEs that a span of `table` has.
#[derive(Debug)]
pub struct PteIndex<'t, T: PteTable> {
    table: &'t T,
    index: u32,
}

impl<'t, T: PteTable> PteIndex<'t, T> {
    /// The table.
    #[inline]
    pub const fn table(&self) -> &'t T {
        self.table
    }

    /// In PTEs from the span's first.
    #[inline]
    pub const fn get(&self) -> u32 {
        self.index
    }
}

/// The PTEs that a run may have: from one on, within its VMA, its page table and its folio.
///
/// # Invariants
///
/// The table has `max` PTEs from its first on.
#[derive(Debug)]
pub struct PteSpan<'t, T: PteTable> {
    table: &'t T,
    max: NonZero<u32>,
}

impl<'t, T: PteTable> PteSpan<'t, T> {
    /// What can be reached from the table's first PTE on.
    #[inline]
    pub fn new(table: &'t T) -> Self {
        let reach = table.reach();
        let max = reach.vma.min(reach.table).min(reach.folio).get();
        let max = NonZero::new(max.min(u32::MAX as usize) as u32).unwrap_or(NonZero::<u32>::MIN);
        // INVARIANT: `max` is the nearest end.
        Self { table, max }
    }

    #[inline]
    fn at(&self, index: u64) -> Option<PteIndex<'t, T>> {
        // INVARIANT: Checked here.
        (index < u64::from(self.max.get())).then_some(PteIndex {
            table: self.table,
            index: index as u32,
        })
    }

    /// A run of the first `nr` PTEs, or of all that there are.
    #[inline]
    fn run_of(&self, nr: u64) -> RunLength {
        let nr = nr.min(u64::from(self.max.get())) as u32;
        // INVARIANT: Cut to the span here.
        RunLength(NonZero::new(nr).unwrap_or(NonZero::<u32>::MIN))
    }
}

/// The length of the run that begins with the span's first PTE.
///
/// # Examples
///
/// ```
/// use mm_batch::{
///     pte::Respect,
///     pte_run::{folio_pte_batch, PteSpan},
/// };
/// use mm_shim::{
///     folio::Folio,
///     pte::{pte, DIRTY, WRITE},
///     unmap::{Layout, Mm},
/// };
///
/// // Three pages of a folio that begins at page frame 8. The last is read-only.
/// let folio = Folio::new(8, 3);
/// folio.map(3);
/// let words = [pte(8, WRITE), pte(9, WRITE | DIRTY), pte(10, 0)];
/// let mm = Mm::new(Layout::file(3), &words);
/// for (respect, nr) in [(Respect::NOTHING, 3), (Respect::TO_RESTORE, 2)] {
///     mm.walk(&folio, 0, |walk| {
///         let run = folio_pte_batch(&PteSpan::new(&walk), respect);
///         assert_eq!(run.get(), nr);
///     });
/// }
/// ```
///
/// Context: page table lock held. Does not sleep; at most one page table is read.
///
/// C: `folio_pte_batch_flags()`, mm/internal.h, 7.3, without `FPB_RESPECT_DIRTY` and `FPB_MERGE_*`.
#[inline]
pub fn folio_pte_batch<T: PteTable>(span: &PteSpan<'_, T>, respect: Respect) -> RunLength {
    let first = span.table.first();
    let PteFormat { ignored, step } = T::Arch::format(first, respect);
    let comparable = |pte: Pte| Pte::new(pte.raw() & !ignored);
    // INVARIANT: A span has a first PTE.
    let start = PteIndex {
        table: span.table,
        index: 0,
    };

    // A hint has 32 bits: their sum does not wrap before the span ends.
    let mut nr = u64::from(T::pte_batch_hint(&start, first).get());
    let mut expected = comparable(first).advanced(step, nr);
    while let Some(at) = span.at(nr) {
        let pte = T::ptep_get(&at);
        if comparable(pte) != expected {
            break;
        }
        let more = u64::from(T::pte_batch_hint(&at, pte).get());
        expected = expected.advanced(step, more);
        nr = nr.wrapping_add(more);
    }
    span.run_of(nr)
}

// One source for KUnit in the kernel and the test runner in user space.
#[cfg_attr(
    CONFIG_MM_BATCH_KUNIT_TEST,
    kernel::prelude::kunit_tests(mm_batch_pte_run)
)]
#[cfg_attr(not(CONFIG_MM_BATCH_KUNIT_TEST), cfg(test))]
mod tests {
    use super::*;
    use core::cell::Cell;

    const YOUNG: u64 = 1;
    const DIRTY: u64 = 2;
    const SOFT_DIRTY: u64 = 4;
    const WRITE: u64 = 8;
    const OTHER: u64 = 16;
    const STEP: u64 = 4096;
    const EIGHT: NonZero<usize> = NonZero::<usize>::MIN.saturating_add(7);

    /// Eight PTEs of page frames 0 to 7, with these bits; where things end.
    #[derive(Debug)]
    struct Words {
        bits: [u64; 8],
        reach: Reach,
        hint: u32,
        reads: Cell<u32>,
    }

    impl Words {
        fn new(bits: [u64; 8]) -> Self {
            let reach = Reach {
                vma: EIGHT,
                table: EIGHT,
                folio: EIGHT,
            };
            Self {
                bits,
                reach,
                hint: 1,
                reads: Cell::new(0),
            }
        }

        fn word(&self, at: u32) -> Pte {
            let bits = self.bits.get(at as usize).copied();
            Pte::new(bits.map_or(u64::MAX, |bits| bits + STEP * u64::from(at)))
        }

        fn length(&self, respect: Respect) -> RunLength {
            folio_pte_batch(&PteSpan::new(self), respect)
        }

        fn run(&self, respect: Respect) -> u32 {
            self.length(respect).get()
        }
    }

    // SAFETY: The words differ in `STEP` for each page frame.
    unsafe impl PteArch for Words {
        fn format(_pte: Pte, respect: Respect) -> PteFormat {
            PteFormat {
                ignored: respect.ignored(YOUNG, DIRTY, WRITE, SOFT_DIRTY),
                step: STEP,
            }
        }
    }

    // SAFETY: What is beyond the eight words reads as one that is in no run.
    unsafe impl PteTable for Words {
        type Arch = Self;

        fn reach(&self) -> Reach {
            self.reach
        }

        fn first(&self) -> Pte {
            self.word(0)
        }

        fn ptep_get(at: &PteIndex<'_, Self>) -> Pte {
            let reads = &at.table().reads;
            reads.set(reads.get().wrapping_add(1));
            at.table().word(at.get())
        }

        fn pte_batch_hint(at: &PteIndex<'_, Self>, _pte: Pte) -> NonZero<u32> {
            NonZero::new(at.table().hint).unwrap_or(NonZero::<u32>::MIN)
        }
    }

    #[test]
    fn young_and_dirty_never_end_a_run() {
        let words = Words::new([0, YOUNG, 0, YOUNG | DIRTY, DIRTY, 0, YOUNG, 0]);
        assert_eq!(words.run(Respect::NOTHING), 8);
        assert_eq!(words.run(Respect::TO_RESTORE), 8);
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
        let pages = |less: usize| NonZero::new(8 - less).unwrap_or(EIGHT);
        words.reach.folio = pages(1);
        assert_eq!(words.run(Respect::NOTHING), 7);
        words.reach.table = pages(2);
        assert_eq!(words.run(Respect::NOTHING), 6);
        words.reach.vma = pages(3);
        assert_eq!(words.run(Respect::NOTHING), 5);
    }

    #[test]
    fn what_a_hint_covers_is_not_read() {
        for (hint, reads) in [(1, 7), (3, 2), (4, 1), (8, 0)] {
            let mut words = Words::new([0; 8]);
            words.hint = hint;
            assert_eq!((words.run(Respect::NOTHING), words.reads.get()), (8, reads));
        }
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
    fn cutting_a_run_loses_no_pte() {
        let words = Words::new([WRITE; 8]);
        let word = |at: u32| WRITE + STEP * u64::from(at);
        let cuts = [1, 2, 3, 5, 8, u32::MAX];
        for cut in cuts.into_iter().filter_map(NonZero::new) {
            let nr = words.length(Respect::NOTHING);
            // SAFETY: The eight words are a run.
            let whole = unsafe { PtePart::<Words>::whole(Pte::new(word(0)), nr) };
            let (mut left, mut next) = (Some(whole), 0);
            while let Some(part) = left {
                let (front, rest) = part.split_off_front(cut);
                assert_eq!(front.at(), next);
                assert_eq!(front.first().raw(), word(next));
                assert_eq!(front.nr().get(), cut.get().min(8 - next));
                next += front.nr().get();
                left = rest;
            }
            assert_eq!(next, 8);
        }
    }
}
