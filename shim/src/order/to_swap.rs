// SPDX-License-Identifier: GPL-2.0

//! The order in which the PTEs of a run may become swap entries.

use super::Event;
use mm_batch::to_swap::Sharing;

/// A run of PTEs whose slots are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ToSwap {
    nr: u32,
    pin_tested: bool,
    on_mmlist: bool,
    counted: bool,
    /// Pages whose AnonExclusive is cleared, while their entries are not written.
    shared: u32,
    /// Behind their clearing.
    ordered: bool,
    written: u32,
}

/// Where a run is after an event.
pub(super) enum Next {
    ToSwap(ToSwap),
    /// As before the slots were counted.
    Back,
    /// All entries are written.
    Written,
}

impl ToSwap {
    pub(super) fn new(nr: u32) -> Self {
        Self {
            nr,
            pin_tested: false,
            on_mmlist: false,
            counted: false,
            shared: 0,
            ordered: false,
            written: 0,
        }
    }

    /// In pages.
    pub(super) fn nr(&self) -> u32 {
        self.nr
    }

    /// Nothing is final yet. (Nor is an entry written: that comes behind the list.)
    fn untouched(&self) -> bool {
        !self.on_mmlist && !self.counted && self.shared == 0
    }

    /// Whether entries may be written for `n` pages that were shared so.
    fn may_write(&self, n: u32, sharing: Sharing) -> bool {
        let shared = match sharing {
            Sharing::Exclusive => self.shared == n && self.ordered,
            Sharing::MaybeShared => self.shared == 0,
        };
        shared && self.on_mmlist && self.written + n <= self.nr
    }

    /// `None` if the event may not come now.
    pub(super) fn next(self, event: Event) -> Option<Next> {
        let left = self.nr - self.written;
        Some(Next::ToSwap(match event {
            Event::SwapPut(n) if n == self.nr && self.untouched() => return Some(Next::Back),
            Event::PinTested if self.untouched() => Self {
                pin_tested: true,
                ..self
            },
            Event::Mmlist if self.untouched() => Self {
                on_mmlist: true,
                ..self
            },
            Event::SwapCounted(n) if n == self.nr && !self.counted && self.written == 0 => Self {
                counted: true,
                ..self
            },
            Event::Shared(n) if self.pin_tested && self.shared == 0 && n <= left => Self {
                shared: n,
                ordered: false,
                ..self
            },
            Event::OrderedBehind if self.shared != 0 => Self {
                ordered: true,
                ..self
            },
            Event::SwapPtes(n, sharing) if self.may_write(n, sharing) => Self {
                shared: 0,
                written: self.written + n,
                ..self
            },
            Event::Hiwater if self.counted && self.written == self.nr => {
                return Some(Next::Written)
            }
            _ => return None,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use super::{
        super::{
            Event::*,
            Log, //
        },
        Sharing::*, //
    };

    /// What was done to four pages up to here, and then `events`.
    fn swapped(events: &[Event]) -> Log {
        let mut log = Log::default();
        let before = [Cleared(4), Flushed(4), MarkedDirty, SwapDup(4)];
        for &event in before.iter().chain(events) {
            log.note(event);
        }
        log
    }

    #[test]
    fn what_c_does_for_a_run_is_in_order() {
        let mixed = [
            PinTested,
            Mmlist,
            SwapCounted(4),
            Shared(1),
            OrderedBehind,
            SwapPtes(1, Exclusive),
            SwapPtes(2, MaybeShared),
            Shared(1),
            OrderedBehind,
            SwapPtes(1, Exclusive),
            Hiwater,
            Counted(4),
            RmapRemoved(4),
            RefsPut(4),
        ];
        swapped(&mixed).unlock();
        swapped(&[SwapPut(4), FlushedAgain(4), Restored(4)]).unlock();
        swapped(&[PinTested, SwapPut(4), FlushedAgain(4), Restored(4)]).unlock();
    }

    #[test]
    #[should_panic(expected = "SwapPtes(4, MaybeShared) may not follow ToSwap")]
    fn entries_of_an_mm_that_swapoff_does_not_find_are_noticed() {
        swapped(&[SwapCounted(4), SwapPtes(4, MaybeShared)]);
    }

    #[test]
    #[should_panic(expected = "SwapPtes(1, Exclusive) may not follow ToSwap")]
    fn a_barrier_of_an_earlier_sub_batch_is_not_taken_for_this_ones() {
        let first = [PinTested, Mmlist, SwapCounted(4), Shared(1), OrderedBehind];
        let then = [SwapPtes(1, Exclusive), Shared(1), SwapPtes(1, Exclusive)];
        swapped(&[&first[..], &then].concat());
    }

    #[test]
    #[should_panic(expected = "SwapDup(3) may not follow Flushed(4)")]
    fn slots_that_are_miscounted_are_noticed() {
        let mut log = Log::default();
        for event in [Cleared(4), Flushed(4), SwapDup(3)] {
            log.note(event);
        }
    }

    #[test]
    #[should_panic(expected = "Hiwater may not follow ToSwap")]
    fn entries_that_are_not_counted_are_noticed() {
        swapped(&[Mmlist, SwapPtes(4, MaybeShared), Hiwater]);
    }

    #[test]
    #[should_panic(expected = "SwapCounted(3) may not follow ToSwap")]
    fn entries_that_are_miscounted_are_noticed() {
        swapped(&[Mmlist, SwapCounted(3)]);
    }

    #[test]
    #[should_panic(expected = "SwapCounted(4) may not follow ToSwap")]
    fn a_counter_behind_an_entry_is_noticed() {
        swapped(&[Mmlist, SwapPtes(1, MaybeShared), SwapCounted(4)]);
    }

    #[test]
    #[should_panic(expected = "PinTested may not follow ToSwap")]
    fn a_test_for_pins_behind_the_counter_is_noticed() {
        swapped(&[Mmlist, SwapCounted(4), PinTested]);
    }

    #[test]
    #[should_panic(expected = "Shared(1) may not follow ToSwap")]
    fn sharing_before_the_entries_of_what_was_shared_is_noticed() {
        swapped(&[PinTested, Mmlist, SwapCounted(4), Shared(1), Shared(1)]);
    }

    #[test]
    #[should_panic(expected = "Shared(4) may not follow ToSwap")]
    fn sharing_without_a_test_for_pins_is_noticed() {
        swapped(&[Mmlist, SwapCounted(4), Shared(4)]);
    }

    #[test]
    #[should_panic(expected = "SwapPtes(4, Exclusive) may not follow ToSwap")]
    fn an_entry_without_a_barrier_in_front_is_noticed() {
        swapped(&[
            PinTested,
            Mmlist,
            SwapCounted(4),
            Shared(4),
            SwapPtes(4, Exclusive),
        ]);
    }

    #[test]
    #[should_panic(expected = "SwapPtes(4, MaybeShared) may not follow ToSwap")]
    fn an_entry_that_says_shared_of_what_was_not_is_noticed() {
        swapped(&[
            PinTested,
            Mmlist,
            Shared(4),
            OrderedBehind,
            SwapPtes(4, MaybeShared),
        ]);
    }

    #[test]
    #[should_panic(expected = "Hiwater may not follow ToSwap")]
    fn entries_that_are_missing_are_noticed() {
        swapped(&[Mmlist, SwapCounted(4), SwapPtes(3, MaybeShared), Hiwater]);
    }

    #[test]
    #[should_panic(expected = "SwapPtes(2, MaybeShared) may not follow ToSwap")]
    fn more_entries_than_ptes_are_noticed() {
        swapped(&[Mmlist, SwapPtes(3, MaybeShared), SwapPtes(2, MaybeShared)]);
    }

    #[test]
    #[should_panic(expected = "SwapPut(4) may not follow ToSwap")]
    fn counts_put_back_behind_an_entry_are_noticed() {
        swapped(&[Mmlist, SwapPtes(1, MaybeShared), SwapPut(4)]);
    }

    #[test]
    #[should_panic(expected = "SwapPut(4) may not follow ToSwap")]
    fn counts_put_back_behind_sharing_are_noticed() {
        swapped(&[PinTested, Shared(1), SwapPut(4)]);
    }

    #[test]
    #[should_panic(expected = "SwapPut(4) may not follow ToSwap")]
    fn counts_put_back_behind_the_counter_are_noticed() {
        swapped(&[SwapCounted(4), SwapPut(4)]);
    }

    #[test]
    #[should_panic(expected = "SwapPut(3) may not follow ToSwap")]
    fn fewer_counts_put_back_are_noticed() {
        swapped(&[SwapPut(3)]);
    }

    #[test]
    #[should_panic(expected = "FlushedAgain(4) may not follow ToSwap")]
    fn counts_that_stay_when_the_run_is_restored_are_noticed() {
        swapped(&[FlushedAgain(4)]);
    }

    #[test]
    #[should_panic(expected = "the page table lock goes while a run is ToSwap")]
    fn a_lock_that_goes_while_slots_are_counted_is_noticed() {
        swapped(&[]).unlock();
    }

    #[test]
    #[should_panic(expected = "Shared(5) may not follow ToSwap")]
    fn more_shared_than_the_run_has_is_noticed() {
        swapped(&[PinTested, Mmlist, SwapCounted(4), Shared(5)]);
    }
}
