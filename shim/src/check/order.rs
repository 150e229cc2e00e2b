// SPDX-License-Identifier: GPL-2.0

//! The order in which unmapping a run may do things, as a log that objects.
//!
//! What happens wholly under the page table lock has no interleavings to explore, but an order that
//! matters all the same: to code that runs once the lock is gone, or that does not take it. So each
//! call of the port is noted, but for reads of PTEs, and has one place in a run and comes there once. The
//! rules are those of `try_to_unmap_one()`, mm/rmap.c, 7.3:
//!
//! * PTEs are cleared, and flushed for, first; then the dirty bit is handed on. Whether the folio is in
//!   the swap cache is asked behind that (`ttu_anon_folio()`), and a warning comes behind the answer.
//! * Whether a lazyfree folio may be discarded: a full barrier, references, a read barrier, the dirty
//!   flag (`ttu_anon_lazyfree_folio()`).
//! * Swap entries are counted in their slots, and the mm is on the list that swapoff looks through,
//!   before one is written (mm/swapfile.c): `to_swap`.
//! * The mappings end once the PTEs are what they are to be: a folio without references may be gone,
//!   and one without mappings may be discarded.
//! * What was committed is not restored, and a folio is made swap-backed once its PTEs are back.
//! * No translation is left anywhere when PTEs come back, which may do so as a group (arm64's break
//!   before make; C does without).
//!
//! A walk unmaps one run: behind its end nothing comes.
//!
//! Left out: mmu notifiers, which bracket the whole walk, and mlock.

use mm_batch::to_swap::Sharing;

mod to_swap;
use to_swap::{
    Next,
    ToSwap as Run, //
};

/// What is asked of a folio or its VMA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flag {
    /// `folio_test_swapcache()`
    Swapcache,
    /// `folio_test_dirty()`
    Dirty,
    /// `VM_DROPPABLE`
    Droppable,
}

/// A thing that was done, with pages where there are some.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Something was asked, and this is the answer.
    Asked(Flag, bool),
    /// A folio was not what it can be.
    Warned,
    /// PTEs were cleared; their translations are gone, or will be by `try_to_unmap_flush()`.
    Cleared(u32),
    /// The folio was marked dirty.
    MarkedDirty,
    /// `smp_mb()`.
    Ordered,
    /// References beyond mappings were counted.
    RefsCounted,
    /// `smp_rmb()`.
    ReadOrdered,
    /// What is to be known of the mappings was left in the PTEs, if anything is.
    LeftBehind(u32),
    /// Counters, rmap and references do not count the mappings any more.
    Unmapped(u32),
    /// No TLB has a translation of PTEs that are about to come back.
    FlushedAgain(u32),
    /// PTEs were mapped again.
    Restored(u32),
    /// The folio was made swap-backed.
    MadeSwapbacked,
    /// Entries were counted in their slots.
    SwapDup(u32),
    /// They could not be.
    NotDup(u32),
    /// They were taken back.
    SwapPut(u32),
    /// Of the pages from that one of the run on, so many, it was asked whether they are exclusive.
    SharingAsked {
        /// The first, in pages from the run's.
        at: u32,
        /// Those asked for.
        of: u32,
        /// What the first is.
        sharing: Sharing,
        /// How many are so.
        nr: u32,
    },
    /// It was found out whether the folio is pinned.
    PinTested(bool),
    /// The mm is on swapoff's list, and swap entries are counted in it.
    Prepared(u32),
    /// AnonExclusive was cleared.
    Shared(u32),
    /// `smp_mb__after_atomic()`.
    OrderedBehind,
    /// PTEs became swap entries of pages that were so.
    SwapPtes(u32, Sharing),
}

/// Where a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Mapped,
    Cleared(u32),
    /// And the dirty bit is handed on.
    Settled(u32),
    /// May it be discarded?
    NotInSwapcache(u32),
    Ordered(u32),
    RefsCounted(u32),
    ReadOrdered(u32),
    Dirty(u32),
    Checked(u32),
    /// May its entries be counted?
    InSwapcache(u32),
    ToSwap(Run),
    /// They may not.
    Refused(u32),
    FlushedAgain {
        nr: u32,
        redirtied: bool,
    },
    /// Mapped again, and may be swap-backed again.
    Redirtied,
    /// The PTEs are what they are to be.
    Final(u32),
    Ended,
}

/// The log of one walk.
#[derive(Debug)]
pub struct Log {
    stage: Stage,
    events: Vec<Event>,
}

impl Default for Log {
    fn default() -> Self {
        Self {
            stage: Stage::Mapped,
            events: Vec::new(),
        }
    }
}

impl Stage {
    /// `None` if the event may not come now, or is about another number of pages.
    fn next(self, event: Event) -> Option<Self> {
        use Stage::*;
        Some(match (self, event) {
            (Mapped, Event::Cleared(nr)) => Cleared(nr),
            (Cleared(nr), Event::MarkedDirty) => Settled(nr),

            (Cleared(nr) | Settled(nr), Event::Asked(Flag::Swapcache, is)) => {
                if is {
                    InSwapcache(nr)
                } else {
                    NotInSwapcache(nr)
                }
            }
            (InSwapcache(nr) | NotInSwapcache(nr), Event::Warned) => Refused(nr),

            (NotInSwapcache(nr), Event::Ordered) => Ordered(nr),
            (Ordered(nr), Event::RefsCounted) => RefsCounted(nr),
            (RefsCounted(nr), Event::ReadOrdered) => ReadOrdered(nr),
            (ReadOrdered(nr), Event::Asked(Flag::Dirty, true)) => Dirty(nr),
            (ReadOrdered(nr), Event::Asked(Flag::Dirty, false)) => Checked(nr),
            (Dirty(nr), Event::Asked(Flag::Droppable, _)) => Checked(nr),

            (InSwapcache(nr), Event::SwapDup(n)) if n == nr => ToSwap(Run::new(nr)),
            (InSwapcache(nr), Event::NotDup(n)) if n == nr => Refused(nr),
            (ToSwap(run), event) => match run.next(event)? {
                Next::ToSwap(run) => ToSwap(run),
                Next::Back => Refused(run.nr()),
                Next::Unmapped => Ended,
            },

            (Cleared(nr) | Settled(nr) | Refused(nr), Event::FlushedAgain(n)) if n == nr => {
                FlushedAgain {
                    nr,
                    redirtied: false,
                }
            }
            (Checked(nr), Event::FlushedAgain(n)) if n == nr => FlushedAgain {
                nr,
                redirtied: true,
            },
            (FlushedAgain { nr, redirtied }, Event::Restored(n)) if n == nr => {
                if redirtied {
                    Redirtied
                } else {
                    Ended
                }
            }
            (Redirtied, Event::MadeSwapbacked) => Ended,

            (Cleared(nr) | Settled(nr) | Checked(nr), Event::LeftBehind(n)) if n == nr => Final(nr),
            (Final(nr), Event::Unmapped(n)) if n == nr => Ended,
            _ => return None,
        })
    }

    /// Whether the lock may go: the run is as it was, or unmapped.
    fn is_over(self) -> bool {
        matches!(self, Self::Mapped | Self::Redirtied | Self::Ended)
    }
}

impl Log {
    /// Notes an event.
    ///
    /// # Panics
    ///
    /// If it may not come now, or is about another number of pages.
    pub fn note(&mut self, event: Event) {
        self.stage = self.stage.next(event).unwrap_or_else(|| {
            panic!(
                "{event:?} may not follow {:?}: {:?}",
                self.stage, self.events
            )
        });
        self.events.push(event);
    }

    /// What was done so far.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// The lock is about to go.
    ///
    /// # Panics
    ///
    /// If a run is neither unmapped nor mapped, or a folio was not complained of.
    pub fn unlock(&self) {
        assert!(
            self.stage.is_over(),
            "the page table lock goes while a run is {:?}",
            self.stage
        );
    }
}

#[cfg(test)]
mod tests;
