// SPDX-License-Identifier: GPL-2.0

//! A struct page as far as freeing goes: its reference count, and its content.
//!
//! | here                  | in 7.3                                                              |
//! |-----------------------|---------------------------------------------------------------------|
//! | [`Page::count`]       | `page_ref_count()`, include/linux/page_ref.h                        |
//! | [`Page::try_get`]     | `folio_try_get()`, `page_ref_add_unless_zero()`, same file          |
//! | [`Page::put_testzero`]| `put_page_testzero()`, include/linux/mm.h: `page_ref_dec_and_test()`|
//! | [`Page::write`]       | nothing by name: all that a holder writes, to the page or about it  |
//! | [`Page::assert_quiet`]| what `__free_pages_prepare()`, mm/page_alloc.c, takes for granted   |
//!
//! Left out: page types, flags, mapcounts, compound pages, the tracepoints of the count, references
//! that are added many at a time, `page_ref_freeze()`, and RCU around a speculative reference. A
//! count cannot overflow here.

use crate::{
    smp,
    sync::{
        atomic::{
            AtomicI32,
            AtomicUsize,
            Ordering::Relaxed, //
        },
        step, //
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

    /// The count: of a page that is this thread's, or at the end of a test.
    pub fn count(&self) -> i32 {
        self.refcount.load(Relaxed)
    }

    /// A speculative reference: fails on a page whose count is zero.
    ///
    /// C: `folio_try_get()`, include/linux/page_ref.h, 7.3; for a page, `get_page_unless_zero()`,
    /// include/linux/mm.h.
    pub fn try_get(&self) -> bool {
        let taken = smp::atomic_inc_not_zero(&self.refcount);
        step!("get_page_unless_zero() = {taken}");
        taken
    }

    /// Drops a reference; true if it was the last.
    ///
    /// C: `put_page_testzero()`, include/linux/mm.h, 7.3; its `VM_BUG_ON_PAGE()` is the panic.
    ///
    /// # Panics
    ///
    /// If there was none to drop.
    pub fn put_testzero(&self) -> bool {
        let last = smp::atomic_dec_and_test(&self.refcount);
        step!("put_page_testzero() = {last}");
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
        step!("the page is written");
    }

    /// Whether every write of a holder is visible to this thread.
    pub fn is_quiet(&self) -> bool {
        let (seen, written) = (self.content.load(Relaxed), self.written.load(SeqCst));
        step!("{seen} of {written} writes of the page are seen");
        seen == written
    }

    /// What `__free_pages_prepare()` relies on: nobody's write is still on its way.
    ///
    /// # Panics
    ///
    /// If a write of a former holder is not visible to this thread.
    pub fn assert_quiet(&self) {
        assert!(
            self.is_quiet(),
            "a holder's write came after the page was free"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::explore;

    #[test]
    fn a_count_goes_down_to_zero_once() {
        explore(|| {
            let page = Page::new(2);
            assert!(!page.put_testzero());
            assert!(page.try_get());
            assert!(!page.put_testzero());
            assert!(page.put_testzero());
            assert!(!page.try_get());
            assert_eq!(page.count(), 0);
        });
    }

    #[test]
    #[should_panic(expected = "a reference was dropped twice")]
    fn a_reference_dropped_twice_is_noticed() {
        explore(|| {
            let page = Page::new(1);
            page.put_testzero();
            page.put_testzero();
        });
    }

    #[test]
    #[should_panic(expected = "a holder's write came after the page was free")]
    fn a_write_on_its_way_is_noticed() {
        explore(|| {
            let page = Page::new(1);
            page.write();
            // What another CPU would see of it.
            page.content.store(0, Relaxed);
            page.assert_quiet();
        });
    }
}
