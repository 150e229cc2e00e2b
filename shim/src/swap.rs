// SPDX-License-Identifier: GPL-2.0

//! The swap slots of a folio that is in the swap cache, and how many entries name each.
//!
//! | here            | in 7.3                                                              |
//! |-----------------|---------------------------------------------------------------------|
//! | [`Slots::dup`]  | `folio_dup_swap()`, `swap_dup_entries_cluster()`, mm/swapfile.c      |
//! | [`Slots::put`]  | `folio_put_swap()`, `swap_put_entries_cluster()`, same file          |
//! | [`Slots::new`]'s `most` | `SWP_TB_COUNT_MAX - 1`, mm/swap_table.h, and whether `swap_extend_table_alloc()` has memory |
//!
//! Left out: clusters (a folio's slots are in one, whose lock this is), the slots of others, what is
//! stored, and that a slot without entries is free once the folio leaves the swap cache.

use crate::sync::{
    step,
    Mutex,
    MutexGuard, //
};
use std::ops::Range;

/// The slots of a folio's pages, one behind the other.
#[derive(Debug)]
pub struct Slots {
    first: usize,
    most: Option<u32>,
    counts: Mutex<Vec<u32>>,
}

impl Slots {
    /// Slots from `first` on, with so many entries each; `most` if none can be counted higher.
    pub fn new(first: usize, counts: &[u32], most: Option<u32>) -> Self {
        Self {
            first,
            most,
            counts: Mutex::new(counts.to_vec()),
        }
    }

    /// The slot of a page.
    pub fn of(&self, page: usize) -> usize {
        self.first + page
    }

    /// The page of a slot.
    pub fn page(&self, slot: usize) -> usize {
        slot - self.first
    }

    /// An entry more for each page, or for none: false.
    pub fn dup(&self, pages: Range<usize>) -> bool {
        let mut counts = self.lock();
        let done = counts[pages.clone()]
            .iter()
            .all(|&count| self.most.is_none_or(|most| count < most));
        if done {
            counts[pages.clone()]
                .iter_mut()
                .for_each(|count| *count += 1);
        }
        step!("folio_dup_swap({pages:?}) = {done}");
        done
    }

    /// An entry less for each page.
    ///
    /// # Panics
    ///
    /// If one has none.
    pub fn put(&self, pages: Range<usize>) {
        step!("folio_put_swap({pages:?})");
        for count in &mut self.lock()[pages] {
            assert!(*count > 0, "a swap entry was put twice");
            *count -= 1;
        }
    }

    /// The entries of each page's slot.
    pub fn counts(&self) -> Vec<u32> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<u32>> {
        self.counts.lock().expect("a thread of the model panicked")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::explore;

    #[test]
    fn all_are_counted_or_none() {
        explore(|| {
            let slots = Slots::new(64, &[0, 1, 3, 0], Some(3));
            assert!(slots.dup(0..2));
            assert!(!slots.dup(1..3));
            assert_eq!(slots.counts(), [1, 2, 3, 0]);
            assert_eq!((slots.of(2), slots.page(66)), (66, 2));
            slots.put(2..3);
            assert!(slots.dup(1..4));
            assert_eq!(slots.counts(), [1, 3, 3, 1]);
        });
    }

    #[test]
    fn without_a_limit_all_can_be_counted() {
        explore(|| assert!(Slots::new(0, &[1000], None).dup(0..1)));
    }

    #[test]
    #[should_panic(expected = "a swap entry was put twice")]
    fn an_entry_put_twice_is_noticed() {
        explore(|| Slots::new(0, &[1, 0], None).put(0..2));
    }
}
