# SPDX-License-Identifier: GPL-2.0
"""contig_free: freeing ranges of order-0 pages."""

from .model import Boot, KunitBoot, Limits, Path, Row, TimedRow, everywhere

ABOUT = """The figures are per page, or per loop of test_vmalloc.

`off` is page by page, `{head}` {c}, `Rust` this project's. Rust is ahead of 7.3's
batch because of its algorithm: one walk over contiguous struct pages, and a prepare that is inlined where no hook is on.
C can have that as well (patches/contig_free_c/): with `CONFIG=better_c` there is the twin.

The order rows free with interrupts off, and the block that comes and goes has neighbours that stay allocated, so
that it merges with nothing; cma16384 is cma_release() alone. Pages are not cleared when they are handed out
(init_on_alloc=0), which is part of a loop of test_vmalloc."""

# The module mm_batch_bench, and upstream's test_vmalloc.
BENCH = Boot("bench", "bench.sh")

# test_vmalloc, relative to v6.18 (v6.19-rc1 -> with the change), % on arm64: the seed's table.
VMALLOC_PUBLISHED = {
    (1, 0): "0.10 -> -1.04", (4, 0): "-22.74 -> +14.12", (16, 0): "-23.63 -> +43.81",
    (16, 1): "-1.58 -> +102.28", (64, 0): "-24.39 -> +89.64", (64, 1): "+2.34 -> +181.42",
    (256, 0): "-23.29 -> +111.05", (256, 1): "+3.74 -> +213.52", (512, 0): "-23.80 -> +118.28",
    (512, 1): "-2.84 -> +427.65",
}


# Rust/off at most: a page by itself is to cost no more.
NOTHING = everywhere(1.00)
# Beyond the twin, per range: Rust looks for zones as well.
SLACK = 20


def at_most(ratio):
    """Rust/C, the same in each configuration; Rust/twin where there is one."""
    return Limits(release=ratio, distro=ratio, noinline=ratio, better_c=1.02)


def slack(instructions):
    return Limits(release=None, distro=None, noinline=None, better_c=instructions)


def bench(workload, loops, ratio, pages, **kw):
    return Row(workload, f"bench {workload} {{loops}}", "insn_per_page", "page", BENCH, at_most(ratio), loops=loops,
               slack=slack(SLACK / pages), **kw)


def vmalloc(pages, huge):
    published = VMALLOC_PUBLISHED.get((pages, huge))
    return Row(f"vmalloc-p{pages}-h{huge}", f"vmalloc {pages} {huge} {{loops}}", "insn_per_loop",
               "loop of test_vmalloc", BENCH, at_most(1.02), loops=max(40000 // pages, 500),
               slack=slack(SLACK), published=published and published + " %")


# Workload -> loops of some milliseconds, and how many ranges are freed in each.
TIMED = {"order0": "4000 64", "order3": "1000 64", "order4": "500 64", "order9": "50 16", "range3077": "60"}

# Hooks that freeing must not miss: name -> what turns it on. KASAN, lockdep, debug objects,
# page_table_check and allocation tags are always on in the debug kernel.
HOOKS = {"page_owner": "page_owner=on", "page_table_check": "page_table_check=on", "page_poison": "page_poison=1",
         "init_on_free": "init_on_free=1"}
# Those that CONFIG=distro does not have.
SYMBOLS = {"page_owner": "CONFIG_PAGE_OWNER", "page_table_check": "CONFIG_PAGE_TABLE_CHECK"}
DEBUG = {"kasan", "no_locks", "no_objects", "page_table_check", "alloc_tag", "faults"}

PATH = Path(
    name="contig_free",
    about=ABOUT,
    rows=(
        bench("order0", 8000, 1.00, 1, not_above=NOTHING),
        bench("order3", 2000, 1.02, 8),
        bench("order4", 2000, 0.85, 16, aim=0.57),
        bench("order9", 100, 0.75, 512, aim=0.37, published="1,684,366 -> 136,216 us"),
        bench("range3077", 4, 1.02, 3077),
        *(vmalloc(pages, huge) for huge in (0, 1) for pages in (1, 4, 16, 64, 256, 512)),
        bench("cma16384", 2, 1.02, 16384, published="1406 -> 402 us"),
    ),
    # Without test_vmalloc: what vmalloc() maps is a system call of the host for each page in User Mode Linux.
    timed=tuple(TimedRow(row, f"bench {row} {loops}", BENCH, counted=row) for row, loops in TIMED.items()),
    suites=("mm_batch_pages", "mm_batch_block_order", "mm_batch_contig_free", "mm_batch_hooks"),
    suites_late=("guest_mm_batch",),
    twin="the same algorithm in C (patches/contig_free_c/)",
    uml_lacks=("mm_batch_contig_free.test_cma", "mm_batch_contig_free.test_hwpoison"),
    boot_needs="cma=160M",
    conditions={f"mm_batch_hooks.test_{hook}": hook for hook in {*HOOKS, "kasan", "no_locks", "no_objects", "alloc_tag",
                                                                     "direct_map"}}
    | {"mm_batch_contig_free.test_fault_prepare": "faults"},
    kunit_boots=(
        KunitBoot("kunit", "release"),
        # One hook at a time: with two on, the gate of the fast prepare may forget either.
        *(KunitBoot(f"kunit-{hook.replace('_', '-')}", "release", argument, frozenset({hook}), symbol=SYMBOLS.get(hook))
          for hook, argument in HOOKS.items()),
        KunitBoot("kunit", "debug", "page_owner=on page_poison=1", frozenset(DEBUG | {"page_owner", "page_poison"})),
        KunitBoot("kunit-init-on-free", "debug", "init_on_free=1", frozenset(DEBUG | {"init_on_free"})),
        KunitBoot("kunit-debug-pagealloc", "debug", "debug_pagealloc=on", frozenset(DEBUG | {"direct_map"}),
                  only="mm_batch_hooks"),
        KunitBoot("uml", "uml", on=frozenset({"faults"})),
        *(KunitBoot(f"uml-{hook.replace('_', '-')}", "uml", HOOKS[hook], frozenset({"faults", hook}))
          for hook in ("page_owner", "page_poison", "init_on_free")),
    ),
)
