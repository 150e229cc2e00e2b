# SPDX-License-Identifier: GPL-2.0
"""The main job: build, boot, run every row in every mode in one boot, report."""

import os
import re

from . import guest, report, rows
from .boot import boot
from .common import FAIL, PASS, TOP, Error, say, write_atomically
from .kbuild import WORKLOADS, staged_build

SECONDS_PER_RUN = {"short": 0.8, "full": 4}


def chosen_rows():
    """All rows, or those that ROW= matches."""
    wanted = os.environ.get("ROW")
    found = [r for r in rows.ROWS if not wanted or re.search(wanted, r.workload)]
    if not found:
        raise Error(f"ROW={wanted} matches no row", "one of " + ", ".join(r.workload for r in rows.ROWS))
    return found


class Boots:
    """Boots with a job of rows, and collects what they print."""

    def __init__(self, build, modules, folder, steps):
        self.build, self.modules, self.folder, self.steps = build, modules, folder, steps

    def run(self, selected, scale, runs, longer):
        """All of a row's runs are of one boot; returns the rows' lines."""
        per_row = len(rows.modes(runs))
        total = len(selected) * per_row
        archive = guest.initrd(self.folder, rows.job(selected, scale, runs, longer), self.modules,
                               arch=self.build.arch)
        console = self.folder / "console.log"
        seen = 0

        def count(line):
            nonlocal seen
            if report.RESULT.search(line):
                seen += 1
                if seen % per_row == 0:
                    self.steps.progress(seen / total, f"{seen} of {total} runs, {line.split()[2]} done")

        limit = int(120 + 10 * total * SECONDS_PER_RUN[scale] * longer)
        ended = boot(self.build, "quiet loglevel=3 cma=160M", initrd=archive, timeout=limit, log=console,
                     finished=f"^{guest.DONE}|^{guest.FAILED}", on_line=count)
        failed = guest.failure(ended)
        if ended.code != PASS or failed:
            raise Error(failed or ended.why, f"the console is in {console}", ended.code or FAIL)
        lines = report.lines_of(selected, report.collect(ended.lines))
        if len(lines) != len(selected) or seen != total:
            raise Error(f"{seen} of {total} results", f"the console is in {console}")
        return lines


def evaluate(arch, scale):
    selected = chosen_rows()
    # Before the tree can change under a long run.
    measured = report.commit()
    kvm = os.environ.get("ACCEL") == "kvm"
    runs = 10 if kvm else 3
    total = len(selected) * len(rows.modes(runs))
    run_step = f"{arch} {scale} {total} runs"
    build, steps = staged_build(arch, "evaluate", WORKLOADS | {run_step: 15 + total * SECONDS_PER_RUN[scale]})
    modules = build.workloads(steps)
    steps.start(run_step, f"booting, {len(selected)} rows, {total} runs")
    folder = build.base.work / f"{build.out.name}-evaluate"
    boots = Boots(build, modules, folder, steps)
    found = {line.row: line for line in boots.run(selected, scale, runs, 1)}
    # What is too noisy is run again, with longer loops and in a boot of its own.
    for longer in () if kvm else (4, 16):
        noisy = [row for row in selected if found[row].noise > rows.NOISE_LIMIT]
        if noisy:
            say(f"  noise above {rows.NOISE_LIMIT:.1%}: {', '.join(r.workload for r in noisy)}; again, {longer} times as long")
            found.update((line.row, line) for line in boots.run(noisy, scale, runs, longer))
    steps.done()

    lines = [found[row] for row in selected]
    clock = "wall" if kvm else "icount"
    data = report.results(build, measured, lines, scale, clock, 1)
    # Only the whole table of the one configuration is worth keeping.
    tracked = scale == "full" and len(selected) == len(rows.ROWS) and not kvm and not os.environ.get("EXTRA_CONFIG")
    where = TOP / "report" / arch if tracked else folder
    write_atomically(where / "results.json", report.to_json(data))
    write_atomically(where / "report.md", report.markdown(build, lines, data, clock))
    print(report.text_table(report.table(lines)))
    say(f"written: {where}/results.json, report.md")
    problems = [p for line in lines for p in line.problems(not kvm)]
    for problem in problems:
        say(f"not met: {problem}")
    return FAIL if problems else PASS
