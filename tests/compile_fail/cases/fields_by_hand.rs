// SPDX-License-Identifier: GPL-2.0

//! error: E0616 `frames` of struct `PageRange`, `held` of struct `PageRange`
//! error: `0` of struct `LonePage`, `0` of struct `Section`, `0` of struct `PreparedPages`
//! error: `head` of struct `FreeBlock`, `order` of struct `FreeBlock`
//! error: `mm` of struct `PreparedRun`, `left` of struct `PreparedRun`
//! error: `first` of struct `PtePart`, `at` of struct `PtePart`, `nr` of struct `PtePart`
//! error: `0` of struct `RunLength`, `walk` of struct `PteRun`, `nr` of struct `PteRun`
//! error: `walk` of struct `MixedRun`, `nr` of struct `MixedRun`, `ptes` of struct `ClearedRun`
//! error: `stages` of struct `ClearedRun`, `walk` of struct `ClearedPtes`
//! error: `part` of struct `ClearedPtes`, `owed` of struct `ClearedPtes`
//! error: `ptes` of struct `ForGood`, `brand` of struct `ForGood`, `brand` of struct `Gone`
//! error: `0` of struct `Cleared`, `0` of struct `SwapCounted`, `first` of struct `Shareable`
//! error: `nr` of struct `UnmappedRun`, `owed` of struct `UnmappedRun`, `0` of struct `FlushOwed`
//! Nobody takes a token apart, nor, by that, puts one together.

use mm_batch::{
    free::{ContigMm, FreeBlock, Held, LonePage, PageRange, PreparedPages, PreparedRun, Section},
    pte_run::{PtePart, RunLength},
    to_swap::{Shareable, SwapCounted},
    unmap::{
        Cleared, ClearedPtes, ClearedRun, FlushOwed, ForGood, Gone, MixedRun, PteRun, UnmapWalk,
        UnmappedRun,
    },
};

#[cfg(bad)]
pub fn fields<H: Held, M: ContigMm, W: UnmapWalk>(
    a: &PageRange<H>,
    b: &LonePage<H>,
    c: &Section<H>,
    d: &PreparedPages,
    e: &FreeBlock,
    f: &PreparedRun<'_, M>,
    g: &PtePart,
    h: &RunLength,
    i: &PteRun<W>,
    j: &MixedRun<W>,
    k: &ClearedRun<W>,
    l: &ClearedPtes<W>,
    m: &ForGood<'_, W>,
    n: &Gone<'_>,
    o: &Cleared,
    p: &SwapCounted,
    q: &Shareable,
    r: &UnmappedRun,
    s: &FlushOwed,
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
    let _ = &g.first;
    let _ = &g.at;
    let _ = &g.nr;
    let _ = &h.0;
    let _ = &i.walk;
    let _ = &i.nr;
    let _ = &j.walk;
    let _ = &j.nr;
    let _ = &k.ptes;
    let _ = &k.stages;
    let _ = &l.walk;
    let _ = &l.part;
    let _ = &l.owed;
    let _ = &m.ptes;
    let _ = &m.brand;
    let _ = &n.brand;
    let _ = &o.0;
    let _ = &p.0;
    let _ = &q.first;
    let _ = &r.nr;
    let _ = &r.owed;
    let _ = &s.0;
}
