// SPDX-License-Identifier: GPL-2.0

//! What becomes of a folio to which nothing happens meanwhile, and what is counted of it: by
//! `shrink_folio_list()`, mm/vmscan.c, 7.3, from what the folio is, and by no code of the shim, whose
//! loops have most of theirs in common.

use super::*;
use mm_shim::reclaim::report::Stat;

/// Adds up what is counted.
pub(super) fn add(a: Stat, b: Stat) -> Stat {
    Stat {
        nr_scanned: a.nr_scanned + b.nr_scanned,
        nr_reclaimed: a.nr_reclaimed + b.nr_reclaimed,
        nr_activate: a.nr_activate + b.nr_activate,
        nr_unmap_fail: a.nr_unmap_fail + b.nr_unmap_fail,
        nr_lazyfree_fail: a.nr_lazyfree_fail + b.nr_lazyfree_fail,
        nr_ref_keep: a.nr_ref_keep + b.nr_ref_keep,
        nr_writeback: a.nr_writeback + b.nr_writeback,
        nr_immediate: a.nr_immediate + b.nr_immediate,
        nr_dirty: a.nr_dirty + b.nr_dirty,
        vmscan_write: a.vmscan_write + b.vmscan_write,
    }
}

/// Of one folio, with the pages that come of it if it is split.
pub(super) fn expected(spec: &Spec) -> (Fate, Stat) {
    let has = |flag| spec.flags.contains(&flag);
    let nr = u64::from(spec.nr);
    let mut stat = Stat::default();
    if spec.locked {
        return (Fate::Kept, stat);
    }
    if has(Flag::Poisoned) {
        let fate = if nr > 1 { Fate::Kept } else { Fate::Dropped };
        return (fate, stat);
    }
    // What is waited for is looked at once more. Of a file it is counted as dirty until then.
    let looks = 1 + u64::from(has(Flag::WaitedFor));
    stat.nr_scanned = nr * looks;
    if has(Flag::Mlocked) {
        return (Fate::Kept, stat);
    }
    if has(Flag::Unevictable) {
        stat.nr_activate = nr;
        return (Fate::Activated, stat);
    }
    if spec.mapping == Mapping::File {
        let known_dirty = spec.dirty || has(Flag::Writeback);
        stat.nr_dirty = nr * (looks - 1 + u64::from(known_dirty));
    }
    if has(Flag::Writeback) {
        stat.nr_writeback = nr;
        stat.nr_activate = nr;
        return (Fate::Activated, stat);
    }
    if has(Flag::Referenced) {
        stat.nr_ref_keep = nr;
        return (Fate::Kept, stat);
    }
    let left_to_flushers = Stat {
        nr_immediate: nr,
        nr_activate: nr,
        ..stat
    };
    if spec.dirty && spec.mapping == Mapping::File {
        return (Fate::Activated, left_to_flushers);
    }
    if spec.pte.is_some() && has(Flag::Stuck) {
        stat.nr_unmap_fail = nr;
        stat.nr_activate = nr;
        return (Fate::Activated, stat);
    }
    let dirty = spec.dirty || spec.pte.is_some_and(|pte| pte & DIRTY != 0);
    if dirty && spec.mapping == Mapping::File {
        return (Fate::Activated, left_to_flushers);
    }
    if dirty && spec.write == Write::Refused {
        stat.nr_activate = nr;
        return (Fate::Activated, stat);
    }
    if dirty {
        stat.vmscan_write = nr;
    }
    if dirty && matches!(spec.write, Write::Failed | Write::Begun) {
        return (Fate::Kept, stat);
    }
    stat.nr_reclaimed = nr;
    (Fate::Reclaimed, stat)
}

/// What a list ends as: the fates of its folios, and the sum of what is counted.
pub(super) fn assert_ends_as_expected(specs: &[Spec], report: &Report) {
    let mut sum = Stat::default();
    for (index, spec) in specs.iter().enumerate() {
        let (fate, stat) = expected(spec);
        assert_eq!(report.fates[&index], fate, "folio {index}, {spec:?}");
        sum = add(sum, stat);
    }
    let mut parts = report.fates.range(specs.len()..);
    assert!(parts.all(|(_, &fate)| fate == Fate::Reclaimed));
    assert_eq!(report.stat, sum);
}
