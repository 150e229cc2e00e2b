// SPDX-License-Identifier: GPL-2.0

//! The same of the ports of `folio_batch`.

use super::*;
use mm_batch::{
    batch::FolioBatch,
    folio_batch::{
        shrink_batch,
        unmap_anon_folios,
        unmap_file_folios,
        unmap_lazyfree_folios,
        LazyfreeFoliosWalk, //
    },
    folios::{
        FolioSet,
        FoliosWalk,
        SwapFoliosWalk, //
    }, //
};
use mm_shim::{
    folios::Together,
    tlb::Deferred, //
};

// SAFETY: As of the port.
unsafe impl<P: FoliosWalk> FoliosWalk for Watched<'_, P> {
    fn find(&mut self) -> Option<FolioSet> {
        let Self { port, watch } = self;
        watch.call("find", || port.find())
    }

    handed_on! {
        smp_mb();
    }
    handed_on! { unsafe
        clear_flush(set: FolioSet);
        restore(set: FolioSet);
        end_mappings(set: FolioSet);
        vanish(set: FolioSet);
    }
}

// SAFETY: As of the port.
unsafe impl<P: SwapFoliosWalk> SwapFoliosWalk for Watched<'_, P> {
    handed_on! {
        exclusive(set: FolioSet) -> Option<FolioSet>;
        maybe_dma_pinned(set: FolioSet) -> Option<FolioSet>;
        smp_mb_after_atomic();
    }
    handed_on! { unsafe
        dup_swap(set: FolioSet) -> Option<FolioSet>;
        put_swap(set: FolioSet);
        clear_anon_exclusive(set: FolioSet);
        prepare_for_swap_entries(set: FolioSet);
        set_swp_ptes(set: FolioSet);
    }
}

impl<P: LazyfreeFoliosWalk> LazyfreeFoliosWalk for Watched<'_, P> {
    handed_on! {
        smp_rmb();
        referenced(set: FolioSet) -> Option<FolioSet>;
        redirtied(set: FolioSet) -> Option<FolioSet>;
        set_swapbacked(set: FolioSet);
    }
}

// SAFETY: As of the port.
unsafe impl<P: FolioBatch> FolioBatch for Watched<'_, P> {
    handed_on! {
        check_references();
        alloc_swap();
        unmap();
        free_clean();
        may_wait() -> bool;
        flush_dirty();
    }
    handed_on! { unsafe
        let_go();
        put_back();
    }
}

/// Two folios of one page, both exclusive, and dirty by their PTEs.
fn two(swap: bool, layout: Layout) -> ([Folio; 2], Mm) {
    let folios = [0, 1].map(|i| {
        let folio = match swap {
            true => Folio::in_swap_cache(8 + i, 1, Slots::new(64 + i, &[0], None)),
            false => Folio::new(8 + i, 1),
        };
        folio.map(1);
        folio.anon.set_exclusive(0);
        folio
    });
    (folios, Mm::new(layout, &[pte(8, DIRTY), pte(9, DIRTY)]))
}

fn pinned() -> ([Folio; 2], Mm) {
    let (folios, mm) = two(true, Layout::anonymous(2));
    let page = mm_shim::pte::Table::new(&[pte(8, WRITE)]);
    mm_shim::gup::pin_fast(&page, 0, &folios[0], true).expect("it is writable");
    (folios, mm)
}

fn unmap_anon((folios, mm): &([Folio; 2], Mm), watch: &Watch<'_>) {
    Together::new(folios).stop(mm, 0, |port| unmap_anon_folios(Watched { port, watch }));
}

/// The same of what reclaim has locked.
fn unmap_reclaimed(machine: &Machine, watch: &Watch<'_>) {
    machine.try_to_unmap_folios(&[0], &Deferred::default(), |port| {
        unmap_anon_folios(Watched { port, watch })
    });
}

fn unmap_reclaimed_file(machine: &Machine, watch: &Watch<'_>) {
    machine.try_to_unmap_folios(&[0], &Deferred::default(), |port| {
        unmap_file_folios(Watched { port, watch })
    });
}

fn unmap_reclaimed_lazyfree(machine: &Machine, watch: &Watch<'_>) {
    machine.try_to_unmap_folios(&[0], &Deferred::default(), |port| {
        unmap_lazyfree_folios(Watched { port, watch })
    });
}

/// Given up, and written to since.
fn reclaimed_lazyfree() -> Machine {
    let spec = Spec {
        pte: Some(WRITE | DIRTY),
        flags: vec![Flag::Lazyfree],
        ..Spec::page_of(Mapping::Swap)
    };
    Machine::new(1, &[spec])
}

/// Pinned, and dirty by its PTE.
fn reclaimed_and_pinned() -> Machine {
    let machine = dirty_of(Mapping::Swap);
    machine.pin_and_write(0).expect("it is writable");
    machine
}

fn unmap_files((folios, mm): &([Folio; 2], Mm), watch: &Watch<'_>) {
    Together::new(folios).stop(mm, 0, |port| unmap_file_folios(Watched { port, watch }));
}

fn unmap_lazyfree((folios, mm): &([Folio; 2], Mm), watch: &Watch<'_>) {
    Together::new(folios).stop(mm, 0, |port| unmap_lazyfree_folios(Watched { port, watch }));
}

fn shrink(machine: &Machine, watch: &Watch<'_>) {
    let list = List::new(machine, [0]);
    list.shrink_together(|port| shrink_batch(Watched { port, watch }));
}

orders! {
    Nothing, ports_of_folios: two(true, Layout::anonymous(2)), unmap_anon =>
        find,
        dup_swap,
        clear_flush,
        exclusive,
        maybe_dma_pinned,
        prepare_for_swap_entries,
        clear_anon_exclusive,
        set_swp_ptes;
    Nothing, ports_of_folios_pinned: pinned(), unmap_anon =>
        restore,
        put_swap;
    Nothing, ports_of_reclaimed_folios: dirty(), unmap_reclaimed =>
        find,
        dup_swap,
        clear_flush,
        exclusive,
        maybe_dma_pinned,
        prepare_for_swap_entries,
        clear_anon_exclusive,
        set_swp_ptes;
    Nothing, ports_of_reclaimed_folios_pinned: reclaimed_and_pinned(), unmap_reclaimed =>
        restore,
        put_swap;
    Nothing, ports_of_lazyfree_folios: two(false, Layout::anonymous(2)), unmap_lazyfree =>
        referenced,
        redirtied,
        set_swapbacked;
    Nothing, ports_of_reclaimed_lazyfree: reclaimed_lazyfree(), unmap_reclaimed_lazyfree =>
        referenced,
        redirtied,
        set_swapbacked;
    Nothing, ports_of_folios_together: dirty(), shrink =>
        check_references,
        alloc_swap,
        free_clean,
        let_go;
    All, ports_that_order_folios: two(true, Layout::anonymous(2)), unmap_anon =>
        smp_mb,
        smp_mb_after_atomic,
        end_mappings;
    All, ports_that_order_reclaimed_folios: dirty(), unmap_reclaimed =>
        smp_mb,
        smp_mb_after_atomic,
        end_mappings;
    All, ports_that_order_reclaimed_files: dirty_of(Mapping::File), unmap_reclaimed_file =>
        vanish;
    All, ports_that_order_files: two(false, Layout::file(2)), unmap_files =>
        vanish;
    All, ports_that_order_lazyfree_folios: two(false, Layout::anonymous(2)), unmap_lazyfree =>
        smp_mb;
    All, ports_that_order_reclaimed_lazyfree: reclaimed_lazyfree(), unmap_reclaimed_lazyfree =>
        smp_mb;
    Reads, ports_that_order_reads_of_reclaimed_lazyfree:
        reclaimed_lazyfree(), unmap_reclaimed_lazyfree =>
        smp_rmb;
    Reads, ports_that_order_reads_of_lazyfree: two(false, Layout::anonymous(2)), unmap_lazyfree =>
        smp_rmb;
    All, ports_that_order_folios_together: dirty(), shrink =>
        unmap;
    Reads, ports_that_order_reads_of_folios_together: dirty_of(Mapping::Shmem), shrink =>
        flush_dirty;
}
