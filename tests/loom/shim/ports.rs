// SPDX-License-Identifier: GPL-2.0

//! What a port does for the algorithms orders what C's function does, and no more.
//!
//! A barrier of a port's own, wherever it is hidden in a method, would stand in for one that an
//! algorithm forgets. So the algorithms run on a port that does something of its own right in front
//! of a method and right behind it, on words that nobody else has to do with, while another thread
//! looks; and what a missing barrier lets happen must happen, in each of three ways:
//!
//! * `buffered`: a write in front, a read behind (SB: there is no full barrier);
//! * `written`: a write in front, a write behind (MP: there is no release);
//! * `read`: a read in front, a read behind (MP: there is no acquire).
//!
//! Or must not, where C has a barrier. All methods are in the tables, those which C orders under what
//! it has there.
//!
//! What a method's own access orders is in weak.rs, relaxed.rs and acquire.rs.

use crate::litmus::{
    buffering,
    passing,
    BOTH,
    EARLY,
    NEITHER,
    ONE,
    SEEN,
    STALE, //
};
use mm_batch::{
    anon_unmap,
    contig_free::free_contig_range,
    dirty_flush::shrink_waiting,
    file_unmap,
    free::{
        ContigMm,
        FreeBlock,
        Frozen,
        Held,
        LonePage,
        PreparedPages,
        Refcounted,
        Section, //
    },
    pages::Pfn,
    pte_run::RunLength,
    reclaim::{
        AfterFlush,
        FolioList, //
    },
    to_swap::{
        Sharing,
        SubBatch,
        SwapWalk, //
    },
    unmap::{
        Cleared,
        Part,
        UnmapWalk, //
    }, //
};
use mm_shim::{
    contig_free::{
        self,
        Cpu,
        MAX_PAGE_ORDER, //
    },
    folio::Folio,
    pte::{
        pte,
        DIRTY,
        UFFD_WP,
        WRITE, //
    },
    reclaim::{
        list::List,
        report::Window,
        Flag,
        Machine,
        Mapping,
        Spec, //
    },
    smp::{
        smp_mb,
        smp_rmb, //
    },
    swap::Slots,
    sync::atomic::{
        AtomicI32,
        Ordering::Relaxed, //
    },
    unmap::{
        Layout,
        Mm, //
    }, //
};
use std::{
    cell::Cell,
    num::NonZero, //
};

/// What is done in front of a method and behind it.
struct Watch<'w> {
    method: &'static str,
    in_front: &'w dyn Fn(),
    behind: &'w dyn Fn(),
    called: Cell<bool>,
}

impl Watch<'_> {
    /// A call of a method, of which the first that is watched is.
    fn call<T>(&self, method: &str, call: impl FnOnce() -> T) -> T {
        if method != self.method || self.called.replace(true) {
            return call();
        }
        (self.in_front)();
        let result = call();
        (self.behind)();
        result
    }
}

/// A port that is watched.
struct Watched<'w, P> {
    port: P,
    watch: &'w Watch<'w>,
}

/// Methods that are handed on.
macro_rules! handed_on {
    ($($method:ident($($arg:ident: $type:ty),*) $(-> $result:ty)?;)*) => {$(
        fn $method(&self $(, $arg: $type)*) $(-> $result)? {
            self.watch.call(stringify!($method), || self.port.$method($($arg),*))
        }
    )*};
    (unsafe $($method:ident($($arg:ident: $type:ty),*) $(-> $result:ty)?;)*) => {$(
        unsafe fn $method(&self $(, $arg: $type)*) $(-> $result)? {
            self.watch.call(stringify!($method), || {
                // SAFETY: By the method's requirement.
                unsafe { self.port.$method($($arg),*) }
            })
        }
    )*};
}

// SAFETY: As of the port.
unsafe impl<P: UnmapWalk> UnmapWalk for Watched<'_, P> {
    type View = P::View;

    fn view(&self) -> &P::View {
        self.port.view()
    }

    handed_on! {
        smp_mb();
        folio_test_swapcache() -> bool;
        warn_swapcache();
        folio_mark_dirty();
    }
    handed_on! { unsafe
        clear_flush_ptes(nr: RunLength) -> Cleared;
        flush_before_restore(cleared: &Part<P>);
        set_ptes(cleared: &Part<P>);
        end_mappings(nr: RunLength);
        vanish(cleared: &Part<P>);
    }
}

// SAFETY: As of the port.
unsafe impl<P: SwapWalk> SwapWalk for Watched<'_, P> {
    handed_on! {
        smp_mb_after_atomic();
        folio_maybe_dma_pinned() -> bool;
    }
    handed_on! { unsafe
        folio_dup_swap_pages(nr: RunLength) -> bool;
        folio_put_swap_pages(nr: RunLength);
        page_anon_exclusive_batch(part: &Part<P>) -> SubBatch;
        clear_pages_anon_exclusive(part: &Part<P>);
        prepare_for_swap_entries(nr: RunLength);
        set_swp_ptes(part: &Part<P>, sharing: Sharing);
    }
}

impl<P: file_unmap::LazyfreeWalk> file_unmap::LazyfreeWalk for Watched<'_, P> {
    handed_on! {
        smp_rmb();
        folio_extra_refs() -> i32;
        folio_test_dirty() -> bool;
        vma_droppable() -> bool;
        folio_set_swapbacked();
    }
}

// SAFETY: Each answer is the model's.
unsafe impl<P: ContigMm> ContigMm for Watched<'_, P> {
    const MAX_PAGE_ORDER: u32 = MAX_PAGE_ORDER;

    fn free_page<H: Held>(&self, page: LonePage<H>) {
        self.watch.call("free_page", || self.port.free_page(page));
    }

    fn prepare_run<H: Held>(
        &self,
        pages: Section<H>,
    ) -> (Option<PreparedPages>, Option<Section<H>>) {
        self.watch
            .call("prepare_run", || self.port.prepare_run(pages))
    }

    handed_on! {
        contiguous_struct_pages(first: Pfn) -> NonZero<usize>;
        free_prepared(block: FreeBlock);
    }
    handed_on! { unsafe
        same_zone(a: Pfn, b: Pfn) -> bool;
    }
}

// SAFETY: As of the port.
unsafe impl<P: FolioList> FolioList for Watched<'_, P> {
    type Folio = P::Folio;
    type Mapping = P::Mapping;

    handed_on! {
        try_to_unmap_flush_dirty();
        next_waiting(flush: &AfterFlush) -> Option<P::Folio>;
        folio_nr_pages(folio: &P::Folio) -> NonZero<u32>;
        folio_trylock(folio: &P::Folio, flush: &AfterFlush) -> bool;
        folio_contain_hwpoisoned_page(folio: &P::Folio) -> bool;
        folio_mapped(folio: &P::Folio) -> bool;
        folio_maybe_dma_pinned(folio: &P::Folio) -> bool;
        folio_evictable(folio: &P::Folio) -> bool;
        folio_test_writeback(folio: &P::Folio) -> bool;
        no_other_references(folio: &P::Folio) -> bool;
        folio_mapping(folio: &P::Folio) -> Option<P::Mapping>;
    }
    handed_on! { unsafe
        pageout(folio: P::Folio, mapping: P::Mapping);
        keep(folio: P::Folio);
        keep_locked(folio: P::Folio);
        activate_locked(folio: P::Folio);
        unmap_failed_locked(folio: P::Folio);
    }
}

/// What an algorithm runs on, and the words of those who watch.
struct Shim<T> {
    mm: T,
    x: AtomicI32,
    y: AtomicI32,
}

impl<T> From<T> for Shim<T> {
    fn from(mm: T) -> Self {
        Self {
            mm,
            x: AtomicI32::new(0),
            y: AtomicI32::new(0),
        }
    }
}

impl<T> Shim<T> {
    fn set_x(&self) {
        self.x.store(1, Relaxed);
    }

    fn set_y(&self) {
        self.y.store(1, Relaxed);
    }

    fn x(&self) -> bool {
        self.x.load(Relaxed) == 1
    }

    fn y(&self) -> bool {
        self.y.load(Relaxed) == 1
    }
}

/// What is ordered by a method.
#[derive(Clone, Copy)]
enum Order {
    Nothing,
    /// `smp_rmb()`
    Reads,
    /// `smp_mb()`, on both sides of what else it does.
    All,
}
use Order::{
    All,
    Nothing,
    Reads, //
};

impl Order {
    const fn buffered(self) -> &'static [&'static str] {
        match self {
            All => &[ONE, BOTH],
            Nothing | Reads => &[ONE, BOTH, NEITHER],
        }
    }

    const fn written(self) -> &'static [&'static str] {
        match self {
            All => &[EARLY, SEEN],
            Nothing | Reads => &[EARLY, SEEN, STALE],
        }
    }

    const fn read(self) -> &'static [&'static str] {
        match self {
            All | Reads => &[EARLY, SEEN],
            Nothing => &[EARLY, SEEN, STALE],
        }
    }
}

/// Runs `run` with that method watched.
fn watched<T>(
    mm: &T,
    run: fn(&T, &Watch<'_>),
    method: &'static str,
    in_front: impl Fn(),
    behind: impl Fn(),
) {
    let watch = Watch {
        method,
        in_front: &in_front,
        behind: &behind,
        called: Cell::new(false),
    };
    run(mm, &watch);
    assert!(watch.called.get(), "{method} is not called");
}

/// Each method of a table is a module of three tests, on what `make` makes and `run` runs on.
macro_rules! orders {
    ($($order:ident, $table:ident: $make:expr, $run:expr => $($method:ident),* $(,)?;)*) => {$(
        mod $table {
            use super::*;

            $(mod $method {
                use super::*;

                #[test]
                fn buffered() {
                    buffering(
                        || Shim::from($make),
                        |shim| {
                            let seen = Cell::new(false);
                            let look = || seen.set(shim.y());
                            watched(&shim.mm, $run, stringify!($method), || shim.set_x(), look);
                            seen.get()
                        },
                        |shim| {
                            shim.set_y();
                            smp_mb();
                            shim.x()
                        },
                        $order.buffered(),
                    );
                }

                #[test]
                fn written() {
                    passing(
                        || Shim::from($make),
                        |shim| {
                            let method = stringify!($method);
                            watched(&shim.mm, $run, method, || shim.set_x(), || shim.set_y());
                        },
                        |shim| {
                            let second = shim.y();
                            smp_rmb();
                            (second, shim.x())
                        },
                        $order.written(),
                    );
                }

                #[test]
                fn read() {
                    passing(
                        || Shim::from($make),
                        |shim| {
                            shim.set_x();
                            smp_mb();
                            shim.set_y();
                        },
                        |shim| {
                            let (second, first) = (Cell::new(false), Cell::new(false));
                            let method = stringify!($method);
                            let look = || second.set(shim.y());
                            let look_again = || first.set(shim.x());
                            watched(&shim.mm, $run, method, look, look_again);
                            (second.get(), first.get())
                        },
                        $order.read(),
                    );
                }
            })*
        }
    )*};
}

/// A folio of two pages, one of them exclusive, that is mapped whole.
fn anon(swap: Option<Slots>) -> (Folio, Mm) {
    let folio = match swap {
        Some(slots) => Folio::in_swap_cache(8, 2, slots),
        None => Folio::new(8, 2),
    };
    folio.map(2);
    folio.anon.set_exclusive(0);
    let words = [pte(8, DIRTY), pte(9, 0)];
    (folio, Mm::new(Layout::anonymous(2), &words))
}

fn file() -> (Folio, Mm) {
    let folio = Folio::new(8, 2);
    folio.map(2);
    let layout = Layout {
        uffd_wp: true,
        ..Layout::file(2)
    };
    let words = [pte(8, UFFD_WP), pte(9, UFFD_WP | DIRTY)];
    (folio, Mm::new(layout, &words))
}

fn unmap_to_swap((folio, mm): &(Folio, Mm), watch: &Watch<'_>) {
    let _ = mm.walk(folio, 0, |port| {
        anon_unmap::unmap_run(Watched { port, watch })
    });
}

fn unmap_file((folio, mm): &(Folio, Mm), watch: &Watch<'_>) {
    mm.walk(folio, 0, |port| {
        file_unmap::unmap_file_run(Watched { port, watch }, true)
    });
}

fn unmap_lazyfree((folio, mm): &(Folio, Mm), watch: &Watch<'_>) {
    let _ = mm.walk(folio, 0, |port| {
        file_unmap::unmap_lazyfree_run(Watched { port, watch })
    });
}

/// A page that is dirty by its PTE, for which a flush is owed once it is unmapped.
fn dirty() -> Machine {
    dirty_of(Mapping::Swap)
}

fn dirty_of(mapping: Mapping) -> Machine {
    let spec = Spec {
        pte: Some(WRITE | DIRTY),
        ..Spec::page_of(mapping)
    };
    Machine::new(1, &[spec])
}

/// Writes out the page, to which `happens` while it waits.
fn reclaim(machine: &Machine, watch: &Watch<'_>, happens: fn(&Machine)) {
    List::new(machine, [0])
        .meanwhile(|_, window| {
            if window == Window::Unlocked {
                happens(machine);
            }
        })
        .by(|port, nr_pages| shrink_waiting(Watched { port, watch }, nr_pages))
        .shrink();
}

fn write_out(machine: &Machine, watch: &Watch<'_>) {
    reclaim(machine, watch, |_| ());
}

fn keep(machine: &Machine, watch: &Watch<'_>) {
    reclaim(machine, watch, |machine| {
        assert!(machine.folio(0).trylock())
    });
}

fn keep_locked(machine: &Machine, watch: &Watch<'_>) {
    reclaim(machine, watch, |machine| {
        machine.folio(0).set(Flag::Writeback)
    });
}

fn activate(machine: &Machine, watch: &Watch<'_>) {
    reclaim(machine, watch, |machine| {
        machine.folio(0).set(Flag::Unevictable)
    });
}

fn fault(machine: &Machine, watch: &Watch<'_>) {
    reclaim(machine, watch, |machine| assert!(machine.fault(0, true)));
}

fn free<H: Held, const NR: usize>(mm: &contig_free::Mm, watch: &Watch<'_>) {
    let port = Cpu::new(mm, 0);
    free_contig_range(&Watched { port, watch }, contig_free::range::<H>(8, NR));
}

fn pages<H: Held, const NR: usize>() -> contig_free::Mm {
    let mut layout = contig_free::Layout::plain(8, NR);
    layout.counts = vec![i32::from(!H::FROZEN); NR];
    contig_free::Mm::new(layout)
}

orders! {
    Nothing, ports_to_swap: anon(Some(Slots::new(64, &[0, 0], None))), unmap_to_swap =>
        folio_test_swapcache,
        clear_flush_ptes,
        folio_mark_dirty,
        folio_dup_swap_pages,
        page_anon_exclusive_batch,
        folio_maybe_dma_pinned,
        prepare_for_swap_entries,
        clear_pages_anon_exclusive,
        set_swp_ptes;
    Nothing, ports_to_swap_pinned: {
            let (folio, mm) = anon(Some(Slots::new(64, &[0, 0], None)));
            let page = mm_shim::pte::Table::new(&[pte(8, WRITE)]);
            mm_shim::gup::pin_fast(&page, 0, &folio, true).expect("it is writable");
            (folio, mm)
        }, unmap_to_swap =>
        folio_put_swap_pages,
        flush_before_restore,
        set_ptes;
    Nothing, ports_to_no_swap: anon(None), unmap_to_swap =>
        warn_swapcache;
    Nothing, ports_of_lazyfree: anon(None), unmap_lazyfree =>
        folio_test_swapcache,
        folio_extra_refs,
        folio_test_dirty,
        vma_droppable,
        folio_set_swapbacked;
    Nothing, ports_of_a_range: pages::<Frozen, 2>(), free::<Frozen, 2> =>
        contiguous_struct_pages,
        prepare_run,
        same_zone,
        free_prepared;
    Nothing, ports_of_a_page: pages::<Frozen, 1>(), free::<Frozen, 1> =>
        free_page;
    Nothing, ports_of_a_batch: dirty(), write_out =>
        next_waiting,
        folio_contain_hwpoisoned_page,
        folio_mapped,
        folio_maybe_dma_pinned,
        folio_evictable,
        folio_test_writeback,
        no_other_references,
        folio_mapping;
    Nothing, ports_of_a_batch_kept: dirty(), keep =>
        keep;
    Nothing, ports_of_a_batch_kept_locked: dirty(), keep_locked =>
        keep_locked;
    Nothing, ports_of_a_batch_activated: dirty(), activate =>
        activate_locked;
    Nothing, ports_of_a_batch_mapped: dirty(), fault =>
        folio_nr_pages,
        unmap_failed_locked;
    All, ports_that_order_to_swap: anon(Some(Slots::new(64, &[0, 0], None))), unmap_to_swap =>
        smp_mb,
        smp_mb_after_atomic,
        end_mappings;
    All, ports_that_order_a_file: file(), unmap_file =>
        vanish;
    All, ports_that_order_lazyfree: anon(None), unmap_lazyfree =>
        smp_mb;
    Reads, ports_that_order_reads: anon(None), unmap_lazyfree =>
        smp_rmb;
    Reads, ports_that_order_reads_of_a_batch: dirty(), write_out =>
        try_to_unmap_flush_dirty,
        folio_trylock;
    All, ports_that_order_a_batch: dirty(), write_out =>
        pageout;
    All, ports_that_order_a_range: pages::<Refcounted, 2>(), free::<Refcounted, 2> =>
        prepare_run;
    All, ports_that_order_a_page: pages::<Refcounted, 1>(), free::<Refcounted, 1> =>
        free_page;
}

mod folios;
