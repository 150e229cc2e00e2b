// SPDX-License-Identifier: GPL-2.0

//! error: E0382
//! Freeing a range consumes it: the references are gone.

use mm_batch::{
    contig_free::{free_contig_range, ContigMm},
    pages::{Held, PageRange},
};

pub fn free(mm: &impl ContigMm, range: PageRange) {
    free_contig_range(mm, range, Held::Refcounted);
    #[cfg(bad)]
    free_contig_range(mm, range, Held::Refcounted);
}
