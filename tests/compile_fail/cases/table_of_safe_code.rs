// SPDX-License-Identifier: GPL-2.0

//! error: E0200 PteTable
//! Safe code has no page table of its own making, whose PTEs are taken for a run.

use core::num::NonZero;
use mm_batch::{
    pte::{
        Pte,
        PteArch, //
    },
    pte_run::{
        PteIndex,
        PteTable,
        Reach, //
    },
};

pub struct Mine<A>(A);

#[cfg(bad)]
impl<A: PteArch> PteTable for Mine<A> {
    type Arch = A;

    fn reach(&self) -> Reach {
        let endless = NonZero::<usize>::MAX;
        Reach {
            vma: endless,
            table: endless,
            folio: endless,
        }
    }
    fn first(&self) -> Pte {
        Pte::new(0)
    }
    fn ptep_get(_: &PteIndex<'_, Self>) -> Pte {
        Pte::new(0)
    }
    fn pte_batch_hint(_: &PteIndex<'_, Self>, _: Pte) -> NonZero<u32> {
        NonZero::<u32>::MIN
    }
}
