# SPDX-License-Identifier: GPL-2.0
"""What a performance patch gains, in its message: figures of report/, as `make series` writes them."""

import re
from dataclasses import dataclass
from itertools import repeat

from ..base.errors import Error
from ..base.tables import number, text_table
from ..kernel.tree import unnumbered
from ..measure.figures import REPORTS, Figures, changes

HEAD = "Guest instructions per page (QEMU, icount, x86_64, medians of one boot):"
KERNELS = "Guest instructions per page (QEMU, icount, x86_64, medians of a boot each):"
CHANGED = "Guest instructions per page of whole calls (QEMU, icount, x86_64, medians):"
OFF = "Whole calls before this series, and with it where folio_batch is off:"
RATES = "Medians of five runs in turn (QEMU, x86_64, a host thread per CPU):"


@dataclass(frozen=True)
class Measured:
    """A patch, by its name without a number, and the rows that its message has."""

    patch: str
    rows: tuple
    report: str = "release"
    modes: tuple = ("off", "c", "rust")
    heads: tuple = ("off", "7.3", "Rust")
    rates: tuple = ()  # of each row, instead of its instructions
    reports: tuple = ()  # of each mode, where it is a kernel for which there is one of its own

    def columns(self):
        """What says the figures of each mode, and the mode."""
        return [(Figures(REPORTS[name]), mode) for name, mode in zip(self.reports or repeat(self.report), self.modes)]


FILE = ("ext4-4k", "ext4-16k", "ext4-64k", "ext4-2m-pte", "shmem-64k", "lazyfree-64k")
ANON = ("zero-4k", "zero-16k", "zero-64k", "zero-2m-pmd")
RANGES = ("order0", "order3", "order9", "range3077")
BATCHES = tuple(f"batch-{row}" for row in (
    "zero-4k", "data-4k", "anon-4k-reclaim", "ext4-4k-reclaim", "shmem-4k-reclaim", "anon-4k-forked", "anon-4k-half",
    "anon-4k-random", "zero-16k", "zero-64k"))
FLUSHES = (("pageout-4cpu", "flushes_per_dirty_folio"), ("stress-ng-4cpu", "tlb_shootdowns_per_stolen"),
           ("stress-ng-4cpu", "call_ipis_per_stolen"))
# What C gains, by its rows in two kernels.
OF_C = {"modes": ("c", "c"), "heads": ("before", "after"), "reports": ("release", "twins")}
# Folder of patches/ -> its performance patch.
MEASURED = {
    # The second kernel has the twins as well: the first row is for what these do to C.
    "better_c": Measured("mm-rmap-let-a-file-folio-s-batch-differ-in-write-and.patch", ("ext4-64k", "ext4-64k-mixed"),
                         **OF_C),
    "contig_free_c": Measured("mm-page_alloc-free-a-contiguous-range-a-run-of-pages.patch", RANGES, **OF_C),
    "contig_free": Measured("mm-page_alloc-free-contiguous-ranges-by-mm_batch.patch", RANGES),
    "file_unmap": Measured("mm-rmap-unmap-file-and-lazyfree-folios-by-mm_batch.patch", FILE),
    "anon_unmap": Measured("mm-rmap-unmap-anonymous-folios-by-mm_batch.patch", ANON, modes=("off", "rust"),
                           heads=("off", "Rust")),
    "dirty_flush": Measured("mm-vmscan-flush-for-batches-of-dirty-folios-by-mm_ba.patch", (), modes=("off", "rust"),
                            heads=("off", "Rust"), rates=FLUSHES),
    "folio_batch": Measured("mm-vmscan-reclaim-folios-in-batches-by-mm_batch.patch", BATCHES, modes=("off", "rust"),
                            heads=("off", "Rust")),
    "anon_unmap_c": Measured("mm-rmap-unmap-a-run-of-an-anonymous-folio-s-PTEs-all.patch", ANON, report="twins",
                             modes=("off", "c"), heads=("before", "after")),
}
# Folder -> its patches whose gain every mode has, and the rows that tell by make before.
EVERYWHERE = {
    "reclaim_c": {
        "mm-page_io-look-for-zeroes-eight-words-at-a-time.patch": ("batch-zero-4k", "batch-zero-64k"),
        "mm-madvise-isolate-the-folios-of-a-page-table-for-pa.patch": ("batch-zero-4k", "batch-data-4k"),
    },
}


def table(lines):
    """Columns, of which the first is words."""
    return [f"  {line}" for line in text_table([(*line, "") for line in lines]).splitlines()]


def lines_of(measured):
    """The rows' figures: the function that changed, and the whole call where that was measured."""
    columns = measured.columns()

    def medians(row, metric=None):
        return [figures.median(row, mode, metric) for figures, mode in columns]

    if measured.rates:
        rows = [(row, metric, medians(row, metric)) for row, metric in measured.rates]
        return table([("", *measured.heads, ""), *(
            (f"{row}, {metric.replace('_', ' ')}", *(number(one, 3) for one in found),
             f"{100 * (found[-1] / found[0] - 1):+.0f}%") for row, metric, found in rows)])
    whole = [row for row in measured.rows if all("insn_total" in figures.rows[row]["metrics"] for figures, _ in columns)]
    ratio = f"{measured.heads[0]}/{measured.heads[-1]}"
    found = [("", *measured.heads, ratio, *(["whole call"] if whole else []))]
    for row in measured.rows:
        each = medians(row)
        first, *_, last = medians(row, "insn_total") if row in whole else (None, None)
        total = [number(first / last, 2) if row in whole else ""] if whole else []
        found.append((row, *(number(one, 0) for one in each), number(each[0] / each[-1], 2), *total))
    return table(found)


def paragraph(measured):
    head = RATES if measured.rates else KERNELS if measured.reports else HEAD
    return "\n".join([head, "", *lines_of(measured)])


def whole_calls(head, rows, with_, name, quotient):
    """A paragraph of make before: whole calls in the kernel before a change and with it, and their quotient."""
    return "\n".join([head, "", *table([("", "before", with_, name), *(
        (row["workload"], number(row["before"], 0), number(row["with"], 0), quotient(row["ratio"])) for row in rows)])])


def of_change(rows):
    """The paragraph of a patch whose gain every mode has."""
    return whole_calls(CHANGED, rows, "after", "before/after", lambda ratio: number(1 / ratio, 2))


def of_off(rows):
    """The paragraph of what a path costs where it is off."""
    return whole_calls(OFF, rows, "off", "off/before", lambda ratio: number(ratio, 4))


def paragraphs(path):
    """Patch -> its figures, of those of a folder that have some."""
    rows = changes()
    found = {patch: of_change(rows[patch]) for patch in EVERYWHERE.get(path, ()) if patch in rows}
    if measured := MEASURED.get(path):
        found[measured.patch] = "\n\n".join([paragraph(measured), *([of_off(rows[path])] if path in rows else [])])
    return found


def with_figures(path, folder):
    """Puts figures in front of the trailers of the folder's performance patches."""
    for name, figures in paragraphs(path).items():
        put(folder, name, figures)


def put(folder, name, figures):
    found = [patch for patch in folder.glob("*.patch") if unnumbered(patch) == name]
    if len(found) != 1:
        raise Error(f"{folder} has no patch *-{name}", "correct series/measured.py: a patch was renamed")
    text = found[0].read_text()
    message, cut, rest = text.partition("\n---\n")
    trailers = re.search(r"(?:^[A-Z][\w-]+-by: .*\n?)*\Z", message, re.M).start()
    body, signed = message[:trailers].rstrip("\n"), message[trailers:]
    found[0].write_text(body + "\n\n" + figures + ("\n\n" + signed if signed else "") + cut + rest)
