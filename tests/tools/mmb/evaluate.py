# SPDX-License-Identifier: GPL-2.0
"""The main job: build, boot, run every row in every mode in one boot, report."""

import os
import re

from . import guest, report, rows
from .boot import boot
from .common import FAIL, PASS, TOP, Error, say, write_atomically
from .kbuild import WORKLOADS, staged_build


def chosen_rows():
    """All rows, or those that ROW= matches."""
    wanted = os.environ.get("ROW")
    found = [r for r in rows.ROWS if not wanted or re.search(wanted, r.workload)]
    if not found:
        raise Error(f"ROW={wanted} matches no row", "one of " + ", ".join(r.workload for r in rows.ROWS))
    return found


class Boots:
    """Boots with a job of rows, and collects what they print."""

    def __init__(self, build, modules, programs, folder, steps):
        self.build, self.modules, self.programs, self.folder, self.steps = build, modules, programs, folder, steps

    def run(self, selected, scale, runs, longer):
        """All of a row's runs are of one boot; returns the rows' lines."""
        kinds = {kind: [row for row in selected if row.boot == kind] for kind in dict.fromkeys(r.boot for r in selected)}
        lines, total = [], len(selected) * len(rows.modes(runs))
        for kind, some in kinds.items():
            lines += self.boot(kind, some, scale, runs, longer, len(lines) * len(rows.modes(runs)), total)
        return lines

    def boot(self, kind, selected, scale, runs, longer, before, total):
        """Rows of one kind of boot. So many runs were before, of so many in all."""
        per_row = len(rows.modes(runs))
        archive = guest.initrd(self.folder, rows.job(selected, scale, runs, longer), self.modules, self.programs,
                               arch=self.build.arch)
        console = self.folder / f"{kind}.console"
        metrics = {row.workload: row.metric for row in selected}
        seen = 0

        def count(line):
            nonlocal seen
            found = report.RESULT.search(line)
            if found and metrics.get(found.group(2)) == found.group(4):
                seen += 1
                if seen % per_row == 0:
                    done = before + seen
                    self.steps.progress(done / total, f"{done} of {total} runs, {line.split()[2]} done")

        limit = int(120 + 10 * per_row * sum(row.seconds(scale) for row in selected) * longer)
        ended = boot(self.build, initrd=archive, timeout=limit, log=console, on_line=count,
                     finished=f"^{guest.DONE}|^{guest.FAILED}", **rows.BOOTS[kind].guest())
        failed = guest.failure(ended)
        if ended.code != PASS or failed:
            raise Error(failed or ended.why, f"the console is in {console}", ended.code or FAIL)
        lines, missing = report.lines_of(selected, report.collect(ended.lines))
        if missing or seen != len(selected) * per_row:
            raise Error(", ".join(missing) or f"{seen} of {len(selected) * per_row} results", f"the console is in {console}")
        return lines


def guest_files(build, steps):
    """The modules and programs that rows run. Their step is WORKLOADS."""
    return build.workloads(steps), [build.program(TOP / "tests/kernel/workloads/reclaim.c")]


def evaluate(arch, scale):
    selected = chosen_rows()
    # Before the tree can change under a long run.
    measured = report.commit()
    kvm = os.environ.get("ACCEL") == "kvm"
    runs = 10 if kvm else 3
    total = len(selected) * len(rows.modes(runs))
    seconds = 15 + len(rows.modes(runs)) * sum(row.seconds(scale) for row in selected)
    run_step = f"{arch} {scale} {total} runs" + (f" of {rows.mib()} MiB" if rows.mib() != rows.MIB else "")
    build, steps = staged_build(arch, "evaluate", WORKLOADS | {run_step: seconds})
    modules, programs = guest_files(build, steps)
    steps.start(run_step, f"booting, {len(selected)} rows, {total} runs")
    folder = build.base.work / f"{build.out.name}-evaluate"
    boots = Boots(build, modules, programs, folder, steps)
    found = {line.row: line for line in boots.run(selected, scale, runs, 1)}
    # What is too noisy is run again, with longer loops and in a boot of its own.
    for longer in () if kvm else (4, 16):
        noisy = [row for row in selected if found[row].noise > rows.NOISE_LIMIT]
        if noisy:
            say(f"  noise above {rows.NOISE_LIMIT:.1%}: {', '.join(r.workload for r in noisy)}; again, {longer} times as long")
            found.update((line.row, line) for line in boots.run(noisy, scale, runs, longer))
    steps.done()

    lines = [found[row] for row in selected]
    clock, limits = "wall" if kvm else "icount", build.named == "release"
    data = report.results(build, measured, lines, scale, clock)
    # Only the whole table of a configuration with a name is worth keeping; what is shown without limits may be short.
    tracked = (scale == "full" or not limits) and len(selected) == len(rows.ROWS) and not kvm and not any(
        os.environ.get(name) for name in ("EXTRA_CONFIG", "RECLAIM_MIB", "KDIR"))
    where = TOP / "report" / (arch if limits else f"{arch}-{build.named}") if tracked else folder
    write_atomically(where / "results.json", report.to_json(data))
    write_atomically(where / "report.md", report.markdown(build, lines, data, clock, limits))
    more = report.more_table(lines)
    print(report.text_table(report.table(lines, limits)) + ("\n\n" + report.text_table(more) if more else ""))
    say(f"written: {where}/results.json, report.md")
    problems = [p for line in lines for p in line.problems(not kvm, limits)]
    for problem in problems:
        say(f"not met: {problem}")
    return FAIL if problems else PASS
