// SPDX-License-Identifier: GPL-2.0

//! Page frames, intervals of them, and power-of-two blocks.
//!
//! Numbers only: none of these owns a page. What does is in [`crate::free`].

#![forbid(unsafe_code)]

use core::num::NonZero;

/// A page frame number: the physical address divided by the page size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Pfn(usize);

impl Pfn {
    /// The page frame with number `raw`.
    #[inline]
    pub const fn new(raw: usize) -> Self {
        Self(raw)
    }

    /// The number, in pages from physical address 0.
    #[inline]
    pub const fn get(self) -> usize {
        self.0
    }

    /// The page frame `nr` pages on.
    ///
    /// Wraps like the C arithmetic. [`Frames`] never wrap, so no frame inside of them does.
    #[inline]
    pub const fn add(self, nr: usize) -> Self {
        Self(self.0.wrapping_add(nr))
    }
}

/// One or more page frames with consecutive numbers.
///
/// # Invariants
///
/// `first + nr` does not wrap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frames {
    first: Pfn,
    nr: NonZero<usize>,
}

impl Frames {
    /// The `nr` frames from `first` on; `None` if there are none or they wrap.
    #[inline]
    pub fn new(first: Pfn, nr: usize) -> Option<Self> {
        let nr = NonZero::new(nr)?;
        // INVARIANT: Checked here.
        first.0.checked_add(nr.get())?;
        Some(Self { first, nr })
    }

    /// The first frame.
    #[inline]
    pub const fn first(&self) -> Pfn {
        self.first
    }

    /// The number of frames, at least 1.
    #[inline]
    pub const fn nr(&self) -> NonZero<usize> {
        self.nr
    }

    /// Cuts off the first `nr` frames, or all if there are not so many: those, and the rest if
    /// there is any.
    #[inline]
    pub fn split_off_front(self, nr: NonZero<usize>) -> (Self, Option<Self>) {
        // INVARIANT: A part of `self`, which does not wrap.
        let front = Self {
            first: self.first,
            nr: self.nr.min(nr),
        };
        (front, self.without_first(nr.get()))
    }

    /// All but the first `nr` frames, if any are left.
    #[inline]
    pub fn without_first(self, nr: usize) -> Option<Self> {
        let left = NonZero::new(self.nr.get().saturating_sub(nr))?;
        // INVARIANT: A part of `self`, which does not wrap.
        Some(Self {
            first: self.first.add(nr),
            nr: left,
        })
    }
}

/// The order of the largest block that may start at `first` with `nr` pages left: naturally aligned
/// in PFN, not longer than `nr`, not above `max_order`.
///
/// PFN 0 is aligned to everything.
///
/// # Examples
///
/// ```
/// use core::num::NonZero;
/// use mm_batch::pages::{block_order, Pfn};
///
/// let seven = NonZero::new(7).unwrap();
/// // Four of seven pages, as the first page frame is a multiple of 4 and not of 8.
/// assert_eq!(block_order(Pfn::new(12), seven, 10), 2);
/// // Seven pages have no block of eight.
/// assert_eq!(block_order(Pfn::new(16), seven, 10), 2);
/// ```
///
/// C: `contig_block_order()`, the order in `free_prepared_contig_range()`, mm/page_alloc.c, 7.3.
#[inline]
pub fn block_order(first: Pfn, nr: NonZero<usize>, max_order: u32) -> u32 {
    // trailing_zeros() of 0 is the word's width, so PFN 0 needs no rule of its own.
    first.0.trailing_zeros().min(nr.ilog2()).min(max_order)
}

// One source for KUnit in the kernel and the test runner in user space.
#[cfg_attr(
    CONFIG_MM_BATCH_KUNIT_TEST,
    kernel::prelude::kunit_tests(mm_batch_pages)
)]
#[cfg_attr(not(CONFIG_MM_BATCH_KUNIT_TEST), cfg(test))]
mod tests {
    use super::*;

    const MAX: u32 = 10;

    fn order(pfn: usize, nr: usize) -> u32 {
        NonZero::new(nr).map_or(u32::MAX, |nr| block_order(Pfn::new(pfn), nr, MAX))
    }

    #[test]
    fn pfn_zero_is_aligned_to_everything() {
        assert_eq!(order(0, 1), 0);
        assert_eq!(order(0, 1024), MAX);
        assert_eq!(order(0, 1 << 20), MAX);
    }

    #[test]
    fn order_is_limited_by_alignment() {
        assert_eq!(order(1, 512), 0);
        assert_eq!(order(6, 512), 1);
        assert_eq!(order(512, 512), 9);
    }

    #[test]
    fn order_is_limited_by_length() {
        assert_eq!(order(512, 1), 0);
        assert_eq!(order(512, 511), 8);
    }

    #[test]
    fn order_is_limited_by_the_largest_buddy() {
        assert_eq!(order(1 << 20, 1 << 20), MAX);
    }

    #[test]
    fn a_range_is_neither_empty_nor_wraps() {
        assert!(Frames::new(Pfn::new(7), 0).is_none());
        assert!(Frames::new(Pfn::new(usize::MAX), 1).is_none());
        assert!(Frames::new(Pfn::new(usize::MAX - 1), 1).is_some());
    }

    #[test]
    fn splitting_loses_no_page() {
        for cut in 1..12 {
            let Some(range) = Frames::new(Pfn::new(3), 10) else {
                unreachable!()
            };
            let Some(cut) = NonZero::new(cut) else {
                unreachable!()
            };
            let (front, rest) = range.split_off_front(cut);
            assert_eq!(front.first().get(), 3);
            assert_eq!(front.nr().get(), cut.get().min(10));
            let end = front.first().get() + front.nr().get();
            match rest {
                Some(rest) => {
                    assert_eq!(rest.first().get(), end);
                    assert_eq!(rest.first().get() + rest.nr().get(), 13);
                }
                None => assert_eq!(end, 13),
            }
        }
    }
}
