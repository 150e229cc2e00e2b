# SPDX-License-Identifier: GPL-2.0
"""Rows that count: their figures, what they must reach, and their table.

With a host thread per CPU no two runs are the same, so that such a row has no noise that longer loops would
lessen. Modes run in turn, off and rust; what is judged is medians, and the extremes are shown.
"""

import re
import statistics

HEAD = ["row", "metric", "off", "min..max", "Rust", "min..max", "change", "worst pair", "limit", "aim"]


def number(value):
    """A figure: what is no whole number with some four digits."""
    if value == int(value):
        return f"{value:.0f}"
    return f"{value:.4f}" if value < 10 else f"{value:.1f}" if value < 1000 else f"{value:.0f}"


def change(off, rust):
    """In % of off, or None where that had none."""
    return 100 * (rust / off - 1) if off else None


def percent(value):
    return "-" if value is None else f"{value:+.1f} %"


def what(counter, config):
    """The limits of a counter in a configuration, as text, and its aim."""
    at_most, less = getattr(counter.at_most, config), getattr(counter.less, config)
    limits = [f"<= {number(at_most)}"] if at_most is not None else []
    limits += [f"-{less:g} %"] if less is not None else []
    return ", ".join(limits) or "-", f"-{counter.aim:g} %" if counter.aim else "-"


class Line:
    """A row that counts: each metric's values by mode, in the order of the runs."""

    noise = 0  # None that is judged.

    def __init__(self, row, by_mode, more=None, scale="full", notes=()):
        self.row, self.by_mode, self.more, self.scale, self.notes = row, by_mode, more or {}, scale, notes
        self.metrics = {row.metric: by_mode} | self.more

    def median(self, metric, mode):
        return statistics.median(self.metrics[metric][mode])

    def change(self, metric):
        """Of the medians."""
        return change(self.median(metric, "off"), self.median(metric, "rust"))

    def worst_pair(self, metric):
        """The largest change of two runs that followed each other."""
        by_mode = self.metrics[metric]
        found = [change(*pair) for pair in zip(by_mode["off"], by_mode["rust"])]
        return max((c for c in found if c is not None), default=None)

    def problems(self, judged, config="release"):
        """What is not met; a short run is not asked how much less Rust has."""
        for counter in self.row.counters if judged else ():
            name, rust = f"{self.row.workload}: {counter.metric}", self.median(counter.metric, "rust")
            at_most, less = getattr(counter.at_most, config), getattr(counter.less, config)
            if at_most is not None and rust > at_most:
                yield f"{name} {number(rust)} is above {number(at_most)}"
            if less is not None and self.scale == "full":
                found = self.change(counter.metric)
                if found is None or found > -less:
                    yield f"{name} goes by {percent(found)}, and must by -{less:g} %"


def table(lines, config="release"):
    """Rows of text, the head first; of one path. Nothing if it has no row that counts."""
    out = [HEAD]
    for line in lines:
        for counter in line.row.counters:
            by_mode = line.metrics[counter.metric]
            figures = [text for mode in ("off", "rust") for text in (
                number(line.median(counter.metric, mode)),
                f"{number(min(by_mode[mode]))}..{number(max(by_mode[mode]))}")]
            out.append([line.row.workload, counter.metric, *figures, percent(line.change(counter.metric)),
                        percent(line.worst_pair(counter.metric)), *what(counter, config)])
    return out if len(out) > 1 else []


def collect_notes(lines):
    """What a boot said beside its rows' figures: {(path, workload): [text]}."""
    notes = {}
    for line in lines:
        if found := re.search(r"NOTE (\S+) (\S+) (.*)$", line):
            notes.setdefault(found.group(1, 2), []).append(found[3])
    return notes


def notes_of(lines):
    """The same as lines of text."""
    return [f"{line.row.workload}: {note}" for line in lines for note in line.notes]
