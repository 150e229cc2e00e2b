# SPDX-License-Identifier: GPL-2.0
"""What documents and plots ask of report/*/results.json."""

import json

from ..base.cache import TOP
from ..base.errors import Error

# name in documents -> folder of report/
REPORTS = {"release": "x86_64", "twins": "x86_64-better_c", "distro": "x86_64-distro", "noinline": "x86_64-noinline",
           "arm64": "arm64"}
# Of make profile, by row.
PROFILES = "report/profile"


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

    def ratios(self, path, over, under, metric=None):
        """Of all rows of a path that have both: the least and the largest."""
        rows = [row for row, what in self.rows.items() if what["path"] == path]
        found = [ratio for row in rows if metric in (None, *self.rows[row]["metrics"])
                 and (ratio := self.ratio(row, over, under, metric)) is not None]
        if not found:
            raise Error(f"{self.file.relative_to(TOP)} has no {over}/{under} of {path}", "correct the document's template")
        return min(found), max(found)


def all_figures():
    return {name: Figures(folder) for name, folder in REPORTS.items()} | {"profiles": profiles()}


def profiles():
    """Row -> mode -> function -> instructions per unit."""
    return {file.stem: json.loads(file.read_text())["modes"] for file in sorted((TOP / PROFILES).glob("*.json"))}
