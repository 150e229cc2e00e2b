# SPDX-License-Identifier: GPL-2.0
"""What documents and plots ask of report/*/results.json."""

import json

from ..base.cache import TOP
from ..base.errors import Error
from ..paths import PATHS
from .timing import Estimate

# name in documents -> folder of report/
REPORTS = {"release": "x86_64", "twins": "x86_64-better_c", "distro": "x86_64-distro", "noinline": "x86_64-noinline",
           "arm64": "arm64"}
# Of make profile, by row.
PROFILES = "report/profile"
# Of make time.
TIMES = "report/time"
# Of make before.
BEFORE = "report/before.json"


class Figures:
    """The medians of one report, by row, mode and metric. A row's own metric is the first that it has."""

    def __init__(self, folder):
        self.file = TOP / "report" / folder / "results.json"
        data = json.loads(self.file.read_text())
        self.about = {key: value for key, value in data.items() if key != "results"}
        self.rows = {}
        for found in data["results"]:
            row = self.rows.setdefault(found["workload"], {"path": found["path"], "published": found["published"]})
            row.setdefault("metrics", {}).setdefault(found["metric"], {})[found["mode"]] = found

    def entry(self, row, mode, metric=None):
        """All that is known of a row in a mode; None where the path has no such mode."""
        try:
            metrics = self.rows[row]["metrics"]
            return metrics[metric or next(iter(metrics))].get(mode)
        except KeyError:
            raise Error(f"{self.file.relative_to(TOP)} has no {metric or 'row'} {row}",
                        "correct the document's template, or measure it") from None

    def median(self, row, mode, metric=None):
        found = self.entry(row, mode, metric)
        return found and found["median"]

    def ratio(self, row, over, under, metric=None):
        over, under = self.median(row, over, metric), self.median(row, under, metric)
        return over / under if over is not None and under else None

    def by_row(self, path, over, under, metric=None):
        """(ratio, row) of all rows of a path that have both."""
        rows = [row for row, what in self.rows.items() if what["path"] == path]
        found = [(ratio, row) for row in rows if metric in (None, *self.rows[row]["metrics"])
                 and (ratio := self.ratio(row, over, under, metric)) is not None]
        if not found:
            raise Error(f"{self.file.relative_to(TOP)} has no {over}/{under} of {path}", "correct the document's template")
        return found

    def ratios(self, path, over, under, metric=None):
        """The least and the largest of them."""
        found = [ratio for ratio, _ in self.by_row(path, over, under, metric)]
        return min(found), max(found)

    def worst(self, path, over, under, metric=None):
        """The largest of them, and its row."""
        return max(self.by_row(path, over, under, metric), key=lambda found: found[0])


def timed_rows():
    """What make time has, of all paths."""
    return [row for path in PATHS.values() for row in path.timed]


class Times:
    """What make time has measured: by row and mode, where mode c is of the kernel whose C a row's head names."""

    def __init__(self):
        data = json.loads((TOP / TIMES / "results.json").read_text())
        self.about = {key: value for key, value in data.items() if key not in ("results", "ratios")}
        self.rows = list(dict.fromkeys(found["workload"] for found in data["results"]))
        self.ns = {(found["workload"], found["mode"], found["c"]): found["median"] for found in data["results"]}
        self.ratios = {(found["workload"], found["over"], found["c"]):
                       Estimate(found["median"], found["low"], found["high"]) for found in data["ratios"]}

    def median(self, row, mode, head="C"):
        """Nanoseconds per page; None where there is no such mode."""
        return self.ns.get((row, mode, head))

    def ratio(self, row, over, head="C"):
        """How many times more than Rust, and in how many percent of that the median is for sure; a dash where there is
        no such mode.
        """
        found = self.ratios.get((row, over, head))
        return f"{found.median:.2f} ±{found.half_width:.0%}" if found else "-"

    def gains(self, *names):
        """The least and the largest off/Rust of the rows whose names begin so, in the kernel whose times are shown."""
        found = [ratio.median for (row, *way), ratio in self.ratios.items()
                 if way == ["off", "C"] and row.startswith(names)]
        return min(found), max(found)

    def of_off(self, counted, metric=None):
        """Mode -> what it takes of off, by the quotients of the row whose instructions are this metric of that one; the
        twin's by those of its own kernel. Empty if no row is.
        """
        row = next((timed.workload for timed in timed_rows() if (timed.counted, timed.metric) == (counted, metric)), None)
        kernels = {"C": ("c", "C"), "twin": ("c", "twin")}
        found = {name: self.ratios[row, mode, head].median / self.ratios[row, "off", head].median
                 for name, (mode, head) in kernels.items() if (row, mode, head) in self.ratios}
        return found | ({"Rust": 1 / self.ratios[row, "off", "C"].median} if row in self.rows else {})

    def counted(self, row, figures):
        """How many times more instructions off takes than Rust, by the same row of an evaluation; None if it has none."""
        timed = next(timed for timed in timed_rows() if timed.workload == row)
        return figures.ratio(timed.counted, "off", "rust", timed.metric) if timed.counted else None


def all_figures():
    return {name: Figures(folder) for name, folder in REPORTS.items()} | {
        "profiles": profiles(), "time": Times(), "before": changes()}


def changes():
    """Of make before, which makes the series that has these figures: a change's name -> its rows; none at its first run."""
    return json.loads((TOP / BEFORE).read_text())["changes"] if (TOP / BEFORE).exists() else {}


def profiles():
    """Row -> mode -> function -> instructions per unit."""
    return {file.stem: json.loads(file.read_text())["modes"] for file in sorted((TOP / PROFILES).glob("*.json"))}
