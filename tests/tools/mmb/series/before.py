# SPDX-License-Identifier: GPL-2.0
"""make before: what folio_batch costs where it is off. Whole calls in the kernel that has it, off, and in the kernel
before its first patch, neither of which has the meter.

Two boots differ by more than what is looked for. So the kernels boot in turn, two boots of a turn are compared, and a
quotient is the median of all turns, with the interval in which that is by 95 %.
"""

import json
import os
import re

from ..base.cache import TOP, write_atomically
from ..base.errors import PASS, Error, matching, say
from ..base.progress import Steps
from ..base.tables import number, text_table
from ..guest import payload
from ..kernel.kbuild import Build
from ..kernel.tree import stage
from ..measure import report, rows, timing
from ..measure.figures import BEFORE
from ..measure.verdict import RESULT, judged
from ..paths import PATHS
from ..paths.folio_batch import FOLIOS
from . import applies
from .states import States
from .write import unsigned_series

LAST = "folio_batch"
# off/before at most.
AT_MOST = 1.005
TURNS = {"short": timing.AT_LEAST, "full": 2 * timing.AT_LEAST}
# A path that both kernels have, in the mode that all rows of the last one have it in: what a row may set.
OTHER, MODE = "dirty_flush", "rust"


def known():
    """The rows that need no meter."""
    return [row for row in PATHS[LAST].rows if row.boot == FOLIOS and row.command.startswith("remote ")]


def asked():
    return matching("ROW", "row", known(), lambda row: row.workload, re.search)


def first_of_last(patches):
    """How many patches come before the last path's."""
    own = [patch.parent for patch in patches]
    if not own[-1].name.endswith(LAST):
        raise Error(f"the series ends with {own[-1].name}, and not with {LAST}",
                    "mmb/series/before.py compares with that")
    return own.index(own[-1])


def job(selected, scale):
    lines = [FOLIOS.commands(), f"parts={selected[0].parts()}"]
    lines += [f"row {OTHER} {row.workload} {MODE} {row.metric} {row.command_for(scale)}" for row in selected]
    return "\n".join(lines) + "\n"


def values_of(lines):
    """Row -> its value, of what such a job printed."""
    return {found[2]: float(found[5]) for found in filter(None, map(RESULT.search, lines))}


def built(states, index, folder):
    """The kernel after so many patches, kept for many boots."""
    states.compile(index, whole=True, what="off")
    return states.kept(index, folder)


def table(found):
    head = ["whole call, instructions per page", "before", "off", "off/before", "at most"]
    return [head, *([row, number(timing.Estimate.of(before).median), number(timing.Estimate.of(off).median),
                     f"{ratio.median:.4f} ({ratio.low:.4f} to {ratio.high:.4f})", f"{AT_MOST}"]
                    for row, (before, off, ratio) in found.items())]


def compared(turns):
    """Row -> (values before, values in off, off/before), of turns of two boots each."""
    found = {}
    for row in turns[0][0]:
        before, off = ([turn[at][row] for turn in turns] for at in (0, 1))
        found[row] = before, off, timing.Estimate.of([b / a for a, b in zip(before, off)])
    return found


def results(build, measured, scale, found):
    """Of a file that documents are made of."""
    return {"schema": 1, "kernel": build.base.version, "commit": measured, "scale": scale, "at_most": AT_MOST,
            "results": [{"workload": row, "before": timing.Estimate.of(before).median,
                         "off": timing.Estimate.of(off).median, "ratio": ratio.median, "low": ratio.low,
                         "high": ratio.high, "runs": len(off)} for row, (before, off, ratio) in found.items()]}


def problems(found):
    """Where all of an interval is above."""
    for row, (_, _, ratio) in found.items():
        if ratio.low > AT_MOST:
            yield f"{row}: off/before {ratio.median:.4f}, by 95 % at least {ratio.low:.4f}, is above {AT_MOST}"


def before(arch, scale):
    selected, measured = asked(), report.commit()
    # What is for evaluation is in neither.
    for name in ("METER", "CONFIG"):
        os.environ.pop(name, None)
    build = Build(*stage("linux-series"), arch, "series")
    patches = unsigned_series(build.base)
    seconds = TURNS[scale] * 2 * (10 + sum(row.seconds(scale) for row in selected))
    steps = Steps("before", {"before builds": 600, f"before {scale} {len(selected)} rows": seconds})
    git, why = applies.apply(build.base.tree, patches, build.base.work / "series-before", build.base.version)
    if why:
        raise Error(f"the series does not apply to Linux {build.base.version} ({why})", "see make series")
    folder = build.base.work / "before"
    folder.mkdir(exist_ok=True)
    states = States(build, git)
    steps.start("before builds", f"building the kernel before {LAST}, and with it")
    states.enter(0)
    states.configure(0)
    kernels = [built(states, index, folder) for index in (first_of_last(patches), states.last)]
    programs = payload.workloads(build)
    steps.start(f"before {scale} {len(selected)} rows",
                f"booting, {len(selected)} rows, {TURNS[scale]} turns of two boots")
    turns = []
    for turn in range(TURNS[scale]):
        turns.append([values_of(rows.done(kernel, folder / "console", job(selected, scale), programs=programs,
                                          timeout=120 + 10 * seconds, **rows.guest(FOLIOS))) for kernel in kernels])
        steps.progress((turn + 1) / TURNS[scale], f"turn {turn + 1}")
    steps.done()
    found = compared(turns)
    print(text_table(table(found)))
    if len(selected) == len(known()):
        write_atomically(TOP / BEFORE, json.dumps(results(build, measured, scale, found), indent=1) + "\n")
        say(f"written: {BEFORE}")
    return judged(problems(found))
