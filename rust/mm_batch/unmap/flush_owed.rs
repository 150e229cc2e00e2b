// SPDX-License-Identifier: GPL-2.0

//! What unmapping owes to a later TLB flush.
//!
//! ```text
//! unmap:    flush_tlb() --FlushOwed--> ClearedRun --commit--> UnmappedRun --> left with the task
//!                                          '--restore--> flush_before_restore()
//! reclaim:  taken from the task --FlushOwed--> Unmapped --> Waiting --> Collecting --> flushed
//! ```
//!
//! In between is C, where the task's own note (`current->tlb_ubc`) is all that there is of it.

#![deny(unsafe_code)]

use crate::brand::OfTask;
use core::marker::PhantomData;

/// A flush that this task may owe: until it is done, CPUs may go on using translations of what was
/// unmapped, and write by those that are of dirty PTEs.
///
/// It does not say of which pages, as one flush does for all. Who drops it forgets no flush: the
/// task still has its note.
///
/// # Invariants
///
/// What it stands for was flushed at once, or this task has a note of it, or there was no
/// translation of it (x86's PROT_NONE), for which C notes nothing.
#[derive(Debug)]
#[must_use = "somebody has to see to a flush that is owed"]
pub struct FlushOwed(OfTask);

impl FlushOwed {
    /// For a port that has noted a flush, or found one that is.
    ///
    /// # Safety
    ///
    /// This task has a note of it, which goes with the flush alone; or it was done; or no CPU can
    /// have a translation.
    #[allow(unsafe_code)]
    #[inline]
    pub unsafe fn noted() -> Self {
        // INVARIANT: By the function's requirement.
        Self(PhantomData)
    }

    /// Leaves it to whoever looks at the task's note: the next that is to write out or free a page.
    ///
    /// C: `try_to_unmap_flush_dirty()` and `try_to_unmap_flush()`, mm/rmap.c, 7.3.
    #[inline]
    pub fn left_with_task(self) {
        // By the invariants, it is there.
    }
}
