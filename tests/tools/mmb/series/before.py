# SPDX-License-Identifier: GPL-2.0
"""make before: what is in all modes, and so in no row of make evaluate. Whole calls in the kernel with some patches of
the series, and in the kernel before them, neither of which has the meter: what folio_batch costs where it is off, and
what patches for plain C gain.

Two boots differ by more than what is looked for. So the kernels boot in turn, two boots of a turn are compared, and a
quotient is the median of all turns, with the interval in which that is by 95 %.
"""

import json
import os
import re
from dataclasses import dataclass

from ..base.cache import TOP, write_atomically
from ..base.errors import PASS, Error, matching, say
from ..base.progress import Steps
from ..base.tables import number, text_table
from ..guest import payload
from ..kernel.kbuild import Build
from ..kernel.tree import stage, unnumbered
from ..measure import report, rows, timing
from ..measure.figures import BEFORE
from ..measure.verdict import RESULT, judged
from ..paths import PATHS
from ..paths.folio_batch import FOLIOS
from . import applies
from .measured import EVERYWHERE
from .states import States
from .write import unsigned_series

LAST = "folio_batch"
TURNS = {"short": timing.AT_LEAST, "full": 2 * timing.AT_LEAST}
# A path that both kernels of the last change have, in the mode that all rows of folio_batch have it in: what a row may
# set. There is none before the first path.
OTHER, MODE = "dirty_flush", "rust"
NO_PATHS = "[ -d $params ] || set_mode() { :; }"
# What is freed stays on the lists of the CPU. How many pages these take otherwise is a matter of what was freed before,
# and the rest of a row goes to the buddy lists, or none of it: 1 % of a page's instructions, alike in most boots of a
# kernel, so that turns do not show it.
LISTS = "echo 8 >/proc/sys/vm/percpu_pagelist_high_fraction || fail 'the lists of a CPU cannot be made longer'"


@dataclass(frozen=True)
class Change:
    """Patches of the series: a folder's, or one by its name without the number."""

    name: str
    rows: tuple
    at_most: float = None  # with/before

    def states(self, patches):
        """How many patches come before it, and how many with it."""
        own = [n for n, patch in enumerate(patches)
               if unnumbered(patch) == self.name or patch.parent.name.endswith(self.name)]
        if not own:
            raise Error(f"the series has nothing of {self.name}", "correct CHANGES in mmb/series/before.py")
        return own[0], own[-1] + 1


def known():
    """The rows that need no meter."""
    return [row for row in PATHS[LAST].rows if row.boot == FOLIOS and row.command.startswith("remote ")]


CHANGES = [
    *(Change(patch, names) for some in EVERYWHERE.values() for patch, names in some.items()),
    Change(LAST, tuple(row.workload for row in known()), 1.005),
]


def asked():
    return matching("ROW", "row", known(), lambda row: row.workload, re.search)


def job(selected, scale):
    lines = [FOLIOS.commands(), NO_PATHS, LISTS, f"parts={selected[0].parts()}"]
    lines += [f"row {OTHER} {row.workload} {MODE} {row.metric} {row.command_for(scale)}" for row in selected]
    return "\n".join(lines) + "\n"


def values_of(lines):
    """Row -> its value, of what such a job printed."""
    return {found[2]: float(found[5]) for found in filter(None, map(RESULT.search, lines))}


def built(states, index, folder):
    """The kernel after so many patches, kept for many boots."""
    states.compile(index, whole=True, what="off")
    return states.kept(index, folder)


def compared(turns):
    """Row -> (values before, values with it, with/before), of turns of two boots each."""
    found = {}
    for row in turns[0][0]:
        before, after = ([turn[at][row] for turn in turns] for at in (0, 1))
        found[row] = before, after, timing.Estimate.of([b / a for a, b in zip(before, after)])
    return found


def table(change, found):
    head = [change.name.removesuffix(".patch"), "before", "with", "with/before", "at most"]
    return [head, *([row, number(timing.Estimate.of(before).median), number(timing.Estimate.of(after).median),
                     f"{ratio.median:.4f} ({ratio.low:.4f} to {ratio.high:.4f})", number(change.at_most, 3)]
                    for row, (before, after, ratio) in found.items())]


def results(found):
    """Of a file that documents and messages are made of."""
    return [{"workload": row, "before": timing.Estimate.of(before).median, "with": timing.Estimate.of(after).median,
             "ratio": ratio.median, "low": ratio.low, "high": ratio.high, "runs": len(after)}
            for row, (before, after, ratio) in found.items()]


def problems(change, found):
    """Where all of an interval is above."""
    for row, (_, _, ratio) in found.items():
        if change.at_most and ratio.low > change.at_most:
            yield (f"{change.name}, {row}: {ratio.median:.4f} of the kernel before, by 95 % at least {ratio.low:.4f}, is "
                   f"above {change.at_most}")


def before(arch, scale):
    selected, measured = asked(), report.commit()
    chosen = {change: some for change in CHANGES if (some := [r for r in selected if r.workload in change.rows])}
    # What is for evaluation is in no kernel.
    for name in ("METER", "CONFIG"):
        os.environ.pop(name, None)
    build = Build(*stage("linux-series"), arch, "series")
    patches = unsigned_series(build.base)
    pairs = {change: change.states(patches) for change in chosen}
    seconds = {change: TURNS[scale] * 2 * (10 + sum(row.seconds(scale) for row in some)) for change, some in chosen.items()}
    runs = {change: f"before {scale} {change.name} {len(some)} rows" for change, some in chosen.items()}
    wanted = sorted({index for pair in pairs.values() for index in pair})
    steps = Steps("before", {f"before {len(wanted)} builds": 300 * len(wanted)}
                  | {runs[change]: seconds[change] for change in chosen})
    git, why = applies.apply(build.base.tree, patches, build.base.work / "series-before", build.base.version)
    if why:
        raise Error(f"the series does not apply to Linux {build.base.version} ({why})", "see make series")
    folder = build.base.work / "before"
    folder.mkdir(exist_ok=True)
    states = States(build, git)
    steps.start(f"before {len(wanted)} builds", f"building {len(wanted)} kernels")
    states.enter(0)
    states.configure(0)
    kernels = {index: built(states, index, folder) for index in wanted}
    programs = payload.workloads(build)
    found = {}
    for change, some in chosen.items():
        steps.start(runs[change], f"{change.name}: booting, {len(some)} rows, {TURNS[scale]} turns of two boots")
        turns = []
        for turn in range(TURNS[scale]):
            turns.append([values_of(rows.done(kernels[index], folder / "console", job(some, scale), programs=programs,
                                              timeout=120 + 10 * seconds[change], **rows.guest(FOLIOS)))
                          for index in pairs[change]])
            steps.progress((turn + 1) / TURNS[scale], f"turn {turn + 1}")
        found[change] = compared(turns)
    steps.done()
    print("whole calls, instructions per page\n\n"
          + "\n\n".join(text_table(table(change, rows_)) for change, rows_ in found.items()))
    if len(selected) == len(known()):
        write_atomically(TOP / BEFORE, json.dumps({
            "schema": 1, "kernel": build.base.version, "commit": measured, "scale": scale,
            "changes": {change.name: results(rows_) for change, rows_ in found.items()}}, indent=1) + "\n")
        say(f"written: {BEFORE}")
    return judged(problem for change, rows_ in found.items() for problem in problems(change, rows_))
