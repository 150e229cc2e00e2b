// SPDX-License-Identifier: GPL-2.0

//! error: E0382 part
//! A run that was cut is its parts, and no longer itself.

use core::num::NonZero;
use mm_batch::{
    pte::PteArch,
    pte_run::PtePart, //
};

pub fn cut<A: PteArch>(part: PtePart<A>, nr: NonZero<u32>) {
    let _ = part.split_off_front(nr);
    #[cfg(bad)]
    let _ = part.split_off_front(nr);
}
