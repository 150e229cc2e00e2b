// SPDX-License-Identifier: GPL-2.0

//! Which batches are due, from which folios wait; and what is true of any run.

use super::*;

/// What is due for the folios that wait.
#[derive(Default)]
struct Due {
    batches: Vec<Vec<usize>>,
    /// The pages of one that faults took most of.
    taken_back: u32,
    batch: Vec<usize>,
}

fn pages(specs: &[Spec], folios: &[usize]) -> u32 {
    folios.iter().map(|&folio| specs[folio].nr).sum()
}

impl Due {
    fn close(&mut self, specs: &[Spec], mapped: &dyn Fn(usize) -> bool) {
        let folios = std::mem::take(&mut self.batch);
        let (taken, left): (Vec<_>, Vec<_>) = folios.iter().partition(|&&folio| mapped(folio));
        if pages(specs, &taken) > pages(specs, &left) {
            self.taken_back = pages(specs, &taken);
        }
        self.batches.push(folios);
    }

    /// `mapped`: whether a folio is mapped when it is looked at again.
    fn of(specs: &[Spec], events: &[Event], mapped: &dyn Fn(usize) -> bool) -> Self {
        let mut due = Self::default();
        for &event in events {
            match event {
                Event::Waits(folio) => {
                    assert!(may_wait(&specs[folio]), "{folio} may not wait");
                    assert_eq!(
                        due.taken_back, 0,
                        "{folio} waits, though most is taken back"
                    );
                    due.batch.push(folio);
                    let full = due.batch.len() == 32 || pages(specs, &due.batch) >= 512;
                    if full {
                        due.close(specs, mapped);
                    }
                }
                // At the end of the list, or where writeback is waited for.
                Event::Flushed(_) if !due.batch.is_empty() => due.close(specs, mapped),
                _ => (),
            }
        }
        due
    }
}

/// The batches that there were.
pub(super) fn batches(events: &[Event]) -> Vec<Vec<usize>> {
    let mut batches: Vec<Vec<usize>> = Vec::new();
    for &event in events {
        match event {
            Event::Flushed(_) => batches.push(Vec::new()),
            Event::Retried(folio) => batches.last_mut().expect("a flush").push(folio),
            _ => (),
        }
    }
    batches
}

/// What is true of any run.
pub(super) fn assert_batches(specs: &[Spec], report: &Report, mapped: &dyn Fn(usize) -> bool) {
    let got = batches(&report.events);
    let due = Due::of(specs, &report.events, mapped);
    assert_eq!(got, due.batches, "those that wait are taken in turn");
    let sizes = report.events.iter().filter_map(|event| match *event {
        Event::Flushed(nr) => Some(nr),
        _ => None,
    });
    assert!(sizes.eq(got.iter().map(Vec::len)));
    for folios in &got {
        assert!(folios.len() <= WAITING_FOLIOS);
        let [before @ .., _last] = &folios[..] else {
            panic!("a batch of none");
        };
        assert!(pages(specs, before) < WAITING_PAGES);
    }
    let taken_back = report.events.iter().find_map(|event| match *event {
        Event::TakenBack(nr) => Some(nr),
        _ => None,
    });
    assert_eq!(taken_back.unwrap_or(0), due.taken_back);
    if taken_back.is_none() {
        let at_once = specs.iter().filter(|spec| !may_wait(spec)).count();
        assert!(report.flushes <= got.len() + at_once + report.fates.len() / FOLIO_BATCH_SIZE + 1);
    }
}
