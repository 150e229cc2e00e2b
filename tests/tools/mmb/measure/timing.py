# SPDX-License-Identifier: GPL-2.0
"""Rows in time: modes in random order, medians, and how sure one is of them.

A pass has each row once, in random order, and of each row all modes one after the other, in random order as well. What
is compared is two runs of one pass, so that what the machine does otherwise is in both; of all passes, the median, and
the interval in which that is by 95 %.
"""

import statistics
from dataclasses import dataclass
from math import comb

from ..base.tables import number

CONFIDENCE = 0.95
# Fewer have no such interval. And one more before them, which does not count.
AT_LEAST = 6


def interval(values):
    """Where the median of what these are a sample of is, by 95 %: by their order, whatever their distribution."""
    ordered, n = sorted(values), len(values)
    below, cut = 1 / 2**n, 0
    while cut + 1 < n / 2 and 2 * (below + comb(n, cut + 1) / 2**n) <= 1 - CONFIDENCE:
        cut += 1
        below += comb(n, cut) / 2**n
    return ordered[cut], ordered[n - 1 - cut]


@dataclass
class Estimate:
    """A median, and where that is."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values):
        return cls(statistics.median(values), *interval(values))

    @property
    def half_width(self):
        """In parts of the median."""
        return (self.high - self.low) / 2 / self.median

    @property
    def sign(self):
        """R for more than 1, I for less, if one is sure of it: as the kernel's own benchmarks are reported."""
        return "(I)" if self.low > 1 else "(R)" if self.high < 1 else ""


class Timed:
    """A row's values by mode, one of each pass."""

    def __init__(self, row, values):
        self.row, self.values = row, values

    @classmethod
    def of(cls, row, by_mode):
        """As many runs as each mode has; None if these are too few."""
        passes = min(map(len, by_mode.values()))
        return cls(row, {mode: some[:passes] for mode, some in by_mode.items()}) if passes >= AT_LEAST else None

    def estimate(self, mode):
        return Estimate.of(self.values[mode]) if mode in self.values else None

    def ratio(self, over, under):
        """Of runs of the same pass; None where a mode is not there."""
        if over not in self.values or under not in self.values:
            return None
        return Estimate.of([a / b for a, b in zip(self.values[over], self.values[under])])

    def problems(self):
        """That off/Rust is too little, if one is sure of it: all of the interval is."""
        gain, ratio = self.row.gain, self.ratio("off", "rust")
        if gain and ratio and ratio.high < gain:
            yield f"{self.row.workload}: off/Rust {ratio.median:.2f}, by 95 % at most {ratio.high:.2f}, is below {gain:g}"


def one_pass(rows, modes_of, order):
    """(row, mode) in the order in which they run; `order` is a source of chance."""
    return [(row, mode) for row in order.sample(rows, len(rows))
            for mode in order.sample(modes_of(row), len(modes_of(row)))]


def timed(rows, modes_of, runs):
    """The rows, of their runs, (path, workload, mode, value) in the order in which they were. The first pass, and one
    that did not end, are left out; so is a row that has not enough.
    """
    values = {}
    for path, workload, mode, value in runs:
        values.setdefault((path, workload, mode), []).append(value)
    found = [Timed.of(row, {mode: values.get((row.path, row.workload, mode), [])[1:] for mode in modes_of(row)})
             for row in rows]
    return [line for line in found if line]


def shown(estimate, digits=1):
    return number(estimate and estimate.median, digits)


def sure(estimate):
    """A quotient, how sure it is, and whether it is another than 1."""
    return "-" if estimate is None else f"{estimate.median:.2f} ±{estimate.half_width:.0%} {estimate.sign}".strip()


HEADS = {"off": "off", "c": "C", "rust": "Rust"}


def table(lines, digits=1):
    """Rows of one kernel: medians, and how many times more the others take than Rust."""
    return [["row", *HEADS.values(), "off/Rust", "C/Rust"],
            *([line.row.workload, *(shown(line.estimate(mode), digits) for mode in HEADS),
               sure(line.ratio("off", "rust")), sure(line.ratio("c", "rust"))] for line in lines)]


def entries(line, metric, **more):
    """What results.json has of a row, a mode each."""
    return [{"path": line.row.path, "workload": line.row.workload, "mode": mode, **more, "metric": metric,
             "min": min(values), "median": line.estimate(mode).median, "max": max(values),
             "low": line.estimate(mode).low, "high": line.estimate(mode).high, "runs": len(values)}
            for mode, values in line.values.items()]


def quotients(line, **more):
    """And of how many times more the others take than Rust."""
    found = {over: line.ratio(over, "rust") for over in ("off", "c")}
    return [{"path": line.row.path, "workload": line.row.workload, **more, "over": over, "under": "rust",
             "median": ratio.median, "low": ratio.low, "high": ratio.high} for over, ratio in found.items() if ratio]
