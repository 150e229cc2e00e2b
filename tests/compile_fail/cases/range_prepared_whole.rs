// SPDX-License-Identifier: GPL-2.0

//! error: E0308
//! A walk over struct pages is within a section, where they are contiguous.

use mm_batch::free::{ContigMm, PageRange, PreparedRun, Refcounted};

pub fn prepare<M: ContigMm>(mm: &M, range: PageRange<Refcounted>) {
    #[cfg(not(bad))]
    let (range, _rest) = range.split_off_section(mm);
    let (run, _rest) = PreparedRun::first_of(mm, range);
    run.free();
}
