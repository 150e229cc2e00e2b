// SPDX-License-Identifier: GPL-2.0

//! The order in which unmapping a run may do things, as a log that objects.
//!
//! What happens wholly under the page table lock has no interleavings to explore, but an order that
//! matters all the same: to code that runs once the lock is gone, or that does not take it. The
//! rules are those of `try_to_unmap_one()`, mm/rmap.c, 7.3:
//!
//! * PTEs are cleared first, then the TLB is flushed or the flush noted, then the dirty bit is
//!   handed on: before the flush it may still change (the comment above `should_defer_flush()`).
//! * `hiwater_rss` is told before rss goes down (include/linux/mm.h).
//! * Counters, rmap and references, in this order: a folio without references may be gone, and one
//!   without mappings may be discarded.
//! * What was committed is not restored, and a folio is made swap-backed once its PTEs are back.
//! * No translation is left anywhere when PTEs come back, which may do so as a group (arm64's break
//!   before make; C does without).
//! * Swap entries are counted in their slots, and the mm is on the list that swapoff looks through,
//!   before one is written (mm/swapfile.c).
//! * AnonExclusive is cleared behind a test for pins, and the entry is written behind a barrier (the
//!   comment in `__folio_try_share_anon_rmap()`, include/linux/rmap.h). Neither is undone.
//!
//! Left out: mmu notifiers, which bracket the whole walk, and mlock.

use mm_batch::to_swap::Sharing;

mod to_swap;
use to_swap::{
    Next,
    ToSwap as Run, //
};

/// A thing that was done, with pages where there are some.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// PTEs were cleared.
    Cleared(u32),
    /// Their translations are gone, or will be by `try_to_unmap_flush()`.
    Flushed(u32),
    /// The folio was marked dirty.
    MarkedDirty,
    /// PTEs got a uffd-wp marker.
    Markers(u32),
    /// `update_hiwater_rss()`.
    Hiwater,
    /// Pages were taken from a counter.
    Counted(u32),
    /// Mappings were taken away.
    RmapRemoved(u32),
    /// References were dropped.
    RefsPut(u32),
    /// No TLB has a translation of PTEs that are about to come back.
    FlushedAgain(u32),
    /// Entries were counted in their slots.
    SwapDup(u32),
    /// They were taken back.
    SwapPut(u32),
    /// It was found out whether the folio is pinned.
    PinTested,
    /// The mm is on swapoff's list.
    Mmlist,
    /// Swap entries were counted in the mm.
    SwapCounted(u32),
    /// AnonExclusive was cleared.
    Shared(u32),
    /// `smp_mb__after_atomic()`.
    OrderedBehind,
    /// PTEs became swap entries of pages that were so.
    SwapPtes(u32, Sharing),
    /// A folio was not what it can be.
    Warned,
    /// PTEs were mapped again.
    Restored(u32),
    /// The folio was made swap-backed.
    Swapbacked,
}

/// Where a run is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Mapped,
    Cleared(u32),
    Flushed(u32),
    FlushedAgain(u32),
    ToSwap(Run),
    Hiwater(u32),
    Counted(u32),
    Unmapped(u32),
    Restored,
}

/// The log of one walk.
#[derive(Debug, Default)]
pub struct Log {
    stage: Stage,
    events: Vec<Event>,
}

impl Log {
    /// Notes an event.
    ///
    /// # Panics
    ///
    /// If it may not come now, or is about another number of pages.
    pub fn note(&mut self, event: Event) {
        use Stage::*;
        self.stage = match (self.stage, event) {
            (Mapped | Restored, Event::Cleared(nr)) => Cleared(nr),
            (Cleared(nr), Event::Flushed(n)) if n == nr => Flushed(nr),
            (Flushed(nr), Event::MarkedDirty) => Flushed(nr),
            (Flushed(nr), Event::Markers(n)) if n == nr => Flushed(nr),
            (Flushed(nr), Event::Hiwater) => Hiwater(nr),
            (Hiwater(nr), Event::Counted(n)) if n == nr => Counted(nr),
            (Counted(nr), Event::RmapRemoved(n)) if n == nr => Unmapped(nr),
            (Unmapped(nr), Event::RefsPut(n)) if n == nr => Mapped,
            (Flushed(nr), Event::FlushedAgain(n)) if n == nr => FlushedAgain(nr),
            (FlushedAgain(nr), Event::Restored(n)) if n == nr => Restored,
            (Restored, Event::Swapbacked) => Restored,
            (Mapped, Event::Warned) => Mapped,
            (Flushed(nr), Event::SwapDup(n)) if n == nr => ToSwap(Run::new(nr)),
            (ToSwap(run), event) => match run.next(event) {
                Some(Next::ToSwap(run)) => ToSwap(run),
                Some(Next::Back) => Flushed(run.nr()),
                Some(Next::Written) => Hiwater(run.nr()),
                None => self.object(event),
            },
            (_, event) => self.object(event),
        };
        self.events.push(event);
    }

    fn object(&self, event: Event) -> ! {
        panic!(
            "{event:?} may not follow {:?}: {:?}",
            self.stage, self.events
        )
    }

    /// What was done so far.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// The lock is about to go.
    ///
    /// # Panics
    ///
    /// If a run is neither unmapped nor mapped.
    pub fn unlock(&self) {
        assert!(
            matches!(self.stage, Stage::Mapped | Stage::Restored),
            "the page table lock goes while a run is {:?}",
            self.stage
        );
    }
}

#[cfg(test)]
mod tests {
    use super::{
        Event::*,
        *, //
    };

    fn log(events: &[Event]) -> Log {
        let mut log = Log::default();
        for &event in events {
            log.note(event);
        }
        log
    }

    #[test]
    fn what_c_does_is_in_order() {
        let all = [
            Cleared(4),
            Flushed(4),
            MarkedDirty,
            Markers(4),
            Hiwater,
            Counted(4),
            RmapRemoved(4),
            RefsPut(4),
        ];
        log(&all).unlock();
        let kept = [Cleared(1), Flushed(1), FlushedAgain(1), Restored(1)];
        log(&kept).unlock();
        log(&[&kept[..], &[Swapbacked]].concat()).unlock();
    }

    #[test]
    #[should_panic(expected = "MarkedDirty may not follow Cleared(2)")]
    fn a_dirty_bit_before_the_flush_is_noticed() {
        log(&[Cleared(2), MarkedDirty]);
    }

    #[test]
    #[should_panic(expected = "MarkedDirty may not follow Hiwater(1)")]
    fn a_dirty_bit_behind_the_end_is_noticed() {
        log(&[Cleared(1), Flushed(1), Hiwater, MarkedDirty]);
    }

    #[test]
    #[should_panic(expected = "Swapbacked may not follow Mapped")]
    fn a_folio_that_is_made_swapbacked_untouched_is_noticed() {
        log(&[Swapbacked]);
    }

    #[test]
    #[should_panic(expected = "Counted(1) may not follow Flushed(1)")]
    fn a_counter_before_hiwater_is_noticed() {
        log(&[Cleared(1), Flushed(1), Counted(1)]);
    }

    #[test]
    #[should_panic(expected = "RefsPut(1) may not follow Counted(1)")]
    fn references_before_rmap_are_noticed() {
        log(&[Cleared(1), Flushed(1), Hiwater, Counted(1), RefsPut(1)]);
    }

    #[test]
    #[should_panic(expected = "Flushed(1) may not follow Cleared(2)")]
    fn a_flush_that_is_short_is_noticed() {
        log(&[Cleared(2), Flushed(1)]);
    }

    #[test]
    #[should_panic(expected = "Hiwater may not follow Cleared(1)")]
    fn a_flush_that_is_left_out_is_noticed() {
        log(&[Cleared(1), Hiwater]);
    }

    #[test]
    #[should_panic(expected = "Markers(1) may not follow Flushed(2)")]
    fn markers_of_fewer_pages_are_noticed() {
        log(&[Cleared(2), Flushed(2), Markers(1)]);
    }

    #[test]
    #[should_panic(expected = "Counted(1) may not follow Hiwater(2)")]
    fn a_counter_of_fewer_pages_is_noticed() {
        log(&[Cleared(2), Flushed(2), Hiwater, Counted(1)]);
    }

    #[test]
    #[should_panic(expected = "RmapRemoved(1) may not follow Counted(2)")]
    fn rmap_of_fewer_pages_is_noticed() {
        log(&[Cleared(2), Flushed(2), Hiwater, Counted(2), RmapRemoved(1)]);
    }

    #[test]
    #[should_panic(expected = "RefsPut(1) may not follow Unmapped(2)")]
    fn references_of_fewer_pages_are_noticed() {
        let events = [
            Cleared(2),
            Flushed(2),
            Hiwater,
            Counted(2),
            RmapRemoved(2),
            RefsPut(1),
        ];
        log(&events);
    }

    #[test]
    #[should_panic(expected = "Restored(1) may not follow FlushedAgain(2)")]
    fn a_restore_that_is_short_is_noticed() {
        log(&[Cleared(2), Flushed(2), FlushedAgain(2), Restored(1)]);
    }

    #[test]
    #[should_panic(expected = "Restored(2) may not follow Flushed(2)")]
    fn a_restore_with_translations_left_is_noticed() {
        log(&[Cleared(2), Flushed(2), Restored(2)]);
    }

    #[test]
    #[should_panic(expected = "FlushedAgain(1) may not follow Flushed(2)")]
    fn translations_that_are_left_are_noticed() {
        log(&[Cleared(2), Flushed(2), FlushedAgain(1)]);
    }

    #[test]
    #[should_panic(expected = "Swapbacked may not follow Flushed(1)")]
    fn swapbacked_before_the_restore_is_noticed() {
        log(&[Cleared(1), Flushed(1), Swapbacked]);
    }

    #[test]
    #[should_panic(expected = "the page table lock goes while a run is Flushed(1)")]
    fn a_lock_that_goes_too_early_is_noticed() {
        log(&[Cleared(1), Flushed(1)]).unlock();
    }

    #[test]
    #[should_panic(expected = "the page table lock goes while a run is Cleared(1)")]
    fn a_lock_that_goes_before_the_flush_is_noticed() {
        log(&[Cleared(1)]).unlock();
    }

    #[test]
    #[should_panic(expected = "the page table lock goes while a run is Unmapped(1)")]
    fn a_lock_that_goes_before_the_references_is_noticed() {
        log(&[Cleared(1), Flushed(1), Hiwater, Counted(1), RmapRemoved(1)]).unlock();
    }
}
