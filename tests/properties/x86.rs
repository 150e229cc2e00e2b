// SPDX-License-Identifier: GPL-2.0

//! Runs of PTEs as x86 has them: one without the write bit has its dirty bit elsewhere, and the
//! frame of a PROT_NONE entry is inverted, so that it goes down.
//!
//! C: `pte_mksaveddirty()` and `pte_advance_pfn()`, arch/x86/include/asm/pgtable.h, 7.3, and
//! `protnone_mask()`, pgtable-invert.h beside it.

use mm_batch::{
    pte::{
        Pte,
        PteArch,
        PteFormat,
        Respect, //
    },
    pte_run::{
        folio_pte_batch,
        PteIndex,
        PteSpan,
        PteTable,
        Reach, //
    }, //
};
use proptest::prelude::*;
use std::num::NonZero;

const PRESENT: u64 = 1 << 0;
const WRITE: u64 = 1 << 1;
const YOUNG: u64 = 1 << 5;
const DIRTY: u64 = 1 << 6;
const PROT_NONE: u64 = 1 << 8;
const SOFT_DIRTY: u64 = 1 << 11;
const SAVED_DIRTY: u64 = 1 << 58;
const PAGE_SHIFT: u32 = 12;
const PFN_MASK: u64 = 0xff_ffff_ffff << PAGE_SHIFT;
const NR: usize = 16;

fn inverted(word: u64) -> bool {
    word & (PRESENT | PROT_NONE) == PROT_NONE
}

/// A PTE for a page frame.
fn pte(pfn: u64, bits: u64) -> u64 {
    let frame = pfn << PAGE_SHIFT;
    bits | if inverted(bits) { !frame } else { frame } & PFN_MASK
}

fn pfn(word: u64) -> u64 {
    let frame = if inverted(word) { !word } else { word };
    (frame & PFN_MASK) >> PAGE_SHIFT
}

#[derive(Debug)]
struct X86;

// SAFETY: By arch/x86/include/asm/pgtable.h, 7.3.
unsafe impl PteArch for X86 {
    fn format(pte: Pte, respect: Respect) -> PteFormat {
        let step = 1u64 << PAGE_SHIFT;
        PteFormat {
            // What pte_mkold(), pte_wrprotect() with pte_mkclean(), and pte_clear_soft_dirty() take.
            ignored: respect.ignored(YOUNG, DIRTY | SAVED_DIRTY, WRITE, SOFT_DIRTY),
            step: if inverted(pte.raw()) {
                step.wrapping_neg()
            } else {
                step
            },
        }
    }
}

struct Words(Vec<u64>);

// SAFETY: There are `NR` words.
unsafe impl PteTable for Words {
    type Arch = X86;

    fn reach(&self) -> Reach {
        let nr = NonZero::new(NR).expect("there are some");
        Reach {
            vma: nr,
            table: nr,
            folio: nr,
        }
    }

    fn first(&self) -> Pte {
        Pte::new(self.0[0])
    }

    fn ptep_get(at: &PteIndex<'_, Self>) -> Pte {
        Pte::new(at.table().0[at.get() as usize])
    }

    fn pte_batch_hint(_: &PteIndex<'_, Self>, _: Pte) -> NonZero<u32> {
        NonZero::<u32>::MIN
    }
}

/// Bits of entries that are alike but for a few.
fn words() -> impl Strategy<Value = Vec<u64>> {
    let some = |bits: &'static [u64]| {
        proptest::sample::subsequence(bits, 0..=bits.len())
            .prop_map(|some| some.iter().fold(0, |all, bit| all | bit))
    };
    let few = prop_oneof![
        4 => Just(0),
        1 => some(&[WRITE, YOUNG, DIRTY, SOFT_DIRTY]),
    ];
    (
        prop_oneof![Just(PRESENT), Just(PROT_NONE)],
        some(&[WRITE, DIRTY, SOFT_DIRTY]),
        prop::collection::vec(few, NR),
    )
        .prop_map(|(kind, most, few)| {
            let word = |(i, few): (u64, u64)| {
                let bits = kind | most ^ few;
                // Without the write bit, a dirty PTE has the saved one.
                let bits = if bits & (WRITE | DIRTY) == DIRTY {
                    bits & !DIRTY | SAVED_DIRTY
                } else {
                    bits
                };
                pte(0x1000 + i, bits)
            };
            (0..).zip(few).map(word).collect()
        })
}

/// What counts of a PTE, said without masks.
fn counting(word: u64, respect: Respect) -> (u64, bool, bool, bool) {
    let bit = |respected: bool, bits| respected && word & bits != 0;
    (
        pfn(word),
        inverted(word),
        bit(respect.write, WRITE),
        bit(respect.soft_dirty, SOFT_DIRTY),
    )
}

proptest! {
    #![proptest_config(crate::cases(2048))]

    #[test]
    fn an_x86_run_is_as_long_as_one_by_one(
        words in words(),
        write: bool,
        soft_dirty: bool,
    ) {
        let respect = Respect { write, soft_dirty };
        let (frame, kind, w, s) = counting(words[0], respect);
        let nr = (0..)
            .zip(&words)
            .take_while(|&(i, &word)| counting(word, respect) == (frame + i, kind, w, s))
            .count();
        let table = Words(words);
        let got = folio_pte_batch(&PteSpan::new(&table), respect);
        prop_assert_eq!(got.get() as usize, nr);
    }
}
