// SPDX-License-Identifier: GPL-2.0

//! error: E0616 `frames` of struct `PageRange`, `held` of struct `PageRange`
//! error: `0` of struct `LonePage`, `0` of struct `Section`, `0` of struct `PreparedPages`
//! error: `head` of struct `FreeBlock`, `order` of struct `FreeBlock`
//! error: `mm` of struct `PreparedRun`, `left` of struct `PreparedRun`
//! error: `first` of struct `PtePart`, `at` of struct `PtePart`, `nr` of struct `PtePart`
//! error: `0` of struct `RunLength`, `walk` of struct `PteRun`, `nr` of struct `PteRun`
//! error: `walk` of struct `MixedRun`, `nr` of struct `MixedRun`, `0` of struct `ClearedRun`
//! error: `0` of struct `CountedRun`, `run` of struct `ShareableRun`, `first` of struct `ShareableRun`
//! error: `list` of struct `Flushed`, `flush` of struct `Flushed`
//! error: `list` of struct `Locked`, `folio` of struct `Locked`
//! error: `folio` of struct `Revalidated`, `mapping` of struct `Revalidated`
//! error: `walk` of struct `FoundFolios`, `set` of struct `FoundFolios`
//! error: `walk` of struct `CountedFolios`, `set` of struct `CountedFolios`
//! error: `walk` of struct `ClearedFolios`, `set` of struct `ClearedFolios`
//! error: `cleared` of struct `SwapFolios`, `counted` of struct `SwapFolios`
//! error: `folios` of struct `ShareableFolios`, `exclusive` of struct `ShareableFolios`
//! error: `0` of struct `Collected`, `0` of struct `Checked`, `0` of struct `Placed`
//! error: `0` of struct `Unmapped`, `0` of struct `LeftFolios`, `0` of struct `FolioSet`
//! Nobody takes a token apart, nor, by that, puts one together.

use mm_batch::{
    batch::{
        Checked,
        Collected,
        FolioBatch,
        LeftFolios,
        Placed,
        Unmapped, //
    },
    folios::{
        ClearedFolios,
        CountedFolios,
        FolioSet,
        FoundFolios,
        ShareableFolios,
        SwapFolios,
        SwapFoliosWalk, //
    },
    free::{
        ContigMm,
        FreeBlock,
        Held,
        LonePage,
        PageRange,
        PreparedPages,
        PreparedRun,
        Section, //
    },
    pte_run::RunLength,
    reclaim::{
        Flushed,
        FolioList,
        Locked,
        Revalidated, //
    },
    to_swap::{
        CountedRun,
        ShareableRun,
        SwapWalk, //
    },
    unmap::{
        ClearedRun,
        MixedRun,
        Part,
        PteRun, //
    },
};

#[cfg(bad)]
pub fn of_pages<H: Held, M: ContigMm>(
    a: &PageRange<H>,
    b: &LonePage<H>,
    c: &Section<H>,
    d: &PreparedPages,
    e: &FreeBlock,
    f: &PreparedRun<'_, M>,
) {
    let _ = &a.frames;
    let _ = &a.held;
    let _ = &b.0;
    let _ = &c.0;
    let _ = &d.0;
    let _ = &e.head;
    let _ = &e.order;
    let _ = &f.mm;
    let _ = &f.left;
}

#[cfg(bad)]
pub fn of_ptes<W: SwapWalk>(
    a: &Part<W>,
    b: &RunLength,
    c: &PteRun<W>,
    d: &MixedRun<W>,
    e: &ClearedRun<W>,
    f: &CountedRun<W>,
    g: &ShareableRun<W>,
) {
    let _ = &a.first;
    let _ = &a.at;
    let _ = &a.nr;
    let _ = &b.0;
    let _ = &c.walk;
    let _ = &c.nr;
    let _ = &d.walk;
    let _ = &d.nr;
    let _ = &e.0;
    let _ = &f.0;
    let _ = &g.run;
    let _ = &g.first;
}

#[cfg(bad)]
pub fn of_folios<L: FolioList>(a: &Flushed<L>, b: &Locked<'_, L>, c: &Revalidated<'_, L>) {
    let _ = &a.list;
    let _ = &a.flush;
    let _ = &b.list;
    let _ = &b.folio;
    let _ = &c.folio;
    let _ = &c.mapping;
}

#[cfg(bad)]
pub fn of_a_stop<W: SwapFoliosWalk>(
    a: &FoundFolios<'_, W>,
    b: &CountedFolios<'_, W>,
    c: &ClearedFolios<'_, W>,
    d: &SwapFolios<'_, W>,
    e: &ShareableFolios<'_, W>,
    f: &FolioSet,
) {
    let _ = &a.walk;
    let _ = &a.set;
    let _ = &b.walk;
    let _ = &b.set;
    let _ = &c.walk;
    let _ = &c.set;
    let _ = &d.cleared;
    let _ = &d.counted;
    let _ = &e.folios;
    let _ = &e.exclusive;
    let _ = &f.0;
}

#[cfg(bad)]
pub fn of_a_batch<B: FolioBatch>(
    a: &Collected<B>,
    b: &Checked<B>,
    c: &Placed<B>,
    d: &Unmapped<B>,
    e: &LeftFolios<B>,
) {
    let _ = &a.0;
    let _ = &b.0;
    let _ = &c.0;
    let _ = &d.0;
    let _ = &e.0;
}
