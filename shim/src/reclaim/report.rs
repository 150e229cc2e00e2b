// SPDX-License-Identifier: GPL-2.0

//! What became of a list, and what was counted.
//!
//! | here                | in 7.3, mm/vmscan.c                                                 |
//! |---------------------|---------------------------------------------------------------------|
//! | [`Stat`]            | `struct reclaim_stat`, `sc->nr_scanned`, `nr_reclaimed`             |
//! | [`Stat::pgrotate`]  | `PGROTATE_ANON`, `PGROTATE_FILE` of `shrink_inactive_list()`        |
//! | [`Charges`]         | what C counts by cgroup                                             |
//!
//! A list is of several cgroups where `MADV_PAGEOUT` made it. It is of one node, as its `struct
//! pglist_data` is: `reclaim_pages()` makes a list of each run of folios of one node, and an LRU list
//! is one node's. So what is counted of a list is counted by node, and [`Charges`] by both.
//!
//! Left out: whether a counter is of files or of anonymous memory; `nr_unqueued_dirty` and
//! `nr_congested`, which throttle; `NR_ANON_MAPPED` and `NR_FILE_MAPPED`, which rmap counts, and of
//! which a KUnit case asks.

use std::collections::BTreeMap;

/// How a folio ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Reclaimed.
    Reclaimed,
    /// Put back as it is.
    Kept,
    /// Put back to the active list.
    Activated,
    /// Poisoned, and left to memory_failure().
    Dropped,
}

/// The counters, in pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Stat {
    pub nr_scanned: u64,
    pub nr_reclaimed: u64,
    pub nr_activate: u64,
    pub nr_unmap_fail: u64,
    pub nr_lazyfree_fail: u64,
    pub nr_ref_keep: u64,
    pub nr_writeback: u64,
    pub nr_immediate: u64,
    pub nr_dirty: u64,
    /// `NR_VMSCAN_WRITE`.
    pub vmscan_write: u64,
}

impl Stat {
    /// `PGROTATE`, as `shrink_inactive_list()` has it.
    pub fn pgrotate(&self) -> u64 {
        self.nr_scanned - self.nr_reclaimed
    }
}

/// What is counted of one memory cgroup, in pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Charges {
    /// `PGACTIVATE`.
    pub activated: u64,
    /// `NR_VMSCAN_WRITE`.
    pub written: u64,
    /// They have left `NR_FILE_PAGES`, or `NR_SWAPCACHE`.
    pub uncached: u64,
    /// `PGLAZYFREED`.
    pub lazyfreed: u64,
    /// They are charged to it no more.
    pub uncharged: u64,
}

/// What was done, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A folio was locked for a batch.
    Collected(usize),
    /// A batch has ended, and what leaves it to be taken again is on the list.
    Ended,
    /// A folio goes back to the LRU lists, of a list that has batches.
    Back(usize),
    /// A dirty folio was unlocked, to wait.
    Waits(usize),
    /// So many folios that wait were to be flushed for.
    Flushed(usize),
    /// It was freed with others of its batch, all under their locks.
    Freed(usize),
    /// A folio was to be locked again.
    Retried(usize),
    /// A folio was to be written out.
    PagedOut(usize),
    /// It was written.
    Written(usize),
    /// So many pages of the last batch were taken back by faults: there are no more batches.
    TakenBack(u32),
}

/// A point between unlocking a folio and locking it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// It was unlocked just now.
    Unlocked,
    /// It is to be locked.
    Retried,
}

/// What is left when all is done.
#[derive(Debug)]
pub struct Report {
    /// How each folio ended.
    pub fates: BTreeMap<usize, Fate>,
    /// Those that went back to the LRU lists, in this order.
    pub back: Vec<usize>,
    /// The counters.
    pub stat: Stat,
    /// Those of cgroups.
    pub cgroups: BTreeMap<u8, Charges>,
    /// What was done.
    pub events: Vec<Event>,
    /// The flushes that were really made.
    pub flushes: usize,
}
