# SPDX-License-Identifier: GPL-2.0
"""folio_batch: up to 32 folios through reclaim at once."""

from dataclasses import replace

from .anon_unmap import FORKED, PAGEOUT, WHOLE
from .dirty_flush import FEW, pageout, stress
from .model import (
    MANY_TASKS, NONE, RECLAIM, Boot, Counter, KunitBoot, Limits, Path, Row, counting, everywhere, remote)

ABOUT = """`off` takes one folio through all of reclaim and then the next, which is all that 7.3 has; `Rust` up to 32 at
once. The other paths are `rust` in all rows, and only this path's mode changes. With `CONFIG=better_c` there is a
twin, the same batch in C.

batch-: instructions per page of the whole call, by which memory of another task is reclaimed, with the meter off.
64 MiB of anonymous memory (32 of a file on ext4) are filled, and either all of it is given to
process_madvise(MADV_PAGEOUT), or four fifths are reclaimed from its cgroup (-reclaim). zero-: what is filled with
zeroes, which swap notes in a bit; data-: each word differs, and swap is a RAM disk. -forked: a child shares it all,
and of three pages one has zeroes.
-random: the pages came in random order, so that few of a list are of one page table. -half: of the pages a half, by
chance, was used lately, and two fifths of all are reclaimed. -gen: with LRU_GEN.
batch-call-4k: anon_unmap's call-4k, for make profile.
batch-alone-: what a step is worth by itself. The batch does all others to one folio after the other. unmap-random is
that of random order.

in-ttu-: of the same, by MADV_PAGEOUT of the task's own memory, instructions per page in try_to_unmap(), or in
try_to_unmap_folios(), by the meter. in-ttu-ext4-4k is file_unmap's ext4-4k. batch-4k-300tasks: 4 MiB, which 300
children share since fork(), are reclaimed from their cgroup; there all paths change their mode, off or `Rust`.

batch-2cpu: what pageout-2cpu is to dirty_flush, and the same by memory.reclaim (-reclaim). batch-stress-: what
stress-ng- is to dirty_flush, which is on and off with it. batch-holds-: guest instructions of
the longest hold of a page table lock in try_to_unmap_one() or the like, and of a folio's lock in shrink_folio_list()
or of the first of a batch until all are unlocked; what interrupts it included. batch-bios-: how often a page is written,
if swap is a file on a disk: by bios, and by the requests that the block layer merges them to."""

RAM_DISK = "brd.rd_nr=1 brd.rd_size=327680"
FOLIOS = Boot("folios", "remote.sh", disk=True, loops=False, profiled=False, arguments=RAM_DISK, seconds=3)
# Rust/twin at most, where there is a twin.
TWIN = Limits(release=None, distro=None, noinline=None, better_c=1.02)


def gains(times):
    """off/Rust at least; with calls between Rust and C, as distributions build it, 1.15 times less."""
    return Limits(release=times, distro=times / 1.15, noinline=times / 1.15, better_c=times) if times else NONE


def whole(name, command, times=None, aim=None, **kw):
    return Row(f"batch-{name}", command, "insn_per_page", "page", FOLIOS, TWIN, gains(times), aim=aim, **kw)


# By the meter, and in the sum that it takes.
STEPS = {"references": 1, "slots": 2, "unmap": 4, "remove": 8}


def alone(step, order="", times=None, aim=None):
    one_by_one = sum(STEPS.values()) - STEPS[step]
    return whole(f"alone-{step}{order}", f"steps {one_by_one} anon 4 64 data reclaim{order}", times, aim)


def in_ttu(name, command, times, aim, boot=PAGEOUT):
    return Row(f"in-ttu-{name}", command, "insn_per_page_ttu", "page in try_to_unmap()", boot, TWIN, gains(times),
               aim=aim, more=("insn_total",))


def pageout_in_ttu(name, content, kib, times, aim):
    return in_ttu(name, f"pageout {content} {kib} {{anon_mib}} whole", times, aim)


# Shootdowns, call IPIs, dirty flushes.
REDUCTIONS = {
    "gen": ((80, 81, 88), (92, 92, 96)),
    "classic": ((70, 71, 80), (80, 85, 90)),
}

HOLDS = replace(PAGEOUT, name="pageout-holds", reader=None, profiled=False)


def holds(name, kib):
    return counting(f"batch-holds-{name}", f"holds {kib} {{anon_mib}}", "hold", HOLDS,
                    [Counter("longest_ptl"), Counter("longest_lock")])


# Swap is a file on the disk.
BIOS = replace(PAGEOUT, name="pageout-bios", reader=None, disk=True, profiled=False)


def bios(name, kib):
    return counting(f"batch-bios-{name}", f"bios {kib} {{anon_mib}}", "page", BIOS,
                    [Counter("bios_per_page"), Counter("requests_per_page")])


def timed(name, kind, content="data", how="pageout", gain=None):
    """What a row of the same name counts, in time."""
    return remote(f"batch-{name}", kind, 4, content, how, counted=f"batch-{name}", gain=gain)


KUNIT = "guest_mm_batch_folio_batch"
# x86 puts a flush off only if another CPU has the mm.
WITH_TWO_CPUS = ("lists", "rescheduled", "gaps", "pinned", "referenced", "mixed", "lazyfree", "and_dirty_flush",
                 "taken_back")

PATH = Path(
    name="folio_batch",
    about=ABOUT,
    rows=(
        whole("zero-4k", "remote anon 4 64 zero pageout", 1.48, 1.65),
        whole("data-4k", "remote anon 4 64 data pageout", 1.30, 1.42),
        whole("ext4-4k-reclaim", "remote file 4 32 data reclaim", 1.42, 1.65),
        whole("anon-4k-reclaim", "remote anon 4 64 data reclaim", 1.38, 1.52),
        whole("anon-4k-forked", "remote anon 4 64 mix reclaim-forked", 1.60, 1.80),
        whole("anon-4k-half", "remote anon 4 64 data reclaim-half", 1.30, 1.45),
        whole("anon-4k-random", "remote anon 4 64 data reclaim-random", 1 / 0.92, 1 / 0.85),
        whole("anon-4k-random-gen", "gen anon 4 64 data reclaim-random", 1 / 0.92, 1 / 0.85),
        *map(alone, STEPS),
        alone("unmap", "-random", 1 / 1.02, 1 / 1.01),
        whole("shmem-4k-reclaim", "remote shmem 4 64 data reclaim"),
        whole("zero-16k", "remote anon 16 64 zero pageout"),
        whole("zero-64k", "remote anon 64 64 zero pageout"),
        Row("batch-call-4k", "whole zero 4 {anon_mib}", "insn_per_page", "page", WHOLE, TWIN),
        # Of 1374, 1092, 460 and 174 instructions per page without it, 320, 210, 220 and 120 at most.
        pageout_in_ttu("zero-4k", "zero", 4, 4.29, 1374 / 230),
        pageout_in_ttu("data-4k", "data", 4, 4.29, 1374 / 230),
        in_ttu("ext4-4k", "reclaim file 4 {mib}", 5.2, 1092 / 150, RECLAIM),
        pageout_in_ttu("zero-16k", "zero", 16, 2.09, 460 / 160),
        pageout_in_ttu("zero-64k", "zero", 64, 1.45, 174 / 90),
        Row("batch-4k-300tasks", "all_paths anon 4 4 300tasks", "insn_per_page_ttu", "page in try_to_unmap()", FORKED,
            TWIN, not_above=MANY_TASKS, more=("insn_total",)),
        # Of rmap walks, per page: for 32 at once, a thirty-second of one, or of two.
        pageout("batch-2cpu", 4, at_most=FEW, locks=everywhere(0.035)),
        pageout("batch-2cpu-reclaim", 4, locks=everywhere(0.09), how="cgroup"),
        holds("4k", 4),
        holds("64k", 64),
        holds("2m", 2048),
        bios("4k", 4),
        bios("64k", 64),
        *(stress(f"batch-stress-{lru}", 4, lru, reductions=REDUCTIONS[lru], command="stress_both") for lru in REDUCTIONS),
    ),
    timed=(timed("zero-4k", "anon", "zero", gain=1.25),
           timed("data-4k", "anon", gain=1.15),
           timed("anon-4k-reclaim", "anon", how="reclaim"),
           timed("anon-4k-forked", "anon", "mix", "reclaim-forked", gain=1.25),
           timed("ext4-4k-reclaim", "file", how="reclaim")),
    suites=(),
    suites_late=(KUNIT, f"{KUNIT}_notifier", f"{KUNIT}_stat", f"{KUNIT}_steps"),
    conditions={f"{KUNIT}.test_batch_{case}": "2cpu" for case in WITH_TWO_CPUS} |
               {f"{KUNIT}_steps.test_{case}": "2cpu" for case in ("flush_of_prot_none", "release_of_large")},
    thp_swap=(f"{KUNIT}.test_batch_mixed", f"{KUNIT}_stat.test_statistics"),
    kunit_boots=tuple(KunitBoot("kunit-late-2cpu-batch", flavour, on=frozenset({"2cpu"}), cpus=2, only=f"{KUNIT}*",
                                late=True) for flavour in ("release", "debug")),
    c=None,
    twin="the same batch in C (patches/folio_batch_c/)",
)
