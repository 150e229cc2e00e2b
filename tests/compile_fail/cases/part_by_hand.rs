// SPDX-License-Identifier: GPL-2.0

//! error: E0624 whole, private
//! right: : PtePart<A> = unsafe { PtePart::whole(first, nr) } ->  = part.first()
//! A part comes from a run that was cleared.

use mm_batch::{
    pte::{
        Pte,
        PteArch, //
    },
    pte_run::{
        PtePart,
        RunLength, //
    },
};

pub unsafe fn forge<A: PteArch>(first: Pte, nr: RunLength, part: &PtePart<A>) {
    let _ = (first, nr, part);
    // SAFETY: This is not run.
    #[cfg(bad)]
    let _: PtePart<A> = unsafe { PtePart::whole(first, nr) };
}
