// SPDX-License-Identifier: GPL-2.0

//! error: E0451 table, index, PteIndex
//! Only a span makes an index, so no PTE beyond it is read, and an index has its table with it.

use mm_batch::{
    pte::Pte,
    pte_run::{PteIndex, PteTable},
};

pub fn read<T: PteTable>(at: &PteIndex<'_, T>) -> Pte {
    T::ptep_get(at)
}

#[cfg(bad)]
pub fn read_on<T: PteTable>(at: &PteIndex<'_, T>, other: &T) -> Pte {
    T::ptep_get(&PteIndex {
        table: other,
        index: at.get(),
    })
}
