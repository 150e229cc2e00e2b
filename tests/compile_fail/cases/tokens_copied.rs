// SPDX-License-Identifier: GPL-2.0

//! error: E0277 PageRange<, LonePage<, Section<, PreparedPages:, FreeBlock:, PreparedRun<
//! error: PtePart:, PteRun<, MixedRun<, ClearedRun<, ClearedPtes<, ForGood<, Gone<, Cleared:
//! error: SwapCounted:, Shareable:, UnmappedRun:, FlushOwed:, FolioLock<, Unmapping<, Unmapped<
//! error: Waiting<, Collecting<, Flushed<, Settled<, Locked<, Revalidated<, PutBack<
//! right: T: Clone -> T
//! There is one token for each thing, and so it is of no kind that can be cloned.

use mm_batch::{
    free::{ContigMm, FreeBlock, Held, LonePage, PageRange, PreparedPages, PreparedRun, Section},
    pte_run::PtePart,
    reclaim::{
        Collecting, Flushed, FolioList, FolioLock, Locked, PutBack, Revalidated, Settled, Unmapped,
        Unmapping, Waiting,
    },
    to_swap::{Shareable, SwapCounted},
    unmap::{
        Cleared, ClearedPtes, ClearedRun, FlushOwed, ForGood, Gone, MixedRun, PteRun, UnmapWalk,
        UnmappedRun,
    },
};

pub fn cloned<T: Clone>(_: &T) {}

#[cfg(bad)]
pub fn of_pages<H: Held + Clone, M: ContigMm + Clone>(
    a: PageRange<H>,
    b: LonePage<H>,
    c: Section<H>,
    d: PreparedPages,
    e: FreeBlock,
    f: PreparedRun<'_, M>,
) {
    cloned(&a);
    cloned(&b);
    cloned(&c);
    cloned(&d);
    cloned(&e);
    cloned(&f);
}

#[cfg(bad)]
pub fn of_ptes<W: UnmapWalk + Clone>(
    a: PtePart,
    b: PteRun<W>,
    c: MixedRun<W>,
    d: ClearedRun<W>,
    e: ClearedPtes<W>,
    f: ForGood<'_, W>,
    g: Gone<'_>,
    h: Cleared,
    i: SwapCounted,
    j: Shareable,
    k: UnmappedRun,
    l: FlushOwed,
) {
    cloned(&a);
    cloned(&b);
    cloned(&c);
    cloned(&d);
    cloned(&e);
    cloned(&f);
    cloned(&g);
    cloned(&h);
    cloned(&i);
    cloned(&j);
    cloned(&k);
    cloned(&l);
}

#[cfg(bad)]
pub fn of_folios<'r, L: FolioList + Clone>(
    a: FolioLock<'r>,
    b: Unmapping<'r, L>,
    c: Unmapped<'r, L>,
    d: Waiting<'r, L>,
    e: Collecting<'r, L>,
    f: Flushed<'_, '_, 'r, L>,
    g: Settled<'r, L>,
    h: Locked<'r, L>,
    i: Revalidated<'r, L>,
    j: PutBack<'r>,
) {
    cloned(&a);
    cloned(&b);
    cloned(&c);
    cloned(&d);
    cloned(&e);
    cloned(&f);
    cloned(&g);
    cloned(&h);
    cloned(&i);
    cloned(&j);
}
