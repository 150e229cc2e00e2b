// SPDX-License-Identifier: GPL-2.0

//! How far a run is looked for.

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
use mm_shim::{
    folio::Folio,
    pte::{
        pte,
        CONT,
        WRITE, //
    },
    unmap::{
        Layout,
        Mm, //
    }, //
};
use std::num::NonZero;

/// No page table is so long: all of it is one run, and has the same hint.
#[derive(Debug)]
struct Endless;

// SAFETY: A PTE is its place, which counts modulo 2^32.
unsafe impl PteArch for Endless {
    fn format(_: Pte, _: Respect) -> PteFormat {
        PteFormat {
            ignored: 0,
            step: 1,
        }
    }
}

// SAFETY: Each place has a PTE.
unsafe impl PteTable for Endless {
    type Arch = Self;

    fn reach(&self) -> Reach {
        let endless = NonZero::new(1 << 32).expect("there are some");
        Reach {
            vma: endless,
            table: endless,
            folio: endless,
        }
    }

    fn first(&self) -> Pte {
        Pte::new(0)
    }

    fn ptep_get(at: &PteIndex<'_, Self>) -> Pte {
        Pte::new(u64::from(at.get()))
    }

    fn pte_batch_hint(_: &PteIndex<'_, Self>, _: Pte) -> NonZero<u32> {
        NonZero::<u32>::MAX
    }
}

#[test]
fn a_reach_that_needs_more_than_32_bits_is_cut() {
    let nr = folio_pte_batch(&PteSpan::new(&Endless), Respect::NOTHING);
    assert_eq!(nr.get(), u32::MAX);
}

/// From the second PTE of a group on, the hint is for what is left of the group.
#[test]
fn a_hint_ends_with_its_group() {
    let group = |first| (first..first + 4).map(|pfn| pte(pfn, CONT | WRITE));
    let words: Vec<_> = group(8).chain(group(16)).collect();
    let folio = Folio::new(8, 16);
    folio.map(8);
    let layout = Layout {
        group: 4,
        ..Layout::file(8)
    };
    Mm::new(layout, &words).walk(&folio, 1, |walk| {
        let nr = folio_pte_batch(&PteSpan::new(&walk), Respect::NOTHING);
        assert_eq!(nr.get(), 3);
    });
}
