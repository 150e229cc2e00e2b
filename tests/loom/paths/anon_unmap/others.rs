// SPDX-License-Identifier: GPL-2.0

//! The same against those who fault the folio in, fork or unmap it.

use super::*;
use mm_shim::fault::do_swap_page;

/// Who faults waits for the folio, and brings one page back as it was: exclusive, soft-dirty, and
/// protected by userfaultfd. It can be pinned then, and only then.
#[test]
fn anon_refault_and_pin() {
    const BACK: &str = "one page is back";
    const BACK_AND_PINNED: &str = "one page is back, and pinned";
    fn refault(anon: &Anon) -> Option<usize> {
        do_swap_page(&anon.mm, &anon.folio, &anon.lock, 0, false);
        pin_for_reading(anon)
    }
    fn judge(anon: &Anon, swapped: bool, pins: &[usize], outcomes: &Outcomes) {
        let (word, bits) = (anon.mm.table.ptep_get(0), anon.pages[0].0);
        if !swapped || word & PRESENT == 0 {
            return swapped_or_pinned(anon, swapped, pins, outcomes);
        }
        assert_eq!(word & !YOUNG, pte(PFN, bits));
        assert!(anon.folio.anon.is_exclusive(0));
        assert!(!anon.folio.anon.is_exclusive(1));
        assert_eq!(anon.folio.mapcount(), 1);
        assert_eq!(anon.folio.ref_count(), 1 + 2 + 1 + pins.len() as i32);
        let slots = anon.folio.swap.as_ref().expect("it is in the swap cache");
        assert_eq!(slots.counts(), [0, 1]);
        assert_eq!((anon.mm.rss().pages, anon.mm.rss().swapents), (1, 1));
        outcomes.saw(if pins.is_empty() {
            BACK
        } else {
            BACK_AND_PINNED
        });
    }
    against(
        Bound::Exhaustive,
        || Anon::new(READ_ONLY, None),
        &[refault],
        judge,
        &[SWAPPED, KEPT, PINNED, BACK_AND_PINNED],
    );
}

/// Two that fault the same page: it is brought back once.
#[test]
fn anon_refault_twice() {
    const BACK: &str = "one page is back";
    fn refault(anon: &Anon) -> Option<usize> {
        do_swap_page(&anon.mm, &anon.folio, &anon.lock, 1, true);
        None
    }
    fn judge(anon: &Anon, swapped: bool, pins: &[usize], outcomes: &Outcomes) {
        assert!(swapped, "nothing was in the way");
        if anon.mm.table.ptep_get(1) & PRESENT == 0 {
            return swapped_or_pinned(anon, swapped, pins, outcomes);
        }
        let slots = anon.folio.swap.as_ref().expect("it is in the swap cache");
        assert_eq!(slots.counts(), [1, 0]);
        assert_eq!(anon.folio.mapcount(), 1);
        outcomes.saw(BACK);
    }
    against(
        Bound::Preemptions(3),
        || Anon::new(WRITABLE, None),
        &[refault, refault],
        judge,
        &[SWAPPED, BACK],
    );
}

/// Another mm that has the pages too forks or unmaps them, or drops entries of its own: that is
/// none of this mm's business, and all counts add up.
#[test]
fn anon_shared_against_another_mm() {
    fn other(anon: &Anon) -> Option<usize> {
        anon.folio.copy_present_ptes(1);
        anon.folio.zap_present_ptes(2);
        let slots = anon.folio.swap.as_ref().expect("it is in the swap cache");
        slots.put(1..2);
        None
    }
    fn shared() -> Anon {
        let anon = Anon::new(SHARED, None);
        anon.folio.map(1);
        let slots = anon.folio.swap.as_ref().expect("it is in the swap cache");
        assert!(slots.dup(1..2));
        anon
    }
    against(
        Bound::Exhaustive,
        shared,
        &[other],
        swapped_or_pinned,
        &[SWAPPED],
    );
}
