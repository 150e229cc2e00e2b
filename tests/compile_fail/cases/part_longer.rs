// SPDX-License-Identifier: GPL-2.0

//! error: E0451 at, first, nr, PtePart
//! A run can be cut, and no part be made longer or put elsewhere.

use core::num::NonZero;
use mm_batch::{
    pte::PteArch,
    pte_run::PtePart, //
};

pub fn cut<A: PteArch>(part: PtePart<A>, nr: NonZero<u32>) -> PtePart<A> {
    #[cfg(bad)]
    let part = PtePart {
        at: 1,
        first: part.first(),
        nr: part.nr(),
        ..part
    };
    part.split_off_front(nr).0
}
