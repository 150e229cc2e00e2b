// SPDX-License-Identifier: GPL-2.0

//! Page frames, ranges of them, and power-of-two blocks.
//!
//! The range types are tokens: none can be copied, and each step of freeing consumes the one before
//! it. So a page that was handed on cannot be handed on again.

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
    /// Wraps like the C arithmetic. A [`PageRange`] never wraps, so no frame inside of one does.
    #[inline]
    pub const fn add(self, nr: usize) -> Self {
        Self(self.0.wrapping_add(nr))
    }
}

/// One or more page frames with consecutive numbers, of which the holder owns something: one
/// reference each, or the frozen pages themselves ([`Held`]).
///
/// # Invariants
///
/// `first + nr` does not wrap.
#[derive(Debug)]
#[must_use = "pages that are not freed are leaked"]
pub struct PageRange {
    first: Pfn,
    nr: NonZero<usize>,
}

/// What the owner of a [`PageRange`] holds of each of its pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// One reference: the page is free once its count reaches zero, which may be up to somebody
    /// else.
    Refcounted,
    /// The page itself: its count is zero already and is not touched (CMA,
    /// `alloc_contig_frozen_range()`).
    Frozen,
}

impl PageRange {
    /// The range of `nr` pages from `first`; `None` if it is empty or wraps.
    ///
    /// In the kernel, whoever makes a range owns its pages; see `glue`.
    #[inline]
    pub fn new(first: Pfn, nr: usize) -> Option<Self> {
        let nr = NonZero::new(nr)?;
        // INVARIANT: checked here.
        first.0.checked_add(nr.get())?;
        Some(Self { first, nr })
    }

    /// The first page frame.
    #[inline]
    pub fn first(&self) -> Pfn {
        self.first
    }

    /// The number of pages, at least 1.
    #[inline]
    pub fn nr(&self) -> NonZero<usize> {
        self.nr
    }

    /// Cuts off the first `nr` pages: those, and the rest if there is any.
    ///
    /// An `nr` beyond the end takes the whole range.
    #[inline]
    pub fn split_at(self, nr: NonZero<usize>) -> (PageRange, Option<PageRange>) {
        let rest = self.skip(nr.get());
        // INVARIANT: both are parts of `self`, which does not wrap.
        let head = Self {
            first: self.first,
            nr: self.nr.min(nr),
        };
        (head, rest)
    }

    /// The range without its first `nr` pages, if any are left.
    #[inline]
    pub(crate) fn without_first(self, nr: usize) -> Option<PageRange> {
        self.skip(nr)
    }

    #[inline]
    fn skip(&self, nr: usize) -> Option<PageRange> {
        let left = NonZero::new(self.nr.get().saturating_sub(nr))?;
        // INVARIANT: a part of `self`, which does not wrap.
        Some(Self {
            first: self.first.add(nr),
            nr: left,
        })
    }

    /// The range as a [`LonePage`] if it is one page, or itself again.
    #[inline]
    pub(crate) fn into_lone(self) -> Result<LonePage, PageRange> {
        if self.nr.get() == 1 {
            Ok(LonePage(self.first))
        } else {
            Err(self)
        }
    }
}

/// A range of exactly one page.
#[derive(Debug)]
#[must_use = "a page that is not freed is leaked"]
pub struct LonePage(Pfn);

impl LonePage {
    /// The page frame.
    #[inline]
    pub fn pfn(&self) -> Pfn {
        self.0
    }
}

/// The order of the largest block that may start at `first` with `nr` pages left: naturally aligned
/// in PFN, not longer than `nr`, not above `max_order`.
///
/// PFN 0 is aligned to everything.
///
/// C: the order in `free_prepared_contig_range()`, mm/page_alloc.c, 7.2.
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
        assert!(PageRange::new(Pfn::new(7), 0).is_none());
        assert!(PageRange::new(Pfn::new(usize::MAX), 1).is_none());
        assert!(PageRange::new(Pfn::new(usize::MAX - 1), 1).is_some());
    }

    #[test]
    fn splitting_loses_no_page() {
        for cut in 1..12 {
            let Some(range) = PageRange::new(Pfn::new(3), 10) else {
                unreachable!()
            };
            let Some(cut) = NonZero::new(cut) else {
                unreachable!()
            };
            let (head, rest) = range.split_at(cut);
            assert_eq!(head.first().get(), 3);
            let end = head.first().get() + head.nr().get();
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
