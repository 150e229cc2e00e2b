// SPDX-License-Identifier: GPL-2.0

//! What became of a list, and what was counted.
//!
//! | here                | in 7.3, mm/vmscan.c                                                 |
//! |---------------------|---------------------------------------------------------------------|
//! | [`Stat`]            | `struct reclaim_stat`, `sc->nr_scanned`, `nr_reclaimed`              |
//! | [`Stat::pgrotate`]  | `PGROTATE_ANON`, `PGROTATE_FILE` of `shrink_inactive_list()`        |
//!
//! Left out: whether a counter is of files or of anonymous memory, and whose memcg's.

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

/// What was done, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A dirty folio was unlocked, to wait.
    Waits(usize),
    /// So many folios that wait were to be flushed for.
    Flushed(usize),
    /// It was freed with its batch, under its lock.
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
    /// The counters.
    pub stat: Stat,
    /// What was done.
    pub events: Vec<Event>,
    /// The flushes that were really made.
    pub flushes: usize,
}
