// SPDX-License-Identifier: GPL-2.0

//! What becomes of a folio to which something happens while it waits: what C would have made of it,
//! and counted.

use super::{
    expected::{
        add,
        expected, //
    },
    *, //
};
use mm_shim::reclaim::report::{
    Stat,
    Window, //
};
use std::{
    cell::RefCell,
    collections::BTreeMap, //
};

/// What happens to a folio that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Refault,
    RefaultAndZap,
    Pin,
    PinAndZap,
    Mlock,
    Writeback,
    Reference,
    LockedElsewhere,
    Poison,
    /// It is not swap-backed any more.
    Lazyfree,
    /// A zap and, with it, the slot; or truncation.
    Gone,
    Clean,
}

fn what() -> impl Strategy<Value = What> {
    prop::sample::select(
        &[
            What::Refault,
            What::RefaultAndZap,
            What::Pin,
            What::PinAndZap,
            What::Mlock,
            What::Writeback,
            What::Reference,
            What::LockedElsewhere,
            What::Poison,
            What::Lazyfree,
            What::Gone,
            What::Clean,
        ][..],
    )
}

impl What {
    /// Makes it happen, if it can.
    fn happen(self, machine: &Machine, index: usize) -> bool {
        let folio = machine.folio(index);
        match self {
            What::Refault => machine.fault(index, true),
            What::RefaultAndZap => {
                let mapped = machine.fault(index, true);
                assert!(!mapped || machine.write(1, index));
                machine.zap(index);
                // The entry, too, if it was not mapped.
                mapped
            }
            What::Pin => {
                machine.fault(index, false) && {
                    // It stays.
                    let _pin = machine.pin_and_write(index).expect("it is mapped");
                    true
                }
            }
            What::PinAndZap => {
                What::Pin.happen(machine, index) && {
                    machine.zap(index);
                    true
                }
            }
            What::Mlock => {
                folio.set(Flag::Mlocked);
                true
            }
            What::Writeback => {
                folio.set(Flag::Writeback);
                true
            }
            What::Reference => folio.core.try_get(),
            What::LockedElsewhere => folio.trylock(),
            What::Poison => {
                folio.set(Flag::Poisoned);
                true
            }
            What::Lazyfree => {
                folio.core.clear_swapbacked();
                true
            }
            What::Gone => {
                machine.zap(index);
                machine.truncate(index);
                let locked = folio.trylock();
                machine.free_swap(index);
                folio.unlock();
                locked && folio.mapping().is_none()
            }
            // Which nobody does to what is in the swap cache.
            What::Clean => {
                machine.clean(index);
                !folio.core.is_dirty()
            }
        }
    }

    /// Where a folio of `nr` pages ends then, and what is counted of it.
    fn fate(self, spec: &Spec) -> Option<(Fate, Stat)> {
        let nr = u64::from(spec.nr);
        // What was waited for is looked at twice.
        let waited_for = u64::from(spec.flags.contains(&Flag::WaitedFor));
        let seen = Stat {
            nr_scanned: nr * (1 + waited_for),
            ..Stat::default()
        };
        let activated = Stat {
            nr_activate: nr,
            ..seen
        };
        Some(match self {
            What::Refault | What::Pin => (
                Fate::Activated,
                Stat {
                    nr_unmap_fail: nr,
                    ..activated
                },
            ),
            What::RefaultAndZap => return None,
            What::PinAndZap => (Fate::Activated, activated),
            What::Clean => (
                Fate::Reclaimed,
                Stat {
                    nr_reclaimed: nr,
                    ..seen
                },
            ),
            What::Mlock
            | What::Writeback
            | What::Reference
            | What::LockedElsewhere
            | What::Poison
            | What::Lazyfree
            | What::Gone => (Fate::Kept, seen),
        })
    }
}

/// Runs it batched, with what happens to some; those to which it did.
fn batched(
    machine: &Machine,
    nr: usize,
    events: &[Option<(What, Window)>],
) -> (Report, BTreeMap<usize, What>) {
    let happened = RefCell::new(BTreeMap::new());
    let report = List::new(machine, 0..nr)
        .meanwhile(|folio, window| {
            write_stale(machine, folio);
            if let Some(&Some((what, when))) = events.get(folio) {
                if when == window && what.happen(machine, folio) {
                    happened.borrow_mut().insert(folio, what);
                }
            }
        })
        .shrink();
    (report, happened.into_inner())
}

fn assert_fates(specs: &[Spec], events: &[Option<(What, Window)>]) {
    let machine = Machine::new(NR_CPUS, specs);
    let (got, happened) = batched(&machine, specs.len(), events);
    let mapped = |folio| matches!(happened.get(&folio), Some(What::Refault | What::Pin));
    assert_batches(specs, &got, &mapped);
    let mut stat = Stat::default();
    for (index, (fate, counted)) in specs.iter().map(expected).enumerate() {
        let what = happened.get(&index);
        let (fate, counted) = what
            .and_then(|what| what.fate(&specs[index]))
            .unwrap_or((fate, counted));
        assert_eq!(got.fates[&index], fate, "folio {index}, {what:?}");
        stat = add(stat, counted);
        let untouched = [None, Some(&What::RefaultAndZap), Some(&What::Clean)];
        if !untouched.contains(&what) {
            assert!(!got.events.contains(&Event::PagedOut(index)), "{what:?}");
        }
        if what == Some(&What::Clean) {
            assert!(!written(&got).contains(&index), "it was written out");
        }
        if what == Some(&What::Gone) {
            assert!(machine.folio(index).is_freed(), "folio {index} is left");
        } else if fate != Fate::Dropped {
            machine.assert_nothing_lost(index);
        }
    }
    assert_eq!(got.stat, stat);
}

fn events(
    sizes: &'static [usize],
) -> impl Strategy<Value = (Vec<Spec>, Vec<Option<(What, Window)>>)> {
    let event = || {
        let window = prop_oneof![Just(Window::Unlocked), Just(Window::Retried)];
        prop::option::weighted(0.5, (what(), window))
    };
    specs(sizes).prop_flat_map(move |specs| {
        let nr = specs.len();
        (Just(specs), prop::collection::vec(event(), nr))
    })
}

proptest! {
    #![proptest_config(crate::cases(256))]

    #[test]
    fn what_happens_to_what_waits_is_heeded((specs, events) in events(SHORT)) {
        assert_fates(&specs, &events);
    }
}

proptest! {
    #![proptest_config(crate::cases(8))]

    #[test]
    fn what_happens_to_what_waits_in_a_long_list_is_heeded((specs, events) in events(&[1000])) {
        assert_fates(&specs, &events);
    }
}

/// Where two things happen, the first of C's checks decides.
#[test]
fn the_first_check_decides() {
    use What::{
        Lazyfree,
        Mlock,
        PinAndZap,
        Poison,
        Refault,
        Reference,
        Writeback, //
    };
    let cases = [
        (Poison, Refault, Fate::Kept, 0, 0),
        (Poison, PinAndZap, Fate::Kept, 0, 0),
        (Mlock, Refault, Fate::Kept, 4, 0),
        (Refault, Reference, Fate::Activated, 4, 4),
        (Writeback, PinAndZap, Fate::Activated, 0, 4),
        (PinAndZap, Reference, Fate::Activated, 0, 4),
        (PinAndZap, Lazyfree, Fate::Activated, 0, 4),
        (Mlock, Reference, Fate::Kept, 0, 0),
    ];
    for (one, other, fate, nr_unmap_fail, nr_activate) in cases {
        let machine = Machine::new(NR_CPUS, &[dirty(4)]);
        let report = List::new(&machine, [0])
            .meanwhile(|folio, window| {
                if window == Window::Unlocked {
                    assert!(one.happen(&machine, folio), "{one:?}");
                    assert!(other.happen(&machine, folio), "{other:?}");
                }
            })
            .shrink();
        assert_eq!(report.fates[&0], fate, "{one:?} and {other:?}");
        let stat = report.stat;
        assert_eq!(
            (stat.nr_unmap_fail, stat.nr_activate, stat.vmscan_write),
            (nr_unmap_fail, nr_activate, 0),
            "{one:?} and {other:?}"
        );
    }
}

/// What is mlocked while it waits gives its slot back, if no PTE names it.
#[test]
fn the_slot_of_what_is_mlocked_while_it_waits() {
    let machine = Machine::new(NR_CPUS, &[dirty(1)]);
    let report = List::new(&machine, [0])
        .meanwhile(|index, window| {
            let folio = machine.folio(index);
            if window == Window::Unlocked {
                // The lock keeps the zap from its slot.
                assert!(folio.trylock());
                machine.zap(index);
                folio.unlock();
                folio.set(Flag::Mlocked);
            }
        })
        .shrink();
    assert_eq!(report.fates[&0], Fate::Kept);
    assert!(machine.folio(0).is_freed(), "its slot names it");
}

/// A reference of somebody else does not stand for the one that the mapping had.
#[test]
fn a_folio_of_nothing_is_kept_whoever_has_it() {
    let machine = Machine::new(NR_CPUS, &[dirty(1)]);
    let report = List::new(&machine, [0])
        .meanwhile(|folio, window| {
            if window == Window::Unlocked {
                assert!(What::Gone.happen(&machine, folio));
                assert!(machine.folio(folio).core.try_get());
            }
        })
        .shrink();
    assert_eq!(
        (report.fates[&0], report.stat.vmscan_write),
        (Fate::Kept, 0)
    );
    assert_eq!(machine.folio(0).core.ref_count(), 1);
}
