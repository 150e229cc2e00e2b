// SPDX-License-Identifier: GPL-2.0

//! Folios as a test wants them.
//!
//! Models nothing by itself: what each is of 7.3 says its own line.

/// What a folio is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mapping {
    /// The swap cache.
    Swap,
    /// A file of shmem.
    Shmem,
    /// Another file.
    File,
}

/// What becomes of a folio that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write {
    /// It is written when `pageout()` returns, as by zram.
    Done,
    /// It is being written.
    Begun,
    /// It is refused, as by zswap that may not fall back on a disk: `AOP_WRITEPAGE_ACTIVATE`.
    Refused,
    /// It fails.
    Failed,
    /// There is no room in one piece: the folio, of shmem, is split, and its first page written.
    Split,
}

/// A flag of a folio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Flag {
    /// It is being written.
    Writeback,
    /// A VMA of it is mlocked: `folio_test_mlocked()`.
    Mlocked,
    /// Its file is locked in memory, as by SHM_LOCK: `mapping_unevictable()`.
    Unevictable,
    /// It is on an LRU list, so not isolated yet: `folio_test_lru()`.
    Lru,
    /// `folio_contain_hwpoisoned_page()`.
    Poisoned,
    /// It was used: `FOLIOREF_KEEP`.
    Referenced,
    /// What maps it cannot be unmapped.
    Stuck,
    /// It is being written, and reclaim of a legacy cgroup waits for that: case 3 of
    /// `shrink_folio_list()`.
    WaitedFor,
    /// It may not be unlocked before it is flushed for, as a large one on arm64:
    /// `shrink_may_wait()`, by this series. (So it is, whatever this says, of what is not anonymous.)
    FlushedFirst,
    /// It has no slots yet, and there are none for it among those of a batch; by itself it gets some.
    /// (So it is of anonymous folios alone, whatever this says.)
    NoSlots,
    /// It has buffers, of its file system, and a reference of them: `folio_test_private()`.
    Private,
    /// `MADV_FREE` has given it up, so it has no slots: `folio_test_lazyfree()`. (So it is of anonymous
    /// folios alone, whatever this says.)
    Lazyfree,
    /// Somebody has a reference of it, and keeps it.
    Held,
}

/// A folio as a test wants it.
#[derive(Clone, Debug)]
pub struct Spec {
    /// What it is of.
    pub mapping: Mapping,
    /// Its pages.
    pub nr: u32,
    /// The bits of the PTE that maps it, if one does.
    pub pte: Option<u64>,
    /// Whether each CPU has a translation of it.
    pub translated: bool,
    /// Whether it is dirty, beyond its PTE.
    pub dirty: bool,
    /// Whether somebody has it locked.
    pub locked: bool,
    /// What is set of it from the beginning.
    pub flags: Vec<Flag>,
    /// What becomes of it when it is written.
    pub write: Write,
    /// The memory cgroup that it is charged to.
    pub cgroup: u8,
}

impl Spec {
    pub(super) fn is_lazyfree(&self) -> bool {
        self.mapping == Mapping::Swap && self.flags.contains(&Flag::Lazyfree)
    }

    pub(super) fn has_no_slots(&self) -> bool {
        let no_slots = self.flags.contains(&Flag::NoSlots);
        self.is_lazyfree() || self.mapping == Mapping::Swap && no_slots
    }

    /// A dirty page that is mapped nowhere, and that nothing is known of.
    pub fn page_of(mapping: Mapping) -> Self {
        Self {
            mapping,
            nr: 1,
            pte: None,
            translated: false,
            dirty: true,
            locked: false,
            flags: Vec::new(),
            write: Write::Done,
            cgroup: 0,
        }
    }
}
