// SPDX-License-Identifier: GPL-2.0

//! Page table entries as words, and what an architecture's are like.

use core::fmt::Debug;

/// A page table entry, as the word that it is (C: `pte_val()`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Pte(u64);

impl Pte {
    /// For ports: the entry with the bits `raw`. It maps nothing by being made.
    #[inline]
    pub const fn new(raw: u64) -> Self {
        Self(raw)
    }

    /// Its bits.
    #[inline]
    pub const fn raw(self) -> u64 {
        self.0
    }

    /// The entry `nr` pages on, modulo 2^64, where one page is `step` ([`PteFormat::step`]).
    #[inline]
    pub(crate) const fn advanced(self, step: u64, nr: u64) -> Self {
        Self(self.0.wrapping_add(step.wrapping_mul(nr)))
    }
}

/// Bits in which the PTEs of a run must not differ, beyond those that always count.
///
/// C: `FPB_RESPECT_*`, mm/internal.h, 7.3.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Respect {
    /// `FPB_RESPECT_WRITE`: the write bit.
    pub write: bool,
    /// `FPB_RESPECT_SOFT_DIRTY`: the soft-dirty bit.
    pub soft_dirty: bool,
}

impl Respect {
    /// Nothing beyond what always counts.
    pub const NOTHING: Self = Self {
        write: false,
        soft_dirty: false,
    };

    /// For a run that may be restored: `set_ptes()` gives all its PTEs the bits of the first, so
    /// they must have the write and the soft-dirty bit in common.
    pub const TO_RESTORE: Self = Self {
        write: true,
        soft_dirty: true,
    };

    /// The bits that do not count, where an architecture's PTEs have these masks: young and dirty
    /// never count, the others do if they are respected.
    pub const fn ignored(self, young: u64, dirty: u64, write: u64, soft_dirty: u64) -> u64 {
        let mut ignored = young | dirty;
        if !self.write {
            ignored |= write;
        }
        if !self.soft_dirty {
            ignored |= soft_dirty;
        }
        ignored
    }
}

/// How an architecture's PTEs are compared and counted on.
#[derive(Clone, Copy, Debug)]
pub struct PteFormat {
    /// The bits that do not count.
    ///
    /// C: what `__pte_batch_clear_ignored()`, mm/internal.h, 7.3, makes the same in all PTEs.
    pub ignored: u64,
    /// What to add to the word for the next page frame, modulo 2^64.
    ///
    /// C: `pte_advance_pfn(pte, 1)`, include/linux/pgtable.h, 7.3; negative where x86 inverts the
    /// frame of a PROT_NONE entry.
    pub step: u64,
}

/// What an architecture's PTEs are like: arithmetic on the word.
///
/// # Safety
///
/// The answer is what the C functions do that [`PteFormat`] names. Unsafe code relies on it for
/// where a run ends, and for the page frames of a part.
pub unsafe trait PteArch: Debug {
    /// The format of a PTE's run, in which this much counts.
    fn format(pte: Pte, respect: Respect) -> PteFormat;
}
