// SPDX-License-Identifier: GPL-2.0

//! `contig_free` against the C function that it replaces. What both do to real pages is tested by
//! mm/tests/mm_batch_contig_free_kunit.c.

use kernel::prelude::*;

#[kunit_tests(mm_batch_block_order)]
mod tests {
    use crate::pages::{
        block_order,
        Pfn, //
    };
    use core::num::NonZero;
    use kernel::bindings;

    /// A xorshift: the same ranges in every run.
    struct Random(u64);

    impl Random {
        fn next(&mut self) -> usize {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            self.0 as usize
        }
    }

    fn same_as_c(first: usize, nr: usize) -> bool {
        let Some(nr) = NonZero::new(nr) else {
            return true;
        };
        // SAFETY: Arithmetic only.
        let c = unsafe { bindings::contig_block_order_kunit(first, nr.get()) };
        block_order(Pfn::new(first), nr, bindings::MAX_PAGE_ORDER) == c
    }

    #[test]
    fn random_ranges() {
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        for _ in 0..20_000 {
            let first = random.next() >> (12 + random.next() % 52);
            let nr = random.next() >> (12 + random.next() % 52);
            assert!(same_as_c(first, nr));
            assert!(same_as_c(first << (random.next() % 12), nr));
        }
    }

    #[test]
    fn edges() {
        for order in 0..40 {
            for off in 0..3 {
                let near = (1usize << order) + off - 1;
                assert!(same_as_c(0, near));
                assert!(same_as_c(near, 1));
                assert!(same_as_c(near, near));
            }
        }
    }
}
