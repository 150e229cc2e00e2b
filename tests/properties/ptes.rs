// SPDX-License-Identifier: GPL-2.0

//! Tables of PTEs by chance, and an oracle that looks at one PTE at a time.

use mm_batch::pte::Respect;
use mm_shim::{
    folio::Folio,
    order::Event,
    pte::{
        pte,
        pte_pfn,
        CONT,
        DIRTY,
        PFN_SHIFT,
        PRESENT,
        PROT_NONE,
        SOFT_DIRTY,
        SPECIAL,
        UFFD_WP,
        WRITE,
        YOUNG, //
    },
    unmap::Layout, //
};
use proptest::prelude::*;

/// PTEs per page table, in a row of three.
pub(crate) const TABLE: usize = 16;
pub(crate) const NR: usize = 3 * TABLE;
pub(crate) const GROUP: usize = 4;
/// The page frame that PTE 0 would map, were all of the row one folio's.
pub(crate) const PFN: usize = 0x1000;

/// What a run must have in common to be restored.
pub(crate) const RESTORABLE: Respect = Respect {
    write: true,
    soft_dirty: true,
};

/// A piece of address space.
#[derive(Clone, Debug)]
struct Piece {
    nr: usize,
    hole: bool,
    /// Mapped so many pages off.
    off: usize,
    /// In which bits it differs from most.
    bits: u64,
    /// Of each PTE, more of what hardware sets.
    touched: Vec<u64>,
}

pub(crate) fn some_bits(bits: &'static [u64]) -> impl Strategy<Value = u64> {
    proptest::sample::subsequence(bits, 0..=bits.len())
        .prop_map(|some| some.iter().fold(0, |all, bit| all | bit))
}

fn piece() -> impl Strategy<Value = Piece> {
    (
        1usize..20,
        prop::bool::weighted(0.1),
        prop_oneof![9 => Just(0usize), 1 => 1usize..4],
        prop_oneof![
            3 => Just(0),
            1 => Just(WRITE),
            1 => Just(SOFT_DIRTY),
            1 => Just(UFFD_WP),
            1 => Just(DIRTY),
            1 => Just(SPECIAL),
            1 => Just(PROT_NONE | UFFD_WP),
            1 => some_bits(&[WRITE, DIRTY, SOFT_DIRTY, UFFD_WP, PROT_NONE, SPECIAL]),
        ],
        prop::collection::vec(
            prop_oneof![4 => Just(0), 1 => some_bits(&[YOUNG, DIRTY])],
            20,
        ),
    )
        .prop_map(|(nr, hole, off, bits, touched)| Piece {
            nr,
            hole,
            off,
            bits,
            touched,
        })
}

fn words(most: u64, pieces: &[Piece], grouped: bool) -> Vec<u64> {
    let mut words = Vec::new();
    for piece in pieces {
        for i in 0..piece.nr {
            let bits = most ^ piece.bits | piece.touched[i];
            let word = pte(PFN + words.len() + piece.off, bits);
            words.push(if piece.hole { 0 } else { word });
        }
    }
    words.resize(NR, 0);
    // A group has one set of bits, and is aligned in both address and page frame.
    for start in (0..NR).step_by(GROUP).filter(|_| grouped) {
        let first = words[start];
        let pfn = first >> PFN_SHIFT;
        let alike = |i: usize| {
            words[start + i] & !(YOUNG | DIRTY)
                == (first & !(YOUNG | DIRTY)) + ((i as u64) << PFN_SHIFT)
        };
        if first & PRESENT != 0 && pfn % GROUP as u64 == 0 && (0..GROUP).all(alike) {
            words[start..start + GROUP]
                .iter_mut()
                .for_each(|word| *word |= CONT);
        }
    }
    words
}

#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) layout: Layout,
    pub(crate) words: Vec<u64>,
    pub(crate) folio: (usize, usize),
    /// The PTE that the walk has stopped at.
    pub(crate) at: usize,
}

impl Case {
    pub(crate) fn folio(&self) -> Folio {
        let folio = Folio::new(self.folio.0, self.folio.1);
        folio.map(self.mapped().count());
        folio
    }

    /// The VMA's PTEs that map a page of the folio.
    pub(crate) fn mapped(&self) -> impl Iterator<Item = usize> + '_ {
        self.layout.vma.clone().filter(|&i| self.maps(i))
    }

    pub(crate) fn maps(&self, i: usize) -> bool {
        let pfn = pte_pfn(self.words[i]);
        self.words[i] & PRESENT != 0 && (self.folio.0..self.folio.0 + self.folio.1).contains(&pfn)
    }

    /// A PTE as software sees it: one of a group is as young and as dirty as any of them.
    fn seen(&self, i: usize) -> u64 {
        let start = i / GROUP * GROUP;
        let group = if self.words[i] & CONT != 0 {
            start..start + GROUP
        } else {
            i..i + 1
        };
        group.fold(self.words[i], |all, i| {
            all | self.words[i] & (YOUNG | DIRTY)
        })
    }

    /// The PTEs of the run from `at` on, looked at one by one.
    pub(crate) fn run(&self, at: usize, respect: Respect) -> usize {
        let counting = |word: u64| {
            word & !(YOUNG | DIRTY)
                & !if respect.soft_dirty { 0 } else { SOFT_DIRTY }
                & !if respect.write { 0 } else { WRITE }
        };
        let goes_on = |i: &usize| {
            let i = *i;
            i < self.layout.vma.end
                && i / TABLE == at / TABLE
                && self.maps(i)
                && counting(self.seen(i))
                    == counting(self.seen(at)) + (((i - at) as u64) << PFN_SHIFT)
        };
        (at..NR).take_while(goes_on).count()
    }
}

pub(crate) fn case(anonymous: bool) -> impl Strategy<Value = Case> {
    (
        (
            some_bits(&[WRITE, SOFT_DIRTY, UFFD_WP]),
            prop::collection::vec(piece(), 1..8),
        ),
        any::<bool>(),
        (0usize..NR, 1usize..=NR),
        (0usize..NR, 1u32..6),
        any::<bool>(),
        any::<prop::sample::Index>(),
    )
        .prop_map(
            move |((most, pieces), grouped, (start, nr), (first, order), uffd_wp, at)| {
                let folio = (PFN + (first >> order << order), 1usize << order);
                let layout = Layout {
                    table: TABLE,
                    vma: start..(start + nr).min(NR),
                    uffd_wp,
                    of_file: !anonymous,
                    group: GROUP,
                    ..Layout::file(0)
                };
                let mut case = Case {
                    layout,
                    words: words(most, &pieces, grouped),
                    folio,
                    at: 0,
                };
                let mapped: Vec<_> = case.mapped().collect();
                case.at = if mapped.is_empty() {
                    NR
                } else {
                    *at.get(&mapped)
                };
                case
            },
        )
        .prop_filter("nothing of the folio is mapped", |case| case.at < NR)
}

pub(crate) fn without_cont(words: Vec<u64>) -> Vec<u64> {
    words.into_iter().map(|word| word & !CONT).collect()
}

/// What is done to a run whose PTEs are gone for good, in its end.
pub(crate) fn unmapped(nr: u32) -> [Event; 1] {
    [Event::Unmapped(nr)]
}

/// What is done to a run that comes back.
pub(crate) fn restored(nr: u32) -> [Event; 2] {
    [Event::FlushedAgain(nr), Event::Restored(nr)]
}
