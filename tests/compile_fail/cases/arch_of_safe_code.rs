// SPDX-License-Identifier: GPL-2.0

//! error: E0200 PteArch
//! Safe code has no architecture of its own making, by whose step runs are found and cut.

use mm_batch::pte::{
    Pte,
    PteArch,
    Respect, //
};

#[derive(Debug)]
pub struct Mine;

#[cfg(bad)]
impl PteArch for Mine {
    fn ignored(_: Respect) -> u64 {
        u64::MAX
    }
    fn pfn_step(_: Pte) -> u64 {
        0
    }
    fn pte_dirty(_: Pte) -> bool {
        false
    }
}
