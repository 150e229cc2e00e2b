// SPDX-License-Identifier: GPL-2.0

//! error: E0423
//! Only a span makes an index, so no PTE beyond it can be read.

use mm_batch::pte_batch::{Pte, PteIndex, PteTable};

pub fn read(table: &impl PteTable, at: PteIndex) -> Pte {
    table.ptep_get(at)
}

#[cfg(bad)]
pub fn read_on(table: &impl PteTable, at: PteIndex) -> Pte {
    table.ptep_get(PteIndex(at.get() + 1))
}
