// SPDX-License-Identifier: GPL-2.0

//! `folio_batch` against whoever else has to do with one of its folios: at the page table, and, in
//! [`reclaim`], from where they are locked together to where each is written out.
//!
//! The folios are two, of one page each, with a hole between their PTEs. In every execution: a page
//! that is pinned is exclusive, and its folio is what it was; what becomes of the other one does
//! not depend on that; a folio is all swapped out or all as it was; and all counts add up.

use mm_batch::folio_batch::{
    unmap_anon_folios,
    unmap_lazyfree_folios, //
};
use mm_shim::{
    fault::FolioLock,
    folio::Folio,
    folios::{
        others::{
            fault,
            fork,
            mlock,
            zap, //
        },
        Together, //
    },
    gup::{
        gup_fast,
        pin_fast, //
    },
    lock::BitLock,
    model::{
        check,
        Bound,
        Outcomes, //
    },
    pte::{
        pte,
        pte_pfn,
        DIRTY,
        PRESENT,
        SOFT_DIRTY,
        SWAP,
        SWP_EXCLUSIVE,
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

mod reclaim;

const PFN: usize = 8;
/// Their slots, which are no neighbours: counted one by one.
const SLOTS: [usize; 2] = [64, 66];
/// Where the PTEs of the two are.
const AT: [usize; 2] = [0, 2];

const BOTH: &str = "both are swapped out";
const FIRST: &str = "the first is";
const SECOND: &str = "the second is";
const NEITHER: &str = "neither is";

/// Two folios in the swap cache, both mapped, and an mm for a child.
struct Two {
    mm: Mm,
    child: Mm,
    folios: Vec<Folio>,
    locks: Vec<FolioLock>,
    rmap: BitLock,
    bits: u64,
}

impl Two {
    /// Exclusive, by PTEs with these bits; a slot of the second can be counted `most` times.
    fn new(bits: u64, most: Option<u32>) -> Self {
        let folio = |i: usize| {
            let most = most.filter(|_| i == 1);
            let folio = Folio::in_swap_cache(PFN + i, 1, Slots::new(SLOTS[i], &[0], most));
            folio.map(1);
            folio.anon.set_exclusive(0);
            folio
        };
        let words = [pte(PFN, bits), 0, pte(PFN + 1, bits)];
        Self {
            mm: Mm::new(Layout::anonymous(3), &words),
            child: Mm::new(Layout::anonymous(3), &[0; 3]),
            folios: vec![folio(0), folio(1)],
            locks: vec![FolioLock::default(), FolioLock::default()],
            rmap: BitLock::new("anon_vma"),
            bits,
        }
    }

    /// The batch, under its folio locks: whether the rmap lock was free.
    fn unmap(&self) -> bool {
        let _locked = [self.locks[0].lock(), self.locks[1].lock()];
        let together = Together::new(&self.folios).ignoring_references();
        let vmas = [(&self.mm, 0..3), (&self.child, 0..3)];
        together.rmap_walk(&vmas, &self.rmap, |stop| unmap_anon_folios(stop))
    }

    fn pin(&self, i: usize, write: bool) -> bool {
        pin_fast(&self.mm.table, AT[i], &self.folios[i], write).is_some()
    }

    fn is_mapped(&self, mm: &Mm, i: usize) -> bool {
        let word = mm.table.ptep_get(AT[i]);
        word & PRESENT != 0 && pte_pfn(word) == PFN + i
    }

    fn swapped(&self, mm: &Mm, i: usize) -> bool {
        let word = mm.table.ptep_get(AT[i]);
        word & SWAP != 0 && pte_pfn(word) == SLOTS[i]
    }

    /// Both mms' PTEs, and what counts them, with so many references of others.
    fn assert_counts(&self, i: usize, others: i32) {
        let mms = [&self.mm, &self.child];
        let count = |is: &dyn Fn(&Mm) -> bool| mms.iter().filter(|&mm| is(mm)).count();
        let mapped = count(&|mm| self.is_mapped(mm, i));
        let swapped = count(&|mm| self.swapped(mm, i));
        let folio = &self.folios[i];
        let slots = folio.swap.as_ref().expect("it is in the swap cache");
        assert_eq!(slots.counts(), [swapped as u32]);
        assert_eq!(folio.mapcount(), mapped as i32);
        assert_eq!(folio.ref_count(), 2 + mapped as i32 + others);
        // What two may have is no one's alone.
        let alone = |mm: &Mm| mm.table.ptep_get(AT[i]) & SWP_EXCLUSIVE != 0 && self.swapped(mm, i);
        if mapped + swapped > 1 {
            assert!(!folio.anon.is_exclusive(0) && !mms.into_iter().any(alone));
        }
    }

    fn assert_rss(&self) {
        for mm in [&self.mm, &self.child] {
            let count = |is: &dyn Fn(usize) -> bool| (0..2).filter(|&i| is(i)).count() as i64;
            assert_eq!(mm.rss().pages, count(&|i| self.is_mapped(mm, i)));
            assert_eq!(mm.rss().swapents, count(&|i| self.swapped(mm, i)));
        }
    }

    /// A folio that nobody but the batch has touched is as it was, or swapped out.
    fn assert_whole(&self, i: usize) {
        let word = self.mm.table.ptep_get(AT[i]);
        let exclusive = self.folios[i].anon.is_exclusive(0);
        if self.swapped(&self.mm, i) {
            assert!(word & SWP_EXCLUSIVE != 0 && !exclusive);
        } else {
            assert_eq!(word & !(YOUNG | DIRTY), pte(PFN + i, self.bits));
            assert!(exclusive);
        }
    }

    fn ended(&self) -> &'static str {
        match [0, 1].map(|i| self.swapped(&self.mm, i)) {
            [true, true] => BOTH,
            [true, false] => FIRST,
            [false, true] => SECOND,
            [false, false] => NEITHER,
        }
    }
}

/// Writable, or protected by whoever wants to know of writes, and exclusive all the same.
const WRITABLE: u64 = WRITE;
const READ_ONLY: u64 = SOFT_DIRTY | UFFD_WP;

/// Unmaps two against a racer, who says whether it has a pin of the first in the end.
fn against(
    bound: Bound,
    two: fn() -> Two,
    racer: fn(&Two) -> bool,
    judge: fn(&Two, bool, &Outcomes),
    ends: &[&'static str],
) {
    check(bound, ends, move |outcomes| {
        let two = Arc::new(two());
        let theirs = two.clone();
        let racer = thread::spawn(move || racer(&theirs));
        two.unmap();
        let pinned = racer.join().expect("the racer panicked");
        if pinned {
            assert!(two.is_mapped(&two.mm, 0), "a pinned page is swapped out");
            let exclusive = two.folios[0].anon.is_exclusive(0);
            assert!(exclusive, "a page is pinned, and shared");
        }
        two.assert_counts(0, i32::from(pinned));
        two.assert_counts(1, 0);
        two.assert_rss();
        judge(&two, pinned, outcomes);
    });
}

/// Only a pin keeps the first, and nothing keeps the second.
fn second_goes(two: &Two, _: bool, outcomes: &Outcomes) {
    two.assert_whole(0);
    two.assert_whole(1);
    outcomes.saw(two.ended());
}

/// The PTE is writable: that it is gone, or another one, is all that GUP-fast goes by.
#[test]
fn folio_batch_pin_for_writing() {
    against(
        Bound::Exhaustive,
        || Two::new(WRITABLE, None),
        |two| two.pin(0, true),
        second_goes,
        &[BOTH, SECOND],
    );
}

/// The PTE is not, and GUP-fast looks at the page as well.
#[test]
fn folio_batch_pin_for_reading() {
    against(
        Bound::Exhaustive,
        || Two::new(READ_ONLY, None),
        |two| two.pin(0, false),
        second_goes,
        &[BOTH, SECOND],
    );
}

/// The second has no room for its entry, and is not touched; the first goes, or is pinned.
#[test]
fn folio_batch_pin_of_one_and_no_room_for_the_other() {
    fn judge(two: &Two, _: bool, outcomes: &Outcomes) {
        two.assert_whole(0);
        two.assert_whole(1);
        outcomes.saw(two.ended());
    }
    against(
        Bound::Exhaustive,
        || Two::new(WRITABLE, Some(0)),
        |two| two.pin(0, true),
        judge,
        &[FIRST, NEITHER],
    );
}

/// A write by the CPU is not lost: the folio or, where it was kept, the PTE is dirty.
#[test]
fn folio_batch_hardware_write() {
    fn write(two: &Two) -> bool {
        for (at, folio) in AT.into_iter().zip(&two.folios) {
            if two.mm.table.hardware_write(at).is_some() {
                folio.write();
            }
        }
        false
    }
    fn judge(two: &Two, pinned: bool, outcomes: &Outcomes) {
        for (i, folio) in two.folios.iter().enumerate() {
            let word = two.mm.table.ptep_get(AT[i]);
            let dirty = folio.is_dirty() || word & (PRESENT | DIRTY) == PRESENT | DIRTY;
            assert_eq!(dirty, folio.written() != 0, "folio {i}");
        }
        second_goes(two, pinned, outcomes);
    }
    against(
        Bound::Exhaustive,
        || Two::new(WRITABLE, None),
        write,
        judge,
        &[BOTH],
    );
}

/// The mm forks meanwhile: its child has what the parent had, or its swap entries, and what both
/// have is of neither alone. The walk goes on in the child.
#[test]
fn folio_batch_fork() {
    const SHARED: &str = "swapped out of both";
    const IN_THE_CHILD: &str = "mapped by the child yet";
    fn judge(two: &Two, _: bool, outcomes: &Outcomes) {
        assert_eq!(two.ended(), BOTH);
        let mapped = (0..2).any(|i| two.is_mapped(&two.child, i));
        outcomes.saw(if mapped { IN_THE_CHILD } else { SHARED });
    }
    against(
        Bound::Exhaustive,
        || Two::new(WRITABLE, None),
        |two| {
            fork(&two.mm, &two.child, &two.folios);
            let bits = |i| two.child.table.ptep_get(AT[i]) & (PRESENT | WRITE);
            assert!((0..2).all(|i| bits(i) != PRESENT | WRITE));
            false
        },
        judge,
        &[SHARED],
    );
}

/// Who faults on one waits for its lock, and brings it back as it was.
#[test]
fn folio_batch_refault_and_pin() {
    fn refault(two: &Two) -> bool {
        fault(&two.mm, &two.folios, &two.locks, AT[0], false);
        two.pin(0, false)
    }
    against(
        Bound::Exhaustive,
        || Two::new(READ_ONLY, None),
        refault,
        second_goes,
        &[BOTH, SECOND],
    );
}

/// One is unmapped meanwhile, with its page or its entry.
#[test]
fn folio_batch_zap() {
    fn judge(two: &Two, _: bool, outcomes: &Outcomes) {
        assert_eq!(two.mm.table.ptep_get(AT[0]), 0);
        two.assert_whole(1);
        outcomes.saw(two.ended());
    }
    against(
        Bound::Exhaustive,
        || Two::new(WRITABLE, None),
        |two| {
            zap(&two.mm, &two.folios, AT[0]);
            false
        },
        judge,
        &[SECOND],
    );
}

/// What mlock() has found mapped stays mapped.
#[test]
fn folio_batch_mlock() {
    check(Bound::Exhaustive, &[BOTH, NEITHER], |outcomes| {
        let two = Arc::new(Two::new(WRITABLE, None));
        let theirs = two.clone();
        let racer = thread::spawn(move || mlock(&theirs.mm));
        two.unmap();
        let locked = racer.join().expect("the racer panicked");
        for at in locked {
            let mapped = two.mm.table.ptep_get(at) & PRESENT != 0;
            assert!(mapped, "a page is locked in memory, and swapped out");
        }
        two.assert_counts(0, 0);
        two.assert_counts(1, 0);
        outcomes.saw(two.ended());
    });
}

/// Somebody has the rmap lock, and is not waited for.
#[test]
fn folio_batch_contended_rmap_lock() {
    const BUSY: &str = "somebody has the rmap lock";
    check(Bound::Exhaustive, &[BOTH, BUSY], |outcomes| {
        let two = Arc::new(Two::new(WRITABLE, None));
        let theirs = two.clone();
        let racer = thread::spawn(move || {
            theirs.rmap.lock();
            zap(&theirs.mm, &theirs.folios, 1);
            theirs.rmap.unlock();
        });
        let unmapped = two.unmap();
        racer.join().expect("the racer panicked");
        two.assert_whole(0);
        two.assert_whole(1);
        outcomes.saw(if unmapped { two.ended() } else { BUSY });
    });
}

const DISCARDED: &str = "both are discarded";
const REDIRTIED: &str = "the first was written to";
const REFERENCED: &str = "somebody has the first";

/// Two lazyfree folios, of which somebody may write to the first.
fn lazyfree_against(racer: fn(&Mm, &Folio), ends: &[&'static str]) {
    check(Bound::Exhaustive, ends, move |outcomes| {
        let folios = [0, 1].map(|i| {
            let folio = Folio::new(PFN + i, 1);
            folio.map(1);
            folio
        });
        let words = [pte(PFN, WRITE), 0, pte(PFN + 1, WRITE)];
        let both = Arc::new((Mm::new(Layout::anonymous(3), &words), folios));
        let theirs = both.clone();
        let racer = thread::spawn(move || racer(&theirs.0, &theirs.1[0]));
        let (mm, folios) = &*both;
        let together = Together::new(folios).ignoring_references();
        let unmapped = together.stop(mm, AT[1], |stop| unmap_lazyfree_folios(stop));
        racer.join().expect("the racer panicked");
        let unmapped = unmapped.expect("the second is nobody's").bits();
        assert_eq!(unmapped & 0b10, 0b10);
        assert_eq!(mm.table.ptep_get(AT[1]), 0);
        let [first, second] = folios;
        assert_eq!((second.mapcount(), second.ref_count()), (0, 1));
        let discarded = unmapped & 1 != 0;
        assert!(!discarded || first.written() == 0, "a write was discarded");
        let mapped = i32::from(!discarded);
        assert_eq!((first.mapcount(), first.ref_count()), (mapped, 1 + mapped));
        outcomes.saw(match (discarded, first.is_swapbacked()) {
            (true, _) => DISCARDED,
            (_, true) => REDIRTIED,
            (_, false) => REFERENCED,
        });
    });
}

#[test]
fn folio_batch_lazyfree_gup() {
    let write = |mm: &Mm, folio: &Folio| {
        if let Some(pinned) = gup_fast(&mm.table, AT[0], folio) {
            pinned.write_and_put();
        }
    };
    lazyfree_against(write, &[DISCARDED, REDIRTIED, REFERENCED]);
}

#[test]
fn folio_batch_lazyfree_hardware_write() {
    let write = |mm: &Mm, folio: &Folio| {
        if mm.table.hardware_write(AT[0]).is_some() {
            folio.write();
        }
    };
    lazyfree_against(write, &[DISCARDED, REDIRTIED]);
}
