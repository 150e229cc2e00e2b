// SPDX-License-Identifier: GPL-2.0

//! error: E0200 PteArch
//! Safe code has no architecture of its own making, by whose step runs are found and cut.

use mm_batch::pte::{
    Pte,
    PteArch,
    PteFormat,
    Respect, //
};

#[derive(Debug)]
pub struct Mine;

#[cfg(bad)]
impl PteArch for Mine {
    fn format(_: Pte, _: Respect) -> PteFormat {
        PteFormat {
            ignored: u64::MAX,
            step: 0,
        }
    }
}
