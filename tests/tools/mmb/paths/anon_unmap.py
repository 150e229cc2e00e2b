# SPDX-License-Identifier: GPL-2.0
"""anon_unmap: unmapping anonymous folios to swap in reclaim."""

from dataclasses import replace

from .model import ANON_MIB, MANY_TASKS, NONE, RECLAIM, Boot, KunitBoot, Limits, Path, Row, everywhere, remote

ABOUT = """{anon_mib} MiB of anonymous memory are mapped, written, and given to madvise(MADV_PAGEOUT): the series' own
program, which has 256. zero-: written with zeroes, which swap notes in a bit and does not write. data-: each word
differs, and swap is a RAM disk. Folios are of the size in the row's name; 2m-pmd are mapped by PMDs, each of which is
split in try_to_unmap(), 2m-pte by PTEs.

The figures are per page in try_to_unmap(), by the meter (patches/meter), its own cost subtracted: rmap walk,
unmapping and flushing, but no other part of reclaim. `insn_total`, in the second table, is the whole call, in
millions, with what the meter costs.

`off` is one PTE at a time, which is all that 7.3 has. With `CONFIG=better_c` there is a twin, the same transaction in
C. A folio of one page never enters Rust: zero-4k shows what the others pay. One CPU flushes at once, in
try_to_unmap(); in zero-64k-2cpu another one has run in the same mm, and the flush is deferred. forked-: 8 MiB, which so
many children share since fork(), are reclaimed from their cgroup. call-: the whole of MADV_PAGEOUT, with the meter off."""

PAGEOUT = Boot("pageout", "pageout.sh", loops=False, reader="mm_batch_meter_unmap", seconds=5,
               arguments="brd.rd_nr=1 brd.rd_size=327680")
# Rust/twin at most, where there is a twin.
TWIN = Limits(release=None, distro=None, noinline=None, better_c=1.02)
# Rust/off at most: for folios of one page nothing is to change.
NOTHING = everywhere(1.01)

# workload: off/Rust at least, and the same of the whole call; None is shown without a limit.
#                release distro noinline better_c
GAINS = {
    "zero-16k":    ((2.0, None, None, 2.0), ()),
    "zero-64k":    ((5.0, 4.0, None, 5.0), (1.42, None, None, 1.42)),
    "zero-2m-pmd": ((7.8, None, None, 7.8), (1.52, None, None, 1.52)),
    "zero-2m-pte": ((9.4, None, None, 9.4), (1.52, None, None, 1.52)),
}
FLUSH = "guest_mm_batch_anon_unmap_flush"
SUITES_LATE = (*(f"guest_mm_batch_anon_unmap{what}" for what in ("", "_kept", "_as_c")), FLUSH)
# The whole call, without the meter: for make profile.
WHOLE = replace(PAGEOUT, name="pageout-call", reader=None, call="do_madvise", seconds=4)
FORKED = replace(RECLAIM, name="reclaim-forked", seconds=5)


def forked(tasks):
    """Folios that each forked child shares."""
    return Row(f"forked-64k-{tasks}tasks", f"reclaim anon 64 8 {tasks}tasks", "insn_per_page_ttu", "page in try_to_unmap()",
               FORKED, TWIN, not_above=MANY_TASKS, more=("insn_total",))


def pageout(content, name, kib, how="whole", boot=PAGEOUT, **kw):
    workload = f"{content}-{name}"
    gains, whole = GAINS.get(workload, ((), ()))
    command = f"pageout {content} {kib} {{anon_mib}} {how}" + (" 2cpu" if boot.cpus == 2 else "")
    return Row(workload, command, "insn_per_page_ttu", "page in try_to_unmap()", boot, TWIN,
               Limits(*gains) if gains else NONE, more_gains={"insn_total": Limits(*whole)} if whole else {},
               not_above=NOTHING if kib == 4 else NONE, more=("insn_total",), **kw)


def call(name, kib):
    return Row(f"call-{name}", f"whole zero {kib} {{anon_mib}}", "insn_per_page", "page", WHOLE, TWIN)


PATH = Path(
    name="anon_unmap",
    about=ABOUT,
    rows=tuple(row for content in ("zero", "data") for row in (
        pageout(content, "4k", 4),
        pageout(content, "16k", 16),
        pageout(content, "64k", 64, published="37.4 -> 17.4, 55.0 -> 51.9 ms" if content == "zero" else None),
        pageout(content, "2m-pmd", 2048),
        pageout(content, "2m-pte", 2048, "split"),
    )) + (pageout("zero", "64k-2cpu", 64, boot=replace(PAGEOUT, name="pageout-2cpu", cpus=2)), forked(100), forked(300),
          call("4k", 4), call("64k", 64)),
    timed=tuple(remote(f"{content}-{kib}k", "anon", kib, content, counted=f"{content}-{kib}k", metric="insn_total",
                       pages=ANON_MIB * 256)
                for content, kib in (("zero", 4), ("zero", 16), ("zero", 64), ("data", 16), ("data", 64))),
    suites=("mm_batch_anon_unmap_parts",),
    uml_lacks=("mm_batch_anon_unmap_parts",),  # no large folios
    suites_late=SUITES_LATE,
    thp_swap=tuple(f"{suite}.*" for suite in SUITES_LATE),
    conditions={
        **{f"guest_mm_batch_anon_unmap_kept.test_swap_fault_{point}": "faults" for point in ("dup", "pin", "extend")},
        # x86 puts a flush off only if another CPU has the mm.
        **{f"{FLUSH}.test_swap_deferred{what}": "2cpu" for what in ("", "_kept")},
    },
    kunit_boots=tuple(KunitBoot("kunit-late-2cpu", flavour, on=frozenset({"2cpu"}), cpus=2, only=FLUSH, late=True,
                                symbol="CONFIG_THP_SWAP")
                      for flavour in ("release", "debug")),
    c=None,
    twin="the same transaction in C (patches/anon_unmap_c/)",
)
