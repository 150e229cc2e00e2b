// SPDX-License-Identifier: GPL-2.0

//! A struct page as far as freeing goes: its reference count, and its content.
//!
//! Models `page_ref_dec_and_test()` and `page_ref_add_unless_zero()` (include/linux/page_ref.h) and
//! `put_page_testzero()` (include/linux/mm.h), 7.2. The content stands for all that a holder may
//! write, to the page or to its struct page: it is what the ordering of the count protects.
//!
//! Left out: page types, flags, mapcounts, and RCU around the speculative reference.

use crate::{
    smp,
    sync::atomic::{
        AtomicI32,
        AtomicUsize,
        Ordering::Relaxed, //
    }, //
};
use std::sync::atomic::{
    AtomicUsize as PlainUsize,
    Ordering::SeqCst, //
};

/// One page.
#[derive(Debug)]
pub struct Page {
    refcount: AtomicI32,
    content: AtomicUsize,
    /// The writes that were really made: outside of loom's memory, so never stale.
    written: PlainUsize,
}

impl Page {
    /// A page with `count` references, 0 for a frozen one.
    pub fn new(count: i32) -> Self {
        Self {
            refcount: AtomicI32::new(count),
            content: AtomicUsize::new(0),
            written: PlainUsize::new(0),
        }
    }

    /// The count, for the end of a test.
    pub fn count(&self) -> i32 {
        self.refcount.load(Relaxed)
    }

    /// A speculative reference: fails on a page whose count is zero (`folio_try_get()`).
    pub fn try_get(&self) -> bool {
        smp::atomic_inc_not_zero(&self.refcount)
    }

    /// Drops a reference; true if it was the last (`put_page_testzero()`).
    ///
    /// # Panics
    ///
    /// If there was none to drop.
    pub fn put_testzero(&self) -> bool {
        let last = smp::atomic_dec_and_test(&self.refcount);
        assert!(
            self.refcount.load(Relaxed) >= 0,
            "a reference was dropped twice"
        );
        last
    }

    /// A write by a holder of a reference.
    pub fn write(&self) {
        // Relaxed: only the count's ordering may carry it to whoever prepares the page.
        self.content.fetch_add(1, Relaxed);
        self.written.fetch_add(1, SeqCst);
    }

    /// What `free_pages_prepare()` relies on: nobody's write is still on its way.
    ///
    /// # Panics
    ///
    /// If a write of a former holder is not visible to this thread.
    pub fn assert_quiet(&self) {
        let seen = self.content.load(Relaxed);
        assert_eq!(
            seen,
            self.written.load(SeqCst),
            "a holder's write came after the page was free"
        );
    }
}
