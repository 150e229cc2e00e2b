// SPDX-License-Identifier: GPL-2.0

//! error: E0308 PageRange<Refcounted>, PageRange<Frozen>
//! right: mm, frozen -> mm, counted
//! Frozen pages have no reference to drop.

use mm_batch::{
    contig_free::free_contig_range,
    free::{ContigMm, Frozen, PageRange, Refcounted},
};

fn put<M: ContigMm>(mm: &M, range: PageRange<Refcounted>) {
    free_contig_range(mm, range);
}

pub fn free<M: ContigMm>(mm: &M, counted: PageRange<Refcounted>, frozen: PageRange<Frozen>) {
    #[cfg(bad)]
    put(mm, frozen);
}
