# SPDX-License-Identifier: GPL-2.0
"""Rows in time: modes in random order, medians, and how sure one is of them.

A pass has each row once, in random order, and of each row all modes one after the other, in random order as well. What
is compared is two runs of one pass, so that what the machine does otherwise is in both; of all passes, the median, and
the interval in which that is by 95 %.
"""

import statistics
from dataclasses import dataclass
from math import comb

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

    def estimate(self, mode):
        return Estimate.of(self.values[mode]) if mode in self.values else None

    def ratio(self, over, under):
        """Of runs of the same pass; None where a mode is not there."""
        if over not in self.values or under not in self.values:
            return None
        return Estimate.of([a / b for a, b in zip(self.values[over], self.values[under])])


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
    found = []
    for row in rows:
        by_mode = {mode: values.get((row.path, row.workload, mode), [])[1:] for mode in modes_of(row)}
        passes = min(map(len, by_mode.values()))
        if passes >= AT_LEAST:
            found.append(Timed(row, {mode: some[:passes] for mode, some in by_mode.items()}))
    return found


def shown(estimate, digits=1):
    return "-" if estimate is None else f"{estimate.median:.{digits}f}"


def sure(estimate):
    """A quotient, how sure it is, and whether it is another than 1."""
    return "-" if estimate is None else f"{estimate.median:.2f} ±{estimate.half_width:.0%} {estimate.sign}".strip()
