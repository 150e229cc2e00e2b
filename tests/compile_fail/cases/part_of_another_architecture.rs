// SPDX-License-Identifier: GPL-2.0

//! error: E0308 PtePart
//! right: set_ptes(part) -> set_ptes(own)
//! A part is of the PTEs that its walk has, by whose step it is cut.

use mm_batch::{
    pte::PteArch,
    pte_run::PtePart,
    unmap::{
        Part,
        UnmapWalk, //
    },
};

pub unsafe fn map<W: UnmapWalk, A: PteArch>(walk: &W, part: &PtePart<A>, own: &Part<W>) {
    // SAFETY: This is not run.
    unsafe { walk.set_ptes(own) };
    // SAFETY: This is not run.
    #[cfg(bad)]
    unsafe {
        walk.set_ptes(part)
    };
}
