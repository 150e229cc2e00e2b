// SPDX-License-Identifier: GPL-2.0

//! The same of runs in which exclusive pages stand in front of, between and behind others: wherever
//! one stands, the barrier in front of the test for pins is there for it.

use super::*;

type Pages = &'static [(u64, bool)];

/// An exclusive page, and one that may be shared: neither is writable, or they were not of one run.
const E: (u64, bool) = (0, true);
const S: (u64, bool) = (0, false);

/// How GUP-fast of that page may end: a page that may be shared is not pinned, and only if another
/// is exclusive does anybody see that it was tried.
const fn ends(pages: Pages, page: usize) -> &'static [&'static str] {
    if pages[page].1 {
        return &ENDS;
    }
    let mut i = 0;
    while i < pages.len() {
        if pages[i].1 {
            return &[SWAPPED, KEPT];
        }
        i += 1;
    }
    &[SWAPPED]
}

macro_rules! pinned {
    ($($test:ident: $pages:expr, $page:literal;)*) => {$(
        #[test]
        fn $test() {
            const PAGES: Pages = &$pages;
            against(
                Bound::Exhaustive,
                || Anon::new(PAGES, None),
                &[|anon| anon.pin($page, false).then_some($page)],
                swapped_or_pinned,
                ends(PAGES, $page),
            );
        }
    )*};
}

pinned! {
    anon_mixed_es_0: [E, S], 0;
    anon_mixed_es_1: [E, S], 1;
    anon_mixed_se_0: [S, E], 0;
    anon_mixed_se_1: [S, E], 1;
    anon_mixed_ese_2: [E, S, E], 2;
    anon_mixed_ses_1: [S, E, S], 1;
    anon_mixed_sse_2: [S, S, E], 2;
}
