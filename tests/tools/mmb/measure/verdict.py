# SPDX-License-Identifier: GPL-2.0
"""A row's figures, from the guest's lines, and what they must reach.

Rows that count have a host thread per CPU, with which no two runs are the same: they have no noise that longer loops
would lessen. Modes run in turn, off and rust; what is judged is medians, and the extremes are shown.
"""

import re
import statistics

from ..base.errors import FAIL, PASS, say
from ..paths import PATHS
from .rows import NOISE_LIMIT, modes_of

RESULT = re.compile(r"RESULT (\S+) (\S+) (\S+) (\S+) ([\d.]+)$")
NOTE = re.compile(r"NOTE (\S+) (\S+) (.*)$")


def plain(value):
    """A figure: what is no whole number with some four digits."""
    if value == int(value):
        return f"{value:.0f}"
    return f"{value:.4f}" if value < 10 else f"{value:.1f}" if value < 1000 else f"{value:.0f}"


def percent(value):
    return "-" if value is None else f"{value:+.1f} %"


def change(off, rust):
    """In % of off, or None where that had none."""
    return 100 * (rust / off - 1) if off else None


class Line:
    """A row's values, by metric and mode, in the order of the runs; `notes` were said beside."""

    def __init__(self, row, values, scale="full", notes=()):
        self.row, self.values, self.scale, self.notes = row, values, scale, notes
        runs = values[row.metric].get("c") or values[row.metric]["off"]
        # A row that counts has none that is judged.
        self.noise = 0 if row.counts else (max(runs) - min(runs)) / statistics.median(runs)

    def median(self, mode, metric=None):
        values = self.values[metric or self.row.metric].get(mode)
        return statistics.median(values) if values else None

    def ratio(self, over, under, metric=None):
        over, under = self.median(over, metric), self.median(under, metric)
        return None if None in (over, under) else over / under

    def change(self, metric):
        return change(self.median("off", metric), self.median("rust", metric))

    def worst_pair(self, metric):
        """The largest change of two runs that followed each other."""
        found = map(change, self.values[metric]["off"], self.values[metric]["rust"])
        return max((c for c in found if c is not None), default=None)

    def at_most(self, config):
        """The limits of a configuration: (mode, its name, Rust/mode, the highest)."""
        row = self.row
        for under, head, limits in ("c", PATHS[row.path].head(config), row.limits), ("off", "off", row.not_above):
            limit = getattr(limits, config)
            if limit and (ratio := self.ratio("rust", under)):
                yield under, head, ratio, limit

    def at_least(self, config):
        """The gains of a configuration: (metric, off/Rust, the lowest)."""
        for metric, gains in {self.row.metric: self.row.gains, **self.row.more_gains}.items():
            gain = getattr(gains, config)
            if gain and (ratio := self.ratio("off", "rust", metric)):
                yield metric, ratio, gain

    def too_noisy(self, config):
        """Whether noise could be what meets a limit, or what does not."""
        undecided = (any(ratio > limit * (1 - self.noise) for _, _, ratio, limit in self.at_most(config)) or
                     any(ratio < gain * (1 + self.noise) for _, ratio, gain in self.at_least(config)))
        return self.noise > NOISE_LIMIT and undecided

    def problems(self, judged, config="release"):
        """What is not met, by the limits of a configuration. None is for wall time, which is not judged."""
        if not judged:
            return
        row, name, noise = self.row, self.row.workload, f"{self.noise:.2%}"
        if self.too_noisy(config):
            yield f"{name}: noise {noise} is above {NOISE_LIMIT:.1%}; run it with longer loops"
        for under, head, ratio, limit in self.at_most(config):
            slack = getattr(row.slack, config) if under == "c" else None
            if ratio > limit + self.noise and not (slack and self.median("rust") - self.median(under) <= slack):
                yield f"{name}: Rust/{head} {ratio:.3f} is above {limit:.2f} + {noise} noise"
        for metric, ratio, gain in self.at_least(config):
            if ratio < gain:
                of = "" if metric == row.metric else f" of {metric}"
                yield f"{name}: off/Rust{of} {ratio:.2f} is below {gain:g}"
        for counter in row.counters:
            at_most, less = getattr(counter.at_most, config), getattr(counter.less, config)
            not_above = getattr(counter.not_above, config)
            rust, off = self.median("rust", counter.metric), self.median("off", counter.metric)
            if at_most is not None and rust > at_most:
                yield f"{name}: {counter.metric} {plain(rust)} is above {plain(at_most)}"
            most = max(self.values[counter.metric]["off"])
            if (not_above is not None and (self.scale == "full" or not counter.full_only)
                    and rust > max(not_above * off, most, counter.least)):
                yield (f"{name}: {counter.metric} {plain(rust)} is above {not_above:.2f} of off's {plain(off)}, of "
                       f"which the highest is {plain(most)}")
            # A short run is not asked how much less Rust has.
            if less is not None and self.scale == "full":
                found = self.change(counter.metric)
                if found is None or found > -less:
                    yield f"{name}: {counter.metric} goes by {percent(found)}, and must by -{less:g} %"


def lines_of(rows, console, config, scale="full"):
    """The rows' lines. A row without each of its metrics in each mode has none: (lines, what is missing)."""
    values, notes, lines, missing = {}, {}, [], []
    for text in console:
        if found := RESULT.search(text):
            path, workload, mode, metric, value = found.groups()
            values.setdefault((path, workload, metric), {}).setdefault(mode, []).append(float(value))
        elif found := NOTE.search(text):
            notes.setdefault(found.group(1, 2), []).append(found[3])
    for row in rows:
        found = {metric: values.get((row.path, row.workload, metric), {}) for metric in (row.metric, *row.more)}
        gone = [metric for metric, by_mode in found.items() if set(by_mode) != set(modes_of(row, config))]
        missing += [f"{row.workload} has no {metric}" for metric in gone]
        lines += [] if gone else [Line(row, found, scale, notes.get((row.path, row.workload), []))]
    return lines, missing


def judged(problems):
    problems = list(problems)
    for problem in problems:
        say(f"not met: {problem}")
    return FAIL if problems else PASS
