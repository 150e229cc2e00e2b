// SPDX-License-Identifier: GPL-2.0

//! Freeing order-0 pages as a transaction: each step is a type that owns the pages.
//!
//! ```text
//! PageRange --section--> Section --prepare--> PreparedRun --order, zone--> FreeBlock --> mm
//!     |                                                                                  ^
//!     +---one page--> LonePage ----------------------------------------------------------+
//! ```
//!
//! Each is a token. Safe code gets one only from the step before, which consumes its own, and
//! cannot copy it: so a page that was handed on cannot be handed on again. At the two ends there is
//! a promise by `unsafe`: the caller promises that it owns the pages of a range
//! ([`PageRange::owned`]), and the port that it prepared pages ([`Section::visited`]) and that its
//! answers are right ([`ContigMm`]).
//!
//! Safe code can lose pages. A token that is dropped leaks them, but for a [`PreparedRun`], which
//! frees what it holds; and each can be leaked (`mem::forget`), a [`PreparedRun`] as well.

use crate::pages::{
    block_order,
    Frames,
    Pfn, //
};
use core::{
    fmt::Debug,
    marker::PhantomData,
    mem::ManuallyDrop,
    num::NonZero, //
};

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Refcounted {}
    impl Sealed for super::Frozen {}
}

/// What an owner has of each of its pages: [`Refcounted`] or [`Frozen`].
pub trait Held: sealed::Sealed + Debug {
    /// Whether the count is zero already.
    const FROZEN: bool;
}

/// One reference: the page is free once its count reaches zero, perhaps when somebody else drops
/// the last one.
#[derive(Debug)]
pub struct Refcounted;

impl Held for Refcounted {
    const FROZEN: bool = false;
}

/// The page itself: its count is zero and is not touched (CMA, `alloc_contig_frozen_range()`).
#[derive(Debug)]
pub struct Frozen;

impl Held for Frozen {
    const FROZEN: bool = true;
}

/// One or more order-0 pages with consecutive frame numbers. The holder owns a reference of each
/// ([`Refcounted`]), or each page itself ([`Frozen`]).
///
/// # Examples
///
/// ```
/// use core::num::NonZero;
/// use mm_batch::free::Refcounted;
/// use mm_shim::contig_free::Layout;
///
/// // Of 20 pages, the first 12 and the other 8, each in one of the two.
/// let range = Layout::plain(512, 20).range::<Refcounted>();
/// let (front, rest) = range.split_off_front(NonZero::new(12).unwrap());
/// assert_eq!(front.frames().nr().get(), 12);
/// assert_eq!(rest.unwrap().frames().first().get(), 524);
/// ```
///
/// # Invariants
///
/// That ownership is this token's: no other has a page of it.
#[derive(Debug)]
#[must_use = "pages that are not freed are leaked"]
pub struct PageRange<H: Held> {
    frames: Frames,
    held: PhantomData<H>,
}

impl<H: Held> PageRange<H> {
    /// The `nr` pages from `first` on; `None` if there are none or they wrap.
    ///
    /// # Safety
    ///
    /// The caller owns what `H` says of each, an order-0 page with a struct page that is neither
    /// compound nor part of a higher order, and gives it up to the range.
    #[inline]
    pub unsafe fn owned(first: Pfn, nr: usize) -> Option<Self> {
        let frames = Frames::new(first, nr)?;
        // INVARIANT: By the function's requirement.
        Some(Self::of(frames))
    }

    #[inline]
    fn of(frames: Frames) -> Self {
        // INVARIANT: The caller has the pages: from C, or from a token that it takes apart.
        Self {
            frames,
            held: PhantomData,
        }
    }

    /// The page frames.
    #[inline]
    pub fn frames(&self) -> Frames {
        self.frames
    }

    /// Cuts off the first `nr` pages, or all if there are not so many: those, and the rest if there
    /// is any.
    #[inline]
    pub fn split_off_front(self, nr: NonZero<usize>) -> (Self, Option<Self>) {
        let (front, rest) = self.frames.split_off_front(nr);
        // INVARIANT: Each page is in one of the two.
        (Self::of(front), rest.map(Self::of))
    }

    /// Cuts off the pages at the front whose struct pages are contiguous: those, and the rest if
    /// there is any.
    #[inline]
    pub fn split_off_section<M: ContigMm>(self, mm: &M) -> (Section<H>, Option<Self>) {
        let contiguous = mm.contiguous_struct_pages(self.frames.first());
        let (front, rest) = self.split_off_front(contiguous);
        // INVARIANT: The port has promised that these struct pages are contiguous.
        (Section(front), rest)
    }

    /// The range as a [`LonePage`] if it is one page, or itself again.
    #[inline]
    pub fn into_lone(self) -> Result<LonePage<H>, Self> {
        if self.frames.nr().get() == 1 {
            // INVARIANT: It was asked just now.
            Ok(LonePage(self))
        } else {
            Err(self)
        }
    }
}

/// A range of exactly one page.
///
/// # Invariants
///
/// The range has one page.
#[derive(Debug)]
#[must_use = "a page that is not freed is leaked"]
pub struct LonePage<H: Held>(PageRange<H>);

impl<H: Held> LonePage<H> {
    /// The page frame.
    #[inline]
    pub fn pfn(&self) -> Pfn {
        self.0.frames.first()
    }
}

/// Pages of a range whose struct pages are contiguous.
///
/// # Invariants
///
/// The struct pages of the range are contiguous.
#[derive(Debug)]
#[must_use = "pages that are not freed are leaked"]
pub struct Section<H: Held>(PageRange<H>);

impl<H: Held> Section<H> {
    /// The page frames.
    #[inline]
    pub fn frames(&self) -> Frames {
        self.0.frames
    }

    /// For ports: the first `ready` pages, prepared, if there are any, and what comes after the
    /// page that ended the walk.
    ///
    /// # Safety
    ///
    /// The first `ready` pages are prepared: their counts are zero, and nobody else frees them. If
    /// there are more, the next was visited, and is no longer the caller's. The others are as they
    /// were.
    #[inline]
    pub unsafe fn visited(self, ready: usize) -> (Option<PreparedPages>, Option<Self>) {
        let frames = self.0.frames;
        // INVARIANT: By the function's requirement; each page is in one of the two at most.
        let prepared = NonZero::new(ready).map(|ready| {
            let (prepared, _) = frames.split_off_front(ready);
            PreparedPages(prepared)
        });
        let rest = frames.without_first(ready.saturating_add(1));
        (prepared, rest.map(|rest| Self(PageRange::of(rest))))
    }
}

/// Consecutive pages whose counts reached zero and whose prepare passed, and which are not free
/// yet.
///
/// # Invariants
///
/// The counts are zero, the prepare has passed, and no other token has one of the pages.
#[derive(Debug)]
#[must_use = "prepared pages that are not freed are leaked"]
pub struct PreparedPages(Frames);

/// What freeing pages needs of mm. Every loop over struct pages is one method.
///
/// Context of all methods: any but NMI, with no raw spinlock held; none sleeps.
///
/// # Safety
///
/// `MAX_PAGE_ORDER`, `contiguous_struct_pages()` and `same_zone()` are right for every page, also
/// for those of tokens that another implementation has made.
pub unsafe trait ContigMm {
    /// The order of the largest block that the allocator takes (C: `MAX_PAGE_ORDER`).
    const MAX_PAGE_ORDER: u32;

    /// The number of pages from `first` on, itself included, whose struct pages are contiguous for
    /// sure.
    ///
    /// That is the rest of its section with SPARSEMEM and no vmemmap, and without end otherwise.
    ///
    /// C: the `memdesc_section()` comparison in `__free_contig_range_common()`, mm/page_alloc.c,
    /// 7.3.
    fn contiguous_struct_pages(&self, first: Pfn) -> NonZero<usize>;

    /// Frees a single page: drops its reference, unless frozen, and prepares and frees it if that
    /// was the last.
    ///
    /// C: `__free_pages(page, 0)` or `free_frozen_pages(page, 0)`, mm/page_alloc.c, 7.3.
    fn free_page<H: Held>(&self, page: LonePage<H>);

    /// Walks `pages` from the front and makes each ready to be freed: drops its reference, unless
    /// frozen, and prepares it if that was the last. Stops after the first page that is not to be
    /// freed.
    ///
    /// Returns the pages at the front that are ready, if any, and those that were not visited. A
    /// page between the two was, and is no longer the caller's: either somebody else holds it still
    /// (and frees it), or its prepare failed (hwpoison, bad page) and it is leaked on purpose.
    ///
    /// The count reaches zero by a fully ordered decrement: what others did to the page while they
    /// held it happened before its prepare.
    ///
    /// C: `put_page_testzero()` and `free_pages_prepare(page, 0)` in
    /// `__free_contig_range_common()`, mm/page_alloc.c, 7.3.
    fn prepare_run<H: Held>(
        &self,
        pages: Section<H>,
    ) -> (Option<PreparedPages>, Option<Section<H>>);

    /// Whether two pages may be in one free block as far as their zones go.
    ///
    /// C: `page_zone_id()`, include/linux/mm.h, 7.3.
    ///
    /// # Safety
    ///
    /// The caller owns both pages: their struct pages cannot go, nor change their zone.
    unsafe fn same_zone(&self, a: Pfn, b: Pfn) -> bool;

    /// Hands a block to the allocator.
    ///
    /// C: `__free_frozen_pages(page, order, FPI_PREPARED)`, mm/page_alloc.c, 7.3.
    fn free_prepared(&self, block: FreeBlock);
}

/// A power-of-two block of pages whose counts reached zero and whose prepare passed.
///
/// Only a [`PreparedRun`] makes one.
///
/// # Invariants
///
/// `head` is a multiple of 2^`order` pages; `order` is at most [`ContigMm::MAX_PAGE_ORDER`]; the
/// first and the last page are of one zone; no other token has a page of it.
#[derive(Debug)]
#[must_use = "a prepared block that is not freed is leaked"]
pub struct FreeBlock {
    head: Pfn,
    order: u32,
}

impl FreeBlock {
    /// The first page frame.
    #[inline]
    pub fn head(&self) -> Pfn {
        self.head
    }

    /// The order: the block has 2^order pages.
    #[inline]
    pub fn order(&self) -> u32 {
        self.order
    }
}

/// Prepared pages, on their way to the allocator of `mm`.
///
/// Dropped, it frees what it holds, as [`PreparedRun::free`] does.
///
/// # Invariants
///
/// `left` is what was prepared and is in no [`FreeBlock`] yet.
#[derive(Debug)]
#[must_use = "name the place where the pages are freed"]
pub struct PreparedRun<'mm, M: ContigMm> {
    mm: &'mm M,
    left: Option<PreparedPages>,
}

impl<'mm, M: ContigMm> PreparedRun<'mm, M> {
    /// Prepares the pages at the front of `pages`: the run, which may be empty, and what was not
    /// visited.
    #[inline]
    pub fn first_of<H: Held>(mm: &'mm M, pages: Section<H>) -> (Self, Option<Section<H>>) {
        let (left, rest) = mm.prepare_run(pages);
        // INVARIANT: No block was taken from what was prepared.
        (Self { mm, left }, rest)
    }

    /// Frees the run, as the fewest blocks.
    ///
    /// C: `free_prepared_contig_range()`, mm/page_alloc.c, 7.3.
    #[inline]
    pub fn free(self) {
        ManuallyDrop::new(self).free_blocks();
    }

    #[inline]
    fn free_blocks(&mut self) {
        while let Some(block) = self.next_block() {
            self.mm.free_prepared(block);
        }
    }

    /// Takes the largest block that the run begins with.
    #[inline]
    fn next_block(&mut self) -> Option<FreeBlock> {
        let PreparedPages(pages) = self.left.take()?;
        let head = pages.first();
        let mut order = block_order(head, pages.nr(), M::MAX_PAGE_ORDER);
        // SAFETY: Both pages are of `pages`, which this run owns: block_order() keeps within.
        while order > 0 && !unsafe { self.mm.same_zone(head, head.add((1 << order) - 1)) } {
            order -= 1;
        }
        // INVARIANT: These are the pages that are not in the block.
        self.left = pages.without_first(1 << order).map(PreparedPages);
        // INVARIANT: block_order() aligned the block, halving it kept that, and the zone was just
        // looked at.
        Some(FreeBlock { head, order })
    }
}

impl<M: ContigMm> Drop for PreparedRun<'_, M> {
    #[inline]
    fn drop(&mut self) {
        self.free_blocks();
    }
}
