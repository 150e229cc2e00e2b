// SPDX-License-Identifier: GPL-2.0

//! error: E0308 Section, PageRange
//! right: mm, range -> mm, section
//! A walk over struct pages is within a section, where they are contiguous.

use mm_batch::free::{ContigMm, PageRange, PreparedRun, Refcounted, Section};

pub fn prepare<M: ContigMm>(mm: &M, range: PageRange<Refcounted>, section: Section<Refcounted>) {
    #[cfg(bad)]
    let _ = PreparedRun::first_of(mm, range);
}
