// SPDX-License-Identifier: GPL-2.0

//! Anonymous pages: whether each is one mm's alone, and how often the folio is pinned.
//!
//! | here                        | in 7.3                                                      |
//! |-----------------------------|-------------------------------------------------------------|
//! | [`Anon::is_exclusive`] and what changes it | `PageAnonExclusive()` etc., include/linux/page-flags.h |
//! | [`Anon::maybe_dma_pinned`]  | `folio_maybe_dma_pinned()`, include/linux/mm.h, of a large folio |
//!
//! Left out: KSM pages (never exclusive, so never pinned), counting a pin of a small folio by its
//! references. Pins are taken in [`crate::gup`].

use crate::{
    smp,
    sync::{
        atomic::{
            AtomicI32,
            AtomicU64,
            Ordering::Relaxed, //
        },
        step, //
    }, //
};

const EXCLUSIVE: u64 = 1 << 0;

/// What is anonymous about a folio.
#[derive(Debug)]
pub struct Anon {
    /// Of each page, its flags.
    flags: Vec<AtomicU64>,
    pincount: AtomicI32,
}

impl Anon {
    /// Of a folio of `nr` pages, which may be shared, and which nobody has pinned.
    pub(crate) fn new(nr: usize) -> Self {
        Self {
            flags: (0..nr).map(|_| AtomicU64::new(0)).collect(),
            pincount: AtomicI32::new(0),
        }
    }

    /// Makes a page one mm's alone.
    pub fn set_exclusive(&self, page: usize) {
        self.flags[page].fetch_or(EXCLUSIVE, Relaxed);
        step!("page {page} is exclusive");
    }

    /// Lets it be shared. What comes behind it is not ordered.
    pub fn clear_exclusive(&self, page: usize) {
        self.flags[page].fetch_and(!EXCLUSIVE, Relaxed);
        step!("page {page} is not exclusive");
        // Whoever shares it has an smp_mb__after_atomic() behind the last of them.
        smp::place_to_switch(&self.flags[page]);
    }

    /// Whether it is one mm's alone.
    pub fn is_exclusive(&self, page: usize) -> bool {
        let exclusive = self.flags[page].load(Relaxed) & EXCLUSIVE != 0;
        step!("PageAnonExclusive({page}) = {exclusive}");
        exclusive
    }

    /// Whether a page of it is pinned.
    pub fn maybe_dma_pinned(&self) -> bool {
        let pins = self.pincount.load(Relaxed);
        step!("folio_maybe_dma_pinned(), {pins} pins");
        pins > 0
    }

    /// The pins: at the end of a test.
    pub fn pins(&self) -> i32 {
        self.pincount.load(Relaxed)
    }

    pub(crate) fn pin(&self) {
        self.pincount.fetch_add(1, Relaxed);
        step!("pinned");
    }

    pub(crate) fn unpin(&self) {
        let left = self.pincount.fetch_sub(1, Relaxed) - 1;
        step!("unpinned, {left} pins left");
        assert!(left >= 0, "a pin was dropped twice");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::explore;

    #[test]
    #[should_panic(expected = "a pin was dropped twice")]
    fn a_pin_dropped_twice_is_noticed() {
        explore(|| Anon::new(1).unpin());
    }
}
