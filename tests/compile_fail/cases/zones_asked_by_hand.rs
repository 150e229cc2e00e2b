// SPDX-License-Identifier: GPL-2.0

//! error: E0133 same_zone
//! Who asks for the zone of a page promises that it does not go.

use mm_batch::{free::ContigMm, pages::Pfn};

pub fn asked<M: ContigMm>(mm: &M, a: Pfn, b: Pfn) {
    #[cfg(bad)]
    let _ = mm.same_zone(a, b);
}
