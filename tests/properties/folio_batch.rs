// SPDX-License-Identifier: GPL-2.0

//! `folio_batch`: any folios of a batch at a page table, against an oracle that looks at one folio
//! after the other; and lists of any folios, against C's loop, which takes one after the other.

use mm_batch::{
    folio_batch::{
        unmap_anon_folios,
        unmap_file_folios,
        unmap_lazyfree_folios, //
    },
    folios::{
        FolioSet,
        FoundFolios, //
    },
};
use mm_shim::{
    folio::Folio,
    folios::{
        Event,
        Stop,
        Together,
        CLUSTER, //
    },
    gup::pin_fast,
    pte::{
        pte,
        swp_pte,
        Table,
        DIRTY,
        SOFT_DIRTY,
        SWP_EXCLUSIVE,
        SWP_SOFT_DIRTY,
        SWP_UFFD,
        UFFD_WP,
        WRITE,
        YOUNG, //
    },
    swap::Slots,
    unmap::{
        Layout,
        Mm, //
    }, //
};
use proptest::prelude::*;
use std::ops::Range;

mod reclaim;
mod vmas;

/// PTEs of a page table; there are two.
const TABLE: usize = 16;

/// What a folio is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Of a file, or anonymous in the swap cache: as the VMA is.
    Ordinary,
    /// Of shmem, or lazyfree.
    Other,
    /// Swap-backed, and not in the swap cache, where it should be.
    Odd,
}

/// A folio, and the gap in front of its PTEs.
#[derive(Clone, Debug)]
struct One {
    gap: usize,
    nr: usize,
    kind: Kind,
    bits: u64,
    dirty: bool,
    exclusive: bool,
    pinned: bool,
    referenced: bool,
    /// Its last PTE is not there.
    partly: bool,
    /// Entries that its slots have; with 3 they are full.
    entries: u32,
    /// Its slots follow those of the folio in front of it.
    follows: bool,
}

fn one() -> impl Strategy<Value = One> {
    let nr = prop_oneof![3 => Just(1usize), 1 => Just(2), 1 => Just(4)];
    let kind = prop_oneof![5 => Just(Kind::Ordinary), 2 => Just(Kind::Other), 1 => Just(Kind::Odd)];
    let bit = |bit: u64| prop::sample::select(vec![0, 0, 0, bit]);
    let bits = (
        bit(WRITE),
        bit(DIRTY),
        bit(SOFT_DIRTY),
        bit(UFFD_WP),
        bit(YOUNG),
    );
    let rarely = || prop::bool::weighted(0.2);
    (
        (0usize..3, nr, kind, bits),
        (any::<bool>(), any::<bool>(), rarely(), rarely(), rarely()),
        0u32..4,
        any::<bool>(),
    )
        .prop_map(|((gap, nr, kind, bits), flags, entries, follows)| {
            let (dirty, exclusive, pinned, referenced, partly) = flags;
            let bits = bits.0 | bits.1 | bits.2 | bits.3 | bits.4;
            One {
                gap,
                nr,
                kind,
                bits,
                dirty,
                exclusive: exclusive || bits & WRITE != 0,
                pinned,
                referenced,
                partly,
                entries,
                follows,
            }
        })
}

#[derive(Clone, Debug)]
struct Case {
    of_file: bool,
    droppable: bool,
    ignore_references: bool,
    vma: Range<usize>,
    folios: Vec<One>,
    /// The first slot, which may be in front of the end of a cluster.
    slot: usize,
    /// The folio that the walk stops at, of those that it can.
    own: prop::sample::Index,
}

fn case() -> impl Strategy<Value = Case> {
    (
        any::<bool>(),
        prop::bool::weighted(0.2),
        any::<bool>(),
        (0usize..4, 20usize..32),
        prop::collection::vec(one(), 1..9),
        prop_oneof![Just(64), CLUSTER - 8..CLUSTER],
        any::<prop::sample::Index>(),
    )
        .prop_map(
            |(of_file, droppable, ignore_references, vma, folios, slot, own)| Case {
                of_file,
                droppable,
                ignore_references,
                vma: vma.0..vma.1,
                folios,
                slot,
                own,
            },
        )
}

/// What may change of a folio and of its PTEs.
#[derive(Clone, Debug, PartialEq, Eq)]
struct State {
    words: Vec<u64>,
    exclusive: bool,
    counts: Vec<u32>,
    mapcount: i32,
    refs: i32,
    dirty: bool,
    swapbacked: bool,
}

/// A case as it is set up.
struct Setup {
    mm: Mm,
    folios: Vec<Folio>,
    places: Vec<Range<usize>>,
}

impl Case {
    fn set_up(&self) -> Setup {
        let mut words = vec![0; 2 * TABLE + 64];
        let (mut at, mut places, mut folios) = (0, Vec::new(), Vec::new());
        for (i, one) in self.folios.iter().enumerate() {
            at += one.gap;
            let folio = self.folio(8 + 8 * i, self.slot(i), one);
            let mapped = one.nr - usize::from(one.partly && one.nr > 1);
            for page in 0..mapped {
                words[at + page] = pte(folio.pfn + page, one.bits);
            }
            folio.map(mapped);
            places.push(at..at + one.nr);
            folios.push(folio);
            at += one.nr;
        }
        let layout = Layout {
            table: TABLE,
            vma: self.vma.clone(),
            uffd_wp: true,
            of_file: self.of_file,
            droppable: self.droppable,
            group: 1,
        };
        Setup {
            mm: Mm::new(layout, &words),
            folios,
            places,
        }
    }

    /// The first slot of a folio.
    fn slot(&self, i: usize) -> usize {
        let add = |slot, one: &[One]| slot + one[0].nr + usize::from(!one[1].follows);
        self.folios[..=i].windows(2).fold(self.slot, add)
    }

    /// Whether there is no room for another entry of a folio, or of one of its neighbours in the swap
    /// cache, among `these`.
    fn is_full(&self, i: usize, these: &[usize]) -> bool {
        let follows = |&one: &usize, &next: &usize| {
            self.slot(next) == self.slot(one) + self.folios[one].nr
                && self.slot(next) % CLUSTER != 0
        };
        let mut runs = these.chunk_by(follows);
        let run = runs.find(|run| run.contains(&i)).expect("it is of these");
        run.iter().any(|&i| self.folios[i].entries == 3)
    }

    fn folio(&self, pfn: usize, slot: usize, one: &One) -> Folio {
        let folio = match (self.of_file, one.kind) {
            (false, Kind::Ordinary) => {
                let counts = vec![one.entries; one.nr];
                Folio::in_swap_cache(pfn, one.nr, Slots::new(slot, &counts, Some(3)))
            }
            (true, Kind::Odd) => {
                Folio::in_swap_cache(pfn, one.nr, Slots::new(slot, &vec![0; one.nr], None))
            }
            _ => Folio::new(pfn, one.nr),
        };
        if (self.of_file, one.kind) == (true, Kind::Other)
            || (self.of_file, one.kind) == (false, Kind::Odd)
        {
            folio.set_swapbacked();
        }
        if one.dirty {
            folio.mark_dirty();
        }
        if one.exclusive {
            (0..one.nr).for_each(|page| folio.anon.set_exclusive(page));
        }
        if one.pinned {
            let table = Table::new(&[pte(pfn, WRITE)]);
            pin_fast(&table, 0, &folio, true).expect("a page of it, writable");
        }
        if one.referenced {
            folio.get(1);
        }
        folio
    }

    /// What a folio is unmapped as, if the page table has all of it, and nothing is in the way.
    fn unmapped_as(&self, i: usize, places: &Range<usize>, own: &Range<usize>) -> Option<As> {
        let one = &self.folios[i];
        let table = own.start / TABLE * TABLE;
        let here = |at: usize| self.vma.contains(&at) && (table..table + TABLE).contains(&at);
        let whole = !(one.partly && one.nr > 1) && places.clone().all(here);
        let young = one.bits & YOUNG != 0 && !self.ignore_references;
        let marker = self.of_file && one.bits & UFFD_WP != 0;
        if !whole || young || marker {
            return None;
        }
        match (self.of_file, one.kind) {
            (_, Kind::Odd) => None,
            (true, _) => Some(As::File),
            (false, Kind::Ordinary) => Some(As::Swap),
            (false, Kind::Other) => Some(As::Lazyfree),
        }
    }

    /// What is to be left of a folio that is found, with `these`, and whether it is unmapped.
    fn after(&self, i: usize, these: &[usize], way: As, mut state: State) -> (State, bool) {
        let one = &self.folios[i];
        let dirty = state.dirty || one.bits & DIRTY != 0;
        let bit = |there, bit| if there { bit } else { 0 };
        match way {
            As::Swap if self.is_full(i, these) => return (state, false),
            As::Swap if one.exclusive && one.pinned => {
                state.dirty = dirty;
                return (state, false);
            }
            As::Swap => {
                let bits = bit(one.exclusive, SWP_EXCLUSIVE)
                    | bit(one.bits & SOFT_DIRTY != 0, SWP_SOFT_DIRTY)
                    | bit(one.bits & UFFD_WP != 0, SWP_UFFD);
                for (page, word) in state.words.iter_mut().enumerate() {
                    *word = swp_pte(self.slot(i) + page, bits);
                }
                state.counts.iter_mut().for_each(|count| *count += 1);
                state.exclusive = false;
            }
            As::Lazyfree if dirty && !self.droppable => {
                state.dirty = dirty;
                state.swapbacked = true;
                return (state, false);
            }
            As::Lazyfree if one.referenced || one.pinned => {
                state.dirty = dirty;
                return (state, false);
            }
            As::File | As::Lazyfree => state.words.fill(0),
        }
        state.dirty = dirty;
        state.mapcount -= one.nr as i32;
        state.refs -= one.nr as i32;
        (state, true)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum As {
    File,
    Swap,
    Lazyfree,
}

impl Setup {
    fn states(&self) -> Vec<State> {
        let state = |(folio, places): (&Folio, &Range<usize>)| State {
            words: places
                .clone()
                .map(|at| self.mm.table.ptep_get(at))
                .collect(),
            exclusive: folio.anon.is_exclusive(0),
            counts: folio.swap.as_ref().map(Slots::counts).unwrap_or_default(),
            mapcount: folio.mapcount(),
            refs: folio.ref_count(),
            dirty: folio.is_dirty(),
            swapbacked: folio.is_swapbacked(),
        };
        self.folios.iter().zip(&self.places).map(state).collect()
    }
}

fn is_of_one_table(done: &[Event]) -> bool {
    let count = |is: fn(&Event) -> bool| done.iter().filter(|&event| is(event)).count();
    count(|event| matches!(event, Event::Cleared(_))) <= 1
        && count(|event| matches!(event, Event::Ordered)) <= 1
        && count(|event| matches!(event, Event::OrderedBehind)) <= 1
        && count(|event| matches!(event, Event::Ended(_) | Event::Vanished(_))) <= 1
}

proptest! {
    #![proptest_config(crate::cases(2048))]

    /// Each folio is unmapped as it would be by itself, or is as it was; each step is one call. But one
    /// whose slots have room stays mapped where a neighbour's have not.
    #[test]
    fn folios_are_unmapped_as_one_by_one(case in case()) {
        let setup = case.set_up();
        let stops: Vec<_> = (0..case.folios.len())
            .filter(|&i| case.vma.contains(&setup.places[i].start))
            .collect();
        prop_assume!(!stops.is_empty());
        let own = *case.own.get(&stops);
        let as_one = |i: usize| case.unmapped_as(i, &setup.places[i], &setup.places[own]);
        let way = as_one(own);
        let before = (setup.states(), setup.mm.rss());
        let (mut expected, mut unmapped) = (Vec::new(), 0);
        let mut these: Vec<_> = (0..case.folios.len()).collect();
        these.retain(|&i| as_one(i) == way);
        for (i, state) in before.0.iter().enumerate() {
            let way = way.filter(|&way| as_one(i) == Some(way));
            let (state, gone) = match way {
                Some(way) => case.after(i, &these, way, state.clone()),
                None => (state.clone(), false),
            };
            expected.push(state);
            unmapped |= u32::from(gone) << i;
        }
        let together = Together::new(&setup.folios);
        let together = match case.ignore_references {
            true => together.ignoring_references(),
            false => together,
        };
        let run = |stop: Stop<'_>| match (case.of_file, case.folios[own].kind) {
            (true, _) => unmap_file_folios(stop),
            (false, Kind::Other) => unmap_lazyfree_folios(stop),
            (false, _) => unmap_anon_folios(stop),
        };
        let (got, done) = together.stop_and_tell(&setup.mm, setup.places[own].start, run);
        prop_assert_eq!(got.map_or(0, FolioSet::bits), unmapped);
        prop_assert_eq!(setup.states(), expected);
        prop_assert!(is_of_one_table(&done), "{:?}", done);
        let pages: i64 = (0..case.folios.len())
            .filter(|i| unmapped & (1 << i) != 0)
            .map(|i| case.folios[i].nr as i64)
            .sum();
        let (rss, swapents) = (setup.mm.rss(), if way == Some(As::Swap) { pages } else { 0 });
        prop_assert_eq!(rss.pages, before.1.pages - pages);
        prop_assert_eq!(rss.swapents, before.1.swapents + swapents);
        prop_assert!(pages == 0 || rss.hiwater == before.1.pages);
    }
}

/// Has `drop_it` drop what it makes of two folios that are found, the first pinned if it is to be:
/// what was done behind that. All is as it was.
fn dropped(pinned: bool, drop_it: impl FnOnce(FoundFolios<'_, Stop<'_>>)) -> Vec<Event> {
    let folios = [0, 1].map(|i| {
        let folio = Folio::in_swap_cache(8 + i, 1, Slots::new(64 + i, &[0], None));
        folio.map(1);
        folio.anon.set_exclusive(0);
        folio
    });
    let words = [pte(8, WRITE), pte(9, WRITE)];
    let mm = Mm::new(Layout::anonymous(2), &words);
    let _pin = pinned.then(|| pin_fast(&mm.table, 0, &folios[0], true));
    let ((), done) = Together::new(&folios).stop_and_tell(&mm, 0, |mut stop| {
        drop_it(FoundFolios::find(&mut stop).expect("both are mapped"));
    });
    for folio in &folios {
        let slots = folio.swap.as_ref().expect("it has slots");
        assert!(folio.anon.is_exclusive(0) && folio.mapcount() == 1);
        assert_eq!(slots.counts(), [0]);
    }
    assert_eq!(mm.table.words(), words);
    done[1..].to_vec()
}

/// A guard in a guard: each undoes itself, and then what it holds.
#[test]
fn folios_that_are_dropped_are_undone_in_reverse() {
    use Event::*;
    assert_eq!(dropped(false, |_found| ()), []);
    let done = dropped(false, |found| drop(found.clear()));
    assert_eq!(done, [Cleared(0b11), Restored(0b11)]);
    let done = dropped(false, |found| drop(found.count_swap_entries()));
    assert_eq!(done, [SwapDup(0b11), SwapPut(0b11)]);
    let done = dropped(false, |found| {
        drop(found.count_swap_entries().expect("there is room").clear());
    });
    let undone = [Restored(0b11), SwapPut(0b11)];
    let cleared = [SwapDup(0b11), Cleared(0b11)];
    assert_eq!(done, [cleared, undone].concat());
    let asked = [ExclusiveAsked(0b11), Ordered, PinTested(0b11)];
    let share = |found: FoundFolios<'_, Stop<'_>>| {
        drop(
            found
                .count_swap_entries()
                .expect("there is room")
                .clear()
                .share(),
        );
    };
    let done = dropped(false, share);
    assert_eq!(done, [&cleared[..], &asked, &undone].concat());
    // The one that is pinned, and then the other.
    let undone = [Restored(0b01), SwapPut(0b01), Restored(0b10), SwapPut(0b10)];
    let done = dropped(true, share);
    assert_eq!(done, [&cleared[..], &asked, &undone].concat());
}

/// Two that are exclusive, and one that is pinned or none: each step is one call, for all.
#[test]
fn each_step_is_one_call() {
    use Event::*;
    let folios = [0, 1].map(|i| {
        let folio = Folio::in_swap_cache(8 + i, 1, Slots::new(64 + i, &[0], None));
        folio.map(1);
        folio.anon.set_exclusive(0);
        folio
    });
    let mm = Mm::new(Layout::anonymous(3), &[pte(8, WRITE), 0, pte(9, WRITE)]);
    let together = Together::new(&folios);
    let (unmapped, done) = together.stop_and_tell(&mm, 2, |stop| unmap_anon_folios(stop));
    assert_eq!(unmapped, FolioSet::new(0b11));
    let before = [
        Found(0b11),
        SwapDup(0b11),
        Cleared(0b11),
        ExclusiveAsked(0b11),
    ];
    let pins = [Ordered, PinTested(0b11), Prepared(0b11)];
    let behind = [Shared(0b11), OrderedBehind, SwapPtes(0b11), Ended(0b11)];
    assert_eq!(done, [&before[..], &pins, &behind].concat());
}

/// One after the other, as often as policy wants: those that stay are not touched.
#[test]
fn folios_are_restored_by_any_set() {
    use Event::*;
    let some = |bits| FolioSet::new(bits);
    let done = dropped(false, |found| {
        let left = found.clear().restore(None).expect("none is mapped again");
        let left = left.restore(some(0b101)).expect("the second is left");
        assert_eq!(left.set().bits(), 0b10);
        assert!(left.restore(some(u32::MAX)).is_none());
    });
    assert_eq!(done, [Cleared(0b11), Restored(0b01), Restored(0b10)]);
}

/// What nothing can be done with is not asked about, nor touched.
#[test]
fn a_set_has_a_folio() {
    assert_eq!(FolioSet::new(0), None);
    let set = |bits| FolioSet::new(bits).expect("it has bits");
    let split = |bits, these| {
        set(bits)
            .split(FolioSet::new(these))
            .map(|set| set.map_or(0, FolioSet::bits))
    };
    assert_eq!(split(0b110, 0b011), [0b010, 0b100]);
    assert_eq!(split(0b110, 0b001), [0, 0b110]);
    assert_eq!(split(0b110, 0b111), [0b110, 0]);
    assert_eq!(split(0b110, 0), [0, 0b110]);
}

/// A folio of two pages, of whose PTEs the second has this bit: whether it was unmapped, and is dirty.
fn by_its_second_pte(bit: u64) -> (bool, bool) {
    let folio = Folio::in_swap_cache(8, 2, Slots::new(64, &[0, 0], None));
    folio.map(2);
    (0..2).for_each(|page| folio.anon.set_exclusive(page));
    let words = [pte(8, WRITE), pte(9, WRITE | bit)];
    let mm = Mm::new(Layout::anonymous(2), &words);
    let folios = [folio];
    let unmapped = Together::new(&folios).stop(&mm, 0, |walk| unmap_anon_folios(walk));
    (unmapped.is_some(), folios[0].is_dirty())
}

#[test]
fn a_large_folio_is_as_dirty_and_as_young_as_any_of_its_ptes() {
    assert_eq!(by_its_second_pte(DIRTY), (true, true));
    assert_eq!(by_its_second_pte(YOUNG), (false, false));
}
