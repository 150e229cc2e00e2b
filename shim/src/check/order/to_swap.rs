// SPDX-License-Identifier: GPL-2.0

//! The order in which the PTEs of a run may become swap entries.
//!
//! The rules are those of the comment in `__folio_try_share_anon_rmap()`, include/linux/rmap.h, 7.3:
//!
//! * If any page of the run is exclusive, wherever it is, there is a full barrier, and behind it the
//!   test for pins; else there is neither.
//! * AnonExclusive is cleared behind that, and the entry is written behind a barrier. Neither is
//!   undone.
//! * Pages that are alike are shared and written at once.

use super::Event;
use mm_batch::to_swap::Sharing;

/// What was done last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// The slots were counted.
    Dup,
    /// It was asked for the first sub-batch.
    Asked,
    Ordered,
    /// And there is a pin.
    Pinned,
    /// And there is none.
    NotPinned,
    /// The mm is prepared, or the rest was asked for: the sub-batch is next.
    Next,
    Shared,
    OrderedBehind,
    /// The entries of the sub-batch were written.
    Written,
}

/// A run of PTEs whose slots are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ToSwap {
    /// In pages.
    nr: u32,
    place: Place,
    /// The sub-batch that was asked for last.
    sharing: Sharing,
    batch: u32,
    /// Pages whose entries are written.
    written: u32,
}

/// Where a run is after an event.
pub(super) enum Next {
    ToSwap(ToSwap),
    /// As before the slots were counted.
    Back,
    /// All entries are written, and the mappings have ended.
    Unmapped,
}

impl ToSwap {
    pub(super) fn new(nr: u32) -> Self {
        Self {
            nr,
            place: Place::Dup,
            sharing: Sharing::MaybeShared,
            batch: 0,
            written: 0,
        }
    }

    /// In pages.
    pub(super) fn nr(&self) -> u32 {
        self.nr
    }

    fn at(self, place: Place) -> Option<Next> {
        Some(Next::ToSwap(Self { place, ..self }))
    }

    /// `None` if the event may not come now.
    pub(super) fn next(self, event: Event) -> Option<Next> {
        let exclusive = self.sharing == Sharing::Exclusive;
        let any_exclusive = exclusive || self.batch < self.nr;
        match (self.place, event) {
            (
                Place::Dup | Place::Written,
                Event::SharingAsked {
                    at,
                    of,
                    sharing,
                    nr,
                },
            ) if at == self.written && at + of == self.nr && of != 0 && nr <= of => {
                let asked = Self {
                    sharing,
                    batch: nr,
                    ..self
                };
                asked.at(if self.place == Place::Dup {
                    Place::Asked
                } else {
                    Place::Next
                })
            }
            (Place::Asked, Event::Ordered) if any_exclusive => self.at(Place::Ordered),
            (Place::Ordered, Event::PinTested(true)) => self.at(Place::Pinned),
            (Place::Ordered, Event::PinTested(false)) => self.at(Place::NotPinned),
            (Place::Dup | Place::Asked | Place::Pinned | Place::NotPinned, Event::SwapPut(n))
                if n == self.nr =>
            {
                Some(Next::Back)
            }
            (Place::NotPinned, Event::Prepared(n)) if n == self.nr => self.at(Place::Next),
            (Place::Asked, Event::Prepared(n)) if !any_exclusive && n == self.nr => {
                self.at(Place::Next)
            }
            (Place::Next, Event::Shared(n)) if exclusive && n == self.batch => {
                self.at(Place::Shared)
            }
            (Place::Shared, Event::OrderedBehind) => self.at(Place::OrderedBehind),
            (place, Event::SwapPtes(n, sharing))
                if sharing == self.sharing
                    && n == self.batch
                    && place
                        == if exclusive {
                            Place::OrderedBehind
                        } else {
                            Place::Next
                        } =>
            {
                let written = Self {
                    written: self.written + n,
                    ..self
                };
                written.at(Place::Written)
            }
            (Place::Written, Event::Unmapped(n)) if self.written == self.nr && n == self.nr => {
                Some(Next::Unmapped)
            }
            _ => None,
        }
    }
}
