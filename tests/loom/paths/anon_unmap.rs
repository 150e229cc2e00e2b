// SPDX-License-Identifier: GPL-2.0

//! `anon_unmap` against those who pin the folio or write to it meanwhile; others are in [`others`], and runs of
//! more than one kind of page in [`mixed`].
//!
//! The protocol is that of the comment in `__folio_try_share_anon_rmap()`, include/linux/rmap.h, 7.3:
//! (A1) to (A4) are in the transaction, (B1) to (B5) in the shim's [`pin_fast`]. In every execution:
//! a page that is pinned is exclusive; a run that is kept is what it was; all counts add up.

use mm_batch::anon_unmap::unmap_run;
use mm_shim::{
    fault::FolioLock,
    folio::Folio,
    gup::pin_fast,
    model::{
        check,
        Bound,
        Outcomes, //
    },
    pte::{
        pte,
        swp_pte,
        DIRTY,
        PRESENT,
        PROT_NONE,
        SOFT_DIRTY,
        SWP_EXCLUSIVE,
        SWP_SOFT_DIRTY,
        SWP_UFFD,
        UFFD_WP,
        WRITE,
        YOUNG, //
    },
    swap::Slots,
    sync::{
        thread,
        Arc, //
    },
    unmap::{
        Layout,
        Mm, //
    }, //
};

mod mixed;
mod others;

const PFN: usize = 8;
const SLOT: usize = 64;

const SWAPPED: &str = "swapped out";
const KEPT: &str = "kept";
const PINNED: &str = "kept for its pin";

/// A folio in the swap cache, mapped whole: its pages by PTEs with these bits, exclusive or not.
struct Anon {
    mm: Mm,
    folio: Folio,
    lock: FolioLock,
    pages: &'static [(u64, bool)],
}

/// Writable, so exclusive.
const WRITABLE: &[(u64, bool)] = &[(WRITE, true), (WRITE, true)];
/// Write-protected by whoever wants to know of writes, and exclusive all the same.
const READ_ONLY: &[(u64, bool)] = &[(SOFT_DIRTY | UFFD_WP, true), (SOFT_DIRTY | UFFD_WP, true)];
/// Both were shared by a fork, and one is the mm's alone again.
const MIXED: &[(u64, bool)] = &[(0, true), (0, false)];
const SHARED: &[(u64, bool)] = &[(0, false), (0, false)];

impl Anon {
    fn new(pages: &'static [(u64, bool)], most: Option<u32>) -> Self {
        let nr = pages.len();
        let folio = Folio::in_swap_cache(PFN, nr, Slots::new(SLOT, &vec![0; nr], most));
        folio.map(nr);
        let mut words = Vec::new();
        for (page, &(bits, exclusive)) in pages.iter().enumerate() {
            words.push(pte(PFN + page, bits));
            if exclusive {
                folio.anon.set_exclusive(page);
            }
        }
        Self {
            mm: Mm::new(Layout::anonymous(nr), &words),
            folio,
            lock: FolioLock::default(),
            pages,
        }
    }

    fn unmap(&self) -> bool {
        let _locked = self.lock.lock();
        let (outcome, _) = self.mm.walk(&self.folio, 0, |walk| unmap_run(walk));
        outcome.is_ok()
    }

    /// GUP-fast, which keeps its pin.
    fn pin(&self, index: usize, write: bool) -> bool {
        pin_fast(&self.mm.table, index, &self.folio, write).is_some()
    }

    /// Counts, with so many references of others.
    fn assert_counts(&self, swapped: bool, others: i32) {
        let nr = self.pages.len() as i32;
        let mapped = if swapped { 0 } else { nr };
        let slots = self.folio.swap.as_ref().expect("it is in the swap cache");
        assert_eq!(slots.counts(), vec![u32::from(swapped); self.pages.len()]);
        assert_eq!(self.mm.rss().pages, i64::from(mapped));
        assert_eq!(self.mm.rss().swapents, i64::from(nr - mapped));
        assert_eq!(self.folio.mapcount(), mapped);
        assert_eq!(self.folio.ref_count(), 1 + nr + mapped + others);
    }

    /// All is swapped out, and says of each page what it was; or nothing is, and all is as it was,
    /// but for young and dirty.
    fn assert_all_or_nothing(&self, swapped: bool) {
        for (i, &(bits, exclusive)) in self.pages.iter().enumerate() {
            let bit = |there, bit| if there { bit } else { 0 };
            let word = self.mm.table.ptep_get(i);
            if swapped {
                let bits = bit(exclusive, SWP_EXCLUSIVE)
                    | bit(bits & SOFT_DIRTY != 0, SWP_SOFT_DIRTY)
                    | bit(bits & UFFD_WP != 0, SWP_UFFD);
                assert_eq!(word, swp_pte(SLOT + i, bits));
            } else {
                assert_eq!(word & !(YOUNG | DIRTY), pte(PFN + i, bits));
            }
            assert_eq!(self.folio.anon.is_exclusive(i), exclusive && !swapped);
        }
    }
}

/// What a racer does to the folio; whether it has a pin of that page in the end.
type Racer = fn(&Anon) -> Option<usize>;

fn pin_for_reading(anon: &Anon) -> Option<usize> {
    anon.pin(0, false).then_some(0)
}

fn pin_for_writing(anon: &Anon) -> Option<usize> {
    anon.pin(1, true).then_some(1)
}

fn pin_the_other_for_reading(anon: &Anon) -> Option<usize> {
    anon.pin(1, false).then_some(1)
}

/// Unmaps against these.
fn against(
    bound: Bound,
    anon: fn() -> Anon,
    racers: &'static [Racer],
    judge: fn(&Anon, bool, &[usize], &Outcomes),
    ends: &[&'static str],
) {
    check(bound, ends, move |outcomes| {
        let anon = Arc::new(anon());
        let racers: Vec<_> = racers
            .iter()
            .map(|&racer| {
                let anon = anon.clone();
                thread::spawn(move || racer(&anon))
            })
            .collect();
        let swapped = anon.unmap();
        let pins: Vec<_> = racers
            .into_iter()
            .filter_map(|racer| racer.join().expect("a racer panicked"))
            .collect();
        for &page in &pins {
            assert!(
                anon.folio.anon.is_exclusive(page),
                "page {page} is pinned, and shared"
            );
        }
        assert_eq!(anon.folio.anon.pins(), pins.len() as i32);
        judge(&anon, swapped, &pins, outcomes);
    });
}

/// The end of a run that only pins may keep.
fn swapped_or_pinned(anon: &Anon, swapped: bool, pins: &[usize], outcomes: &Outcomes) {
    anon.assert_all_or_nothing(swapped);
    anon.assert_counts(swapped, pins.len() as i32);
    assert!(!swapped || pins.is_empty(), "a pinned page is swapped out");
    outcomes.saw(match (swapped, pins) {
        (true, _) => SWAPPED,
        (false, []) => KEPT,
        (false, _) => PINNED,
    });
}

const ENDS: [&str; 3] = [SWAPPED, KEPT, PINNED];

/// The PTE is writable: that it is gone, or another one, is all that GUP-fast goes by.
#[test]
fn anon_pin_for_writing() {
    against(
        Bound::Exhaustive,
        || Anon::new(WRITABLE, None),
        &[pin_for_writing],
        swapped_or_pinned,
        &ENDS,
    );
}

/// The PTE is not, and GUP-fast looks at the page as well.
#[test]
fn anon_pin_for_reading() {
    against(
        Bound::Exhaustive,
        || Anon::new(READ_ONLY, None),
        &[pin_for_reading],
        swapped_or_pinned,
        &ENDS,
    );
}

/// Where no page is exclusive, nobody asks for pins: there are none.
#[test]
fn anon_shared_pin() {
    against(
        Bound::Exhaustive,
        || Anon::new(SHARED, None),
        &[pin_for_reading],
        swapped_or_pinned,
        &[SWAPPED],
    );
}

/// One page, for each thread's own steps are what takes time here.
#[test]
fn anon_two_pins() {
    fn pin(anon: &Anon) -> Option<usize> {
        anon.pin(0, true).then_some(0)
    }
    against(
        Bound::Preemptions(3),
        || Anon::new(&WRITABLE[..1], None),
        &[pin_for_reading, pin],
        swapped_or_pinned,
        &ENDS,
    );
}

/// Slots that cannot be counted: the run comes back, to whoever pins it before or after.
#[test]
fn anon_rollback_of_the_counts_against_a_pin() {
    fn judge(anon: &Anon, swapped: bool, pins: &[usize], outcomes: &Outcomes) {
        assert!(!swapped, "there was no count to be had");
        anon.assert_all_or_nothing(false);
        anon.assert_counts(false, pins.len() as i32);
        outcomes.saw(if pins.is_empty() { KEPT } else { PINNED });
    }
    against(
        Bound::Exhaustive,
        || Anon::new(WRITABLE, Some(0)),
        &[pin_for_writing],
        judge,
        &[KEPT, PINNED],
    );
}

/// A pin that was there keeps the run, whoever else comes.
#[test]
fn anon_rollback_for_a_pin_against_another() {
    fn pinned() -> Anon {
        let anon = Anon::new(MIXED, None);
        assert!(anon.pin(0, false));
        anon
    }
    fn judge(anon: &Anon, swapped: bool, _: &[usize], outcomes: &Outcomes) {
        assert!(!swapped, "a pinned page is swapped out");
        anon.assert_all_or_nothing(false);
        outcomes.saw(KEPT);
    }
    check(Bound::Exhaustive, &[KEPT], |outcomes| {
        let anon = Arc::new(pinned());
        let theirs = anon.clone();
        let racer = thread::spawn(move || pin_the_other_for_reading(&theirs));
        let swapped = anon.unmap();
        let other = racer.join().expect("the racer panicked");
        assert_eq!(other, None, "a page that may be shared was pinned");
        assert_eq!(anon.folio.anon.pins(), 1);
        anon.assert_counts(false, 1);
        judge(&anon, swapped, &[], outcomes);
    });
}

/// A write by the CPU is not lost: the folio or, where it was kept, the PTE is dirty.
#[test]
fn anon_hardware_write() {
    fn write(anon: &Anon) -> Option<usize> {
        if anon.mm.table.hardware_write(1).is_some() {
            anon.folio.write();
        }
        None
    }
    fn judge(anon: &Anon, swapped: bool, pins: &[usize], outcomes: &Outcomes) {
        let pte_dirty = !swapped && anon.mm.table.ptep_get(1) & DIRTY != 0;
        if anon.folio.written() != 0 {
            assert!(anon.folio.is_dirty() || pte_dirty, "a write is lost");
        }
        swapped_or_pinned(anon, swapped, pins, outcomes);
    }
    against(
        Bound::Exhaustive,
        || Anon::new(WRITABLE, None),
        &[write],
        judge,
        &[SWAPPED],
    );
}

/// The same, with a run that comes back.
#[test]
fn anon_rollback_hardware_write() {
    fn write(anon: &Anon) -> Option<usize> {
        if anon.mm.table.hardware_write(1).is_some() {
            anon.folio.write();
        }
        None
    }
    fn judge(anon: &Anon, swapped: bool, _: &[usize], outcomes: &Outcomes) {
        assert!(!swapped, "there was no count to be had");
        anon.assert_all_or_nothing(false);
        let dirty = anon.folio.is_dirty() || anon.mm.table.ptep_get(1) & DIRTY != 0;
        assert_eq!(dirty, anon.folio.written() != 0);
        outcomes.saw(KEPT);
    }
    against(
        Bound::Exhaustive,
        || Anon::new(WRITABLE, Some(0)),
        &[write],
        judge,
        &[KEPT],
    );
}

/// Memory that userfaultfd protects from any access (RWP) is not pinned by GUP-fast, and stays so.
#[test]
fn anon_rwp_pin() {
    const RWP: &[(u64, bool)] = &[(PROT_NONE | UFFD_WP, true), (PROT_NONE | UFFD_WP, true)];
    against(
        Bound::Exhaustive,
        || Anon::new(RWP, None),
        &[pin_for_reading],
        swapped_or_pinned,
        &[SWAPPED],
    );
}
