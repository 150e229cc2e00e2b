// SPDX-License-Identifier: GPL-2.0

//! error: E0382 range
//! Freeing a range consumes it: the references are gone.

use mm_batch::{
    contig_free::free_contig_range,
    free::{ContigMm, Held, PageRange},
};

pub fn free<H: Held>(mm: &impl ContigMm, range: PageRange<H>) {
    free_contig_range(mm, range);
    #[cfg(bad)]
    free_contig_range(mm, range);
}
