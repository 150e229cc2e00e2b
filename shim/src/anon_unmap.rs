// SPDX-License-Identifier: GPL-2.0

//! The port of `anon_unmap`, beyond what every unmapping needs.
//!
//! | here                                   | in 7.3                                          |
//! |----------------------------------------|-------------------------------------------------|
//! | `folio_dup_swap_pages()`, `folio_put_swap_pages()` | [`crate::swap`]                     |
//! | `page_anon_exclusive_batch()`          | `page_anon_exclusive_batch()`, mm/internal.h    |
//! | AnonExclusive, pins                    | [`crate::anon`]                                 |
//! | `smp_mb()`, `smp_mb_after_atomic()`    | [`crate::smp`]                                  |
//! | `set_swp_ptes()`                       | `swp_pte_prepare()` and `set_pte_at()`, mm/rmap.c |
//! | `prepare_for_swap_entries()`           | that `mm_prepare_for_swap_entries()` was called, for [`crate::order`]; the counter |
//!
//! A page that becomes a swap entry and still has its AnonExclusive bit panics, as does a PTE that is
//! not none.
//!
//! Left out: swapoff, which looks at all mms of a list.

// Ports promise what is in their traits' Safety sections.
#![allow(unsafe_code)]

use crate::{
    order::Event,
    pte::{
        swp_pte,
        SOFT_DIRTY,
        SWP_EXCLUSIVE,
        SWP_SOFT_DIRTY,
        SWP_UFFD,
        UFFD_WP, //
    },
    smp,
    swap::Slots,
    unmap::Walk, //
};
use mm_batch::{
    pte_run::RunLength,
    to_swap::{
        Sharing,
        SubBatch,
        SwapWalk, //
    },
    unmap::Part, //
};
use std::num::NonZero;

impl Walk<'_> {
    fn slots(&self) -> &Slots {
        self.folio.swap.as_ref().expect("the folio has no slots")
    }

    fn sharing(&self, page: usize) -> Sharing {
        if self.folio.anon.is_exclusive(page) {
            Sharing::Exclusive
        } else {
            Sharing::MaybeShared
        }
    }
}

// SAFETY: The answers are the model's.
unsafe impl SwapWalk for Walk<'_> {
    unsafe fn folio_dup_swap_pages(&self, nr: RunLength) -> bool {
        let done = self.slots().dup(self.pages(0, nr));
        self.note(if done {
            Event::SwapDup(nr.get())
        } else {
            Event::NotDup(nr.get())
        });
        done
    }

    unsafe fn folio_put_swap_pages(&self, nr: RunLength) {
        self.slots().put(self.pages(0, nr));
        self.note(Event::SwapPut(nr.get()));
    }

    fn smp_mb_after_atomic(&self) {
        smp::smp_mb();
        self.note(Event::OrderedBehind);
    }

    fn folio_maybe_dma_pinned(&self) -> bool {
        let pinned = self.folio.anon.maybe_dma_pinned();
        self.note(Event::PinTested(pinned));
        pinned
    }

    unsafe fn page_anon_exclusive_batch(&self, part: &Part<Self>) -> SubBatch {
        let pages = self.pages(part.at(), part.nr());
        let sharing = self.sharing(pages.start);
        let nr = pages
            .take_while(|&page| self.sharing(page) == sharing)
            .count();
        let nr = NonZero::new(nr as u32).expect("the first is as it is");
        self.note(Event::SharingAsked {
            at: part.at(),
            of: part.nr().get(),
            sharing,
            nr: nr.get(),
        });
        SubBatch { sharing, nr }
    }

    unsafe fn clear_pages_anon_exclusive(&self, part: &Part<Self>) {
        for page in self.pages(part.at(), part.nr()) {
            assert!(
                self.folio.anon.is_exclusive(page),
                "page {page} was not exclusive"
            );
            self.folio.anon.clear_exclusive(page);
        }
        self.note(Event::Shared(part.nr().get()));
    }

    unsafe fn prepare_for_swap_entries(&self, nr: RunLength) {
        self.count(|rss| rss.swapents += i64::from(nr.get()));
        self.note(Event::Prepared(nr.get()));
    }

    unsafe fn set_swp_ptes(&self, part: &Part<Self>, sharing: Sharing) {
        let pte = part.first().raw();
        let bit = |there, bit| if there { bit } else { 0 };
        let bits = bit(sharing == Sharing::Exclusive, SWP_EXCLUSIVE)
            | bit(pte & SOFT_DIRTY != 0, SWP_SOFT_DIRTY)
            | bit(pte & UFFD_WP != 0, SWP_UFFD);
        let pages = self.pages(part.at(), part.nr());
        for (place, page) in self.places(part.at(), part.nr()).zip(pages) {
            assert!(
                !self.folio.anon.is_exclusive(page),
                "page {page} is exclusive, and swapped out"
            );
            let was = self
                .table()
                .set(place, swp_pte(self.slots().of(page), bits));
            assert_eq!(was, 0, "PTE {place} is not none");
        }
        self.note(Event::SwapPtes(part.nr().get(), sharing));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        folio::Folio,
        pte::{
            pte,
            WRITE, //
        },
        sync::explore,
        unmap::{
            Layout,
            Mm, //
        }, //
    };
    use mm_batch::unmap::PteRun;

    /// Clears two PTEs of a folio whose first page is exclusive, and does more.
    fn cleared(then: impl FnOnce(&Walk<'_>, &Part<Walk<'_>>) + Copy + Send + Sync + 'static) {
        explore(move || {
            let folio = Folio::in_swap_cache(8, 2, Slots::new(64, &[0, 0], None));
            folio.map(2);
            folio.anon.set_exclusive(0);
            let mm = Mm::new(Layout::anonymous(2), &[pte(8, WRITE), pte(9, WRITE)]);
            mm.walk(&folio, 0, |walk| {
                let run = PteRun::longest(walk).clear();
                then(run.walk(), run.part());
            });
        });
    }

    #[test]
    #[should_panic(expected = "page 0 is exclusive, and swapped out")]
    fn an_exclusive_page_that_is_swapped_out_is_noticed() {
        // SAFETY: It is not, which is to be noticed.
        cleared(|walk, part| unsafe { walk.set_swp_ptes(part, Sharing::MaybeShared) });
    }

    #[test]
    #[should_panic(expected = "page 1 was not exclusive")]
    fn sharing_what_is_shared_is_noticed() {
        // SAFETY: It is not, which is to be noticed.
        cleared(|walk, part| unsafe { walk.clear_pages_anon_exclusive(part) });
    }

    #[test]
    #[should_panic(expected = "PTE 1 is not none")]
    fn an_entry_over_another_is_noticed() {
        cleared(|walk, part| {
            walk.folio.anon.clear_exclusive(0);
            walk.table().set(1, swp_pte(7, 0));
            // SAFETY: It is not, which is to be noticed.
            unsafe { walk.set_swp_ptes(part, Sharing::MaybeShared) };
        });
    }
}
