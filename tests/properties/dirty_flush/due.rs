// SPDX-License-Identifier: GPL-2.0

//! Which batches are due, from what was given out; and what is true of any run.

use super::*;

/// What is due for what was given out.
#[derive(Default)]
struct Due {
    /// The batches, each with its pages.
    batches: Vec<(u32, Vec<usize>)>,
    /// The pages of one that faults took most of.
    taken_back: u32,
    batch: Vec<usize>,
}

impl Due {
    fn pages(specs: &[Spec], folios: &[usize]) -> u32 {
        // Those of splits are not among the specs.
        let pages = |&folio: &usize| specs.get(folio).map_or(1, |spec| spec.nr);
        folios.iter().map(pages).sum()
    }

    fn close(&mut self, specs: &[Spec], mapped: &dyn Fn(usize) -> bool) {
        let folios = std::mem::take(&mut self.batch);
        let (taken, left): (Vec<_>, Vec<_>) = folios.iter().partition(|&&folio| mapped(folio));
        let (taken, left) = (Self::pages(specs, &taken), Self::pages(specs, &left));
        if taken > left {
            self.taken_back = self.taken_back.max(taken);
        }
        self.batches.push((taken + left, folios));
    }

    /// `mapped`: whether a folio is mapped when it is looked at again.
    fn of(specs: &[Spec], events: &[Event], mapped: &dyn Fn(usize) -> bool) -> Self {
        let mut due = Self::default();
        for &event in events {
            match event {
                Event::Given(folio, owed) => {
                    assert!(owed || !due.batch.is_empty(), "{folio} need not wait");
                    assert_eq!(
                        due.taken_back, 0,
                        "{folio} waits, behind what was taken back"
                    );
                    let too_much = Self::pages(specs, &[&due.batch[..], &[folio]].concat()) > 512;
                    if too_much && !due.batch.is_empty() {
                        due.close(specs, mapped);
                    }
                    due.batch.push(folio);
                    let full = due.batch.len() == 31 || Self::pages(specs, &due.batch) >= 512;
                    if full || !owed || due.taken_back > 0 {
                        due.close(specs, mapped);
                    }
                }
                Event::Exhausted if !due.batch.is_empty() => due.close(specs, mapped),
                _ => (),
            }
        }
        due
    }
}

/// The batches that there were.
pub(super) fn batches(events: &[Event]) -> Vec<(u32, Vec<usize>)> {
    let mut batches: Vec<(u32, Vec<usize>)> = Vec::new();
    for &event in events {
        match event {
            Event::Flushed(nr) => batches.push((nr, Vec::new())),
            Event::Retried(folio) => batches.last_mut().expect("a flush").1.push(folio),
            _ => (),
        }
    }
    batches
}

/// What is true of any run.
pub(super) fn assert_batches(specs: &[Spec], report: &Report, mapped: &dyn Fn(usize) -> bool) {
    let got = batches(&report.events);
    let due = Due::of(specs, &report.events, mapped);
    assert_eq!(got, due.batches);
    for (nr, folios) in &got {
        assert!(folios.len() <= FOLIO_BATCH_SIZE);
        assert!(*nr <= BATCH_PAGES || folios.len() == 1);
    }
    let of = |pick: fn(&Event) -> Option<usize>| -> Vec<_> {
        report.events.iter().filter_map(pick).collect()
    };
    let unlocked = of(|event| match *event {
        Event::Unlocked(folio) => Some(folio),
        _ => None,
    });
    let retried = of(|event| match *event {
        Event::Retried(folio) => Some(folio),
        _ => None,
    });
    assert_eq!(unlocked, retried, "who waits is taken in turn");
    let rest = report.events.iter().find_map(|event| match *event {
        Event::TakenBack(nr) => Some(nr),
        _ => None,
    });
    if let Some(taken_back) = rest {
        assert_eq!(taken_back, due.taken_back);
        return;
    }
    assert_eq!(due.taken_back, 0);
    assert_eq!(report.events.last(), Some(&Event::Exhausted));
    let at_once = specs.iter().filter(|spec| !may_wait(spec)).count();
    assert!(report.flushes <= got.len() + at_once + report.fates.len() / FOLIO_BATCH_SIZE + 1);
}
