// SPDX-License-Identifier: GPL-2.0

//! error: E0382
//! A run that was cut is its parts, and no longer itself.

use core::num::NonZero;
use mm_batch::{pte::PteArch, pte_run::PtePart};

pub fn cut<A: PteArch>(part: PtePart, nr: NonZero<u32>) -> (PtePart, Option<PtePart>) {
    #[cfg(bad)]
    {
        let (_front, _rest) = part.split_off_front::<A>(nr);
    }
    part.split_off_front::<A>(nr)
}
