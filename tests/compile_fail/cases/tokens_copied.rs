// SPDX-License-Identifier: GPL-2.0

//! error: E0277 PageRange<, LonePage<, Section<, PreparedPages:, FreeBlock:, PreparedRun<
//! error: PtePart<, PteRun<, MixedRun<, ClearedRun<, CountedRun<, ShareableRun<
//! error: AfterFlush:, Flushed<, Locked<, Revalidated<
//! error: FoundFolios<, CountedFolios<, ClearedFolios<, SwapFolios<, ShareableFolios<
//! error: Collected<, Checked<, Placed<, Unmapped<, LeftFolios<
//! right: T: Clone -> T
//! There is one token for each thing, and so it is of no kind that can be cloned.

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
    pte::PteArch,
    pte_run::PtePart,
    reclaim::{
        AfterFlush,
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
        PteRun, //
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
pub fn of_ptes<W: SwapWalk + Clone, A: PteArch + Clone>(
    a: PtePart<A>,
    b: PteRun<W>,
    c: MixedRun<W>,
    d: ClearedRun<W>,
    e: CountedRun<W>,
    f: ShareableRun<W>,
) {
    cloned(&a);
    cloned(&b);
    cloned(&c);
    cloned(&d);
    cloned(&e);
    cloned(&f);
}

#[cfg(bad)]
pub fn of_folios<L: FolioList + Clone>(
    a: AfterFlush,
    b: Flushed<L>,
    c: Locked<'_, L>,
    d: Revalidated<'_, L>,
) {
    cloned(&a);
    cloned(&b);
    cloned(&c);
    cloned(&d);
}

#[cfg(bad)]
pub fn of_a_stop<W: SwapFoliosWalk + Clone>(
    a: FoundFolios<'_, W>,
    b: CountedFolios<'_, W>,
    c: ClearedFolios<'_, W>,
    d: SwapFolios<'_, W>,
    e: ShareableFolios<'_, W>,
) {
    cloned(&a);
    cloned(&b);
    cloned(&c);
    cloned(&d);
    cloned(&e);
}

#[cfg(bad)]
pub fn of_a_batch<B: FolioBatch + Clone>(
    a: Collected<B>,
    b: Checked<B>,
    c: Placed<B>,
    d: Unmapped<B>,
    e: LeftFolios<B>,
) {
    cloned(&a);
    cloned(&b);
    cloned(&c);
    cloned(&d);
    cloned(&e);
}
