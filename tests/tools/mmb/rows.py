# SPDX-License-Identifier: GPL-2.0
"""The rows of the evaluation: what is run, how often, and what it must reach.

A path adds its rows here; nothing else knows them.
"""

import os
from dataclasses import dataclass

from .common import Error
from .rootfs import SCRATCH_MIB, scratch_image

# Modes of a row in the order of one boot: c first and last.
ROUND = ["c", "off", "rust"]


# What reclaim's rows map; 80 % of it are reclaimed (lib.sh). The seed's workload is RECLAIM_MIB=10240.
MIB = 32


def mib():
    given = os.environ.get("RECLAIM_MIB") or str(MIB)
    if not given.isdecimal() or int(given) < 8:
        raise Error(f"RECLAIM_MIB={given} is no size", "give MiB, 8 or more, as in RECLAIM_MIB=10240")
    return int(given)


def times(scale, longer):
    return (5 if scale == "full" else 1) * longer


@dataclass(frozen=True)
class Row:
    path: str
    workload: str
    metric: str  # what the table shows
    command: str  # in the guest; {loops} or {mib} is replaced
    loops: int  # of one part of a short run
    limit: float | None = None  # Rust/C at most, plus the row's noise
    aim: float | None = None
    gain: float | None = None  # off/Rust at least
    published: str | None = None
    more: tuple = ()  # metrics that are written down with it
    boot: str = "bench"  # which of BOOTS it runs in

    def command_for(self, scale, longer=1):
        return self.command.format(loops=self.loops_for(scale, longer), mib=mib())

    def loops_for(self, scale, longer=1):
        return self.loops * (times(scale, longer) if self.boot == "bench" else 1)

    def parts_for(self, scale, longer=1):
        """Parts of a run: reclaim has no loops, so that only more parts make it longer."""
        return 4 if self.boot == "bench" else 2 * times(scale, longer)

    def seconds(self, scale):
        """Of a run, about."""
        return (4 if scale == "full" else 0.8) * (1 if self.boot == "bench" else max(1, mib() / MIB))


def contig(workload, loops, **kw):
    return Row("contig_free", workload, "insn_per_page", f"bench {workload} {{loops}}", loops, **kw)


# test_vmalloc, relative to v6.18 (v6.19-rc1 -> with the change), % on arm64: the seed's table.
VMALLOC_PUBLISHED = {
    (1, 0): "0.10 -> -1.04", (4, 0): "-22.74 -> +14.12", (16, 0): "-23.63 -> +43.81",
    (16, 1): "-1.58 -> +102.28", (64, 0): "-24.39 -> +89.64", (64, 1): "+2.34 -> +181.42",
    (256, 0): "-23.29 -> +111.05", (256, 1): "+3.74 -> +213.52", (512, 0): "-23.80 -> +118.28",
    (512, 1): "-2.84 -> +427.65",
}


def vmalloc(pages, huge):
    published = VMALLOC_PUBLISHED.get((pages, huge))
    return Row("contig_free", f"vmalloc-p{pages}-h{huge}", "insn_per_loop", f"vmalloc {pages} {huge} {{loops}}",
               max(40000 // pages, 500), limit=1.02, published=published and published + " %")


def reclaim(workload, kind, kib, cpus=1, **kw):
    return Row("file_unmap", workload, "insn_per_page_ttu",
               f"reclaim {kind} {kib} {{mib}}" + (" 2cpu" if cpus == 2 else ""), 1,
               more=("insn_total",), boot="reclaim" if cpus == 1 else "reclaim-2cpu", **{"limit": 1.02} | kw)


ROWS = [
    contig("order0", 8000, limit=1.00),
    contig("order3", 2000, limit=1.02),
    contig("order4", 2000, limit=0.85, aim=0.57),
    contig("order9", 100, limit=0.75, aim=0.37, published="1,684,366 -> 136,216 us"),
    contig("range3077", 4, limit=1.02),
    *(vmalloc(pages, huge) for huge in (0, 1) for pages in (1, 4, 16, 64, 256, 512)),
    contig("cma16384", 2, limit=1.02, published="1406 -> 402 us"),
    reclaim("ext4-4k", "file", 4),
    reclaim("ext4-16k", "file", 16),
    reclaim("ext4-64k", "file", 64, gain=4, published="1.018 -> 0.249 s"),
    reclaim("ext4-64k-mixed", "file-mixed", 64),
    reclaim("ext4-2m-pte", "file-pte", 2048),
    reclaim("shmem-64k", "shmem", 64),
    reclaim("lazyfree-64k", "lazyfree", 64),
    reclaim("lazyfree-2m-pte", "lazyfree-pte", 2048),
    reclaim("ext4-64k-2cpu", "file", 64, cpus=2),
]

NOISE_LIMIT = 0.005

# What the report says of a path's rows.
ABOUT = {
    "contig_free": """The figures are per page, or per loop of test_vmalloc.

`off` is page by page, `C` the kernel's batch as 7.2 has it, `Rust` this project's. Rust is ahead because of its
algorithm: one walk over contiguous struct pages, and a prepare that is inlined where no hook is on. C could have
that as well; what the language itself costs needs the same algorithm in C, which is not measured yet.

The order rows free with interrupts off, and the block that comes and goes has neighbours that stay allocated, so
that it merges with nothing; cma16384 is cma_release() alone. Pages are not cleared when they are handed out
(init_on_alloc=0), which is part of a loop of test_vmalloc.""",
    "file_unmap": """{mib} MiB of clean pages are mapped and used in a memory cgroup, and 80 % of them reclaimed by
a write to its memory.reclaim. The series' own workload is 10 GiB, 8 of them reclaimed, that is RECLAIM_MIB=10240. A
row has folios of the size in its name, at least 95 % of the pages, or it fails; with -pte they are mapped by PTEs
where a PMD could.

The figures are per page in try_to_unmap(), by the meter (patches/meter), its own cost subtracted: rmap walk,
unmapping and flushing, but no other part of reclaim. `insn_total`, in the second table, is the whole write to
memory.reclaim, in millions, with what the meter costs.

`off` is one PTE at a time, `C` the kernel's batch as 7.2 has it, both with the fixes that come first in this series;
`Rust` is this project's. A folio of one page never enters Rust, in no mode: ext4-4k shows what the others pay. One
CPU flushes at once, in try_to_unmap(); in ext4-64k-2cpu another one has run in the same mm, and the flush is deferred
to what the figure does not have in it. In ext4-64k-mixed every second page was written to through its
mapping and written back: it is soft-dirty, which ends a run of C's. C could go on there as well, by one line.""",
}


def modes(runs):
    """The modes of a row's runs, in order."""
    return ROUND * runs + ["c"]


# What a boot begins with.
BENCH = "insmod /modules/mm_batch_bench.ko || fail 'the bench module does not load'\n"
RECLAIM = """
meter=/sys/kernel/debug/mm_batch_meter
mkdir /scratch && mount -t ext4 /dev/vda /scratch || fail 'no scratch disk'
memory_cgroups
mkdir /sys/fs/cgroup/row || fail 'no cgroup'
swap_on {swap}
echo 1 >$meter/enable || fail 'no meter'
settle() {{ echo 3 >/proc/sys/vm/drop_caches; }}
"""


@dataclass(frozen=True)
class Kind:
    """A kind of boot: what its job begins with, and what its guest has. What is mapped must fit."""

    begin: str
    cpus: int
    scratch: bool  # a disk

    def guest(self):
        """For boot()."""
        sizes = {"memory": max(2048, 1024 + mib() * 5 // 4),
                 "drives": [scratch_image(max(SCRATCH_MIB, mib() * 5 // 4))]} if self.scratch else {}
        # A distribution clears each page that it hands out: 4400 instructions, to TCG, in front of each that is freed.
        return {"arguments": "quiet loglevel=3 cma=160M init_on_alloc=0", "cpus": self.cpus} | sizes

    def commands(self):
        return self.begin.format(swap=max(512, mib()))


BOOTS = {"bench": Kind(BENCH, 1, False), "reclaim": Kind(RECLAIM, 1, True), "reclaim-2cpu": Kind(RECLAIM, 2, True)}


def job(rows, scale, runs, longer):
    """The guest's shell script, for rows of one boot; `longer` multiplies the loops, or the parts."""
    lines = [BOOTS[rows[0].boot].commands(), f"parts={rows[0].parts_for(scale, longer)}"]
    for r in rows:
        metrics = ",".join((r.metric, *r.more))
        lines += [f"row {r.path} {r.workload} {mode} {metrics} {r.command_for(scale, longer)}" for mode in modes(runs)]
    return "\n".join(lines) + "\n"
