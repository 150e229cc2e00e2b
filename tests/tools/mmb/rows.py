# SPDX-License-Identifier: GPL-2.0
"""The rows of the evaluation: what is run, how often, and what it must reach.

A path adds its rows here; nothing else knows them.
"""

from dataclasses import dataclass

# Modes of a row in the order of one boot: c first and last.
ROUND = ["c", "off", "rust"]


@dataclass(frozen=True)
class Row:
    path: str
    workload: str
    metric: str
    command: str  # in the guest; {loops} is replaced
    loops: int  # of one part of a short run
    limit: float | None = None  # Rust/C at most, plus the row's noise
    aim: float | None = None
    published: str | None = None

    def loops_for(self, scale, longer=1):
        return self.loops * (5 if scale == "full" else 1) * longer


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


ROWS = [
    contig("order0", 8000, limit=1.00),
    contig("order3", 2000, limit=1.02),
    contig("order4", 2000, limit=0.85, aim=0.57),
    contig("order9", 100, limit=0.75, aim=0.37, published="1,684,366 -> 136,216 us"),
    contig("range3077", 4, limit=1.02),
    *(vmalloc(pages, huge) for huge in (0, 1) for pages in (1, 4, 16, 64, 256, 512)),
    contig("cma16384", 2, limit=1.02, published="1406 -> 402 us"),
]

NOISE_LIMIT = 0.005


def modes(runs):
    """The modes of a row's runs, in order."""
    return ROUND * runs + ["c"]


def job(rows, scale, runs, longer):
    """The guest's shell script; `longer` multiplies the loops."""
    lines = ["insmod /modules/mm_batch_bench.ko || fail 'the bench module does not load'"]
    for r in rows:
        command = r.command.format(loops=r.loops_for(scale, longer))
        lines += [f"row {r.path} {r.workload} {mode} {r.metric} {command}" for mode in modes(runs)]
    return "\n".join(lines) + "\n"
