# SPDX-License-Identifier: GPL-2.0
"""The main job: build, boot, run every row in every mode in one boot, report."""

import os
import re

from . import guest, report, rows
from .boot import boot
from .common import FAIL, PASS, TOP, Error, Steps, say, write_atomically
from .kbuild import Build
from .tree import stage

BENCH = TOP / "tests/kernel/bench"
SECONDS_PER_RUN = {"short": 0.9, "full": 7}


def chosen_rows():
    """All rows, or those that ROW= matches."""
    wanted = os.environ.get("ROW")
    found = [r for r in rows.ROWS if not wanted or re.search(wanted, r.workload)]
    if not found:
        raise Error(f"ROW={wanted} matches no row", "one of " + ", ".join(r.workload for r in rows.ROWS))
    return found


def evaluate(arch, scale):
    selected = chosen_rows()
    kvm = os.environ.get("ACCEL") == "kvm"
    runs = 10 if kvm else 3
    total = len(selected) * len(rows.modes(runs))
    steps = Steps(f"evaluate-{arch}-{scale}", [("stage", 60), ("build", 600), ("module", 20),
                                              ("run", 15 + total * SECONDS_PER_RUN[scale])])
    steps.start("stage", "the kernel source and the series")
    base, tree = stage()
    build = Build(base, tree, arch)
    steps.start("build", "building the kernel")
    build.build(steps)
    steps.start("module", "building the workloads")
    bench = build.module(BENCH, "mm_batch_bench")
    steps.start("run", f"booting, {len(selected)} rows, {total} runs")

    folder = base.work / f"{build.out.name}-evaluate"
    folder.mkdir(exist_ok=True)
    archive = guest.initrd(folder, rows.job(selected, scale, runs), [bench, build.out / "lib/test_vmalloc.ko"],
                           [TOP / "tests/kernel/lib.sh"])
    seen = 0

    def count(line):
        nonlocal seen
        if report.RESULT.search(line):
            seen += 1
            if seen % len(rows.modes(runs)) == 0:
                steps.progress(seen / total, f"{seen} of {total} runs, {line.split()[2]} done")

    limit = int(120 + 4 * total * SECONDS_PER_RUN[scale])
    ended = boot(build, "quiet loglevel=3 cma=160M", initrd=archive, timeout=limit, log=folder / "console.log",
                 finished=f"^{guest.DONE}|^{guest.FAILED}", on_line=count)
    steps.done()
    failed = next((line for line in ended.lines if line.startswith(guest.FAILED)), None)
    if ended.code != PASS or failed:
        raise Error(failed or ended.why, f"the console is in {folder / 'console.log'}", ended.code or FAIL)

    lines = report.lines_of(selected, report.collect(ended.lines))
    if len(lines) != len(selected) or seen != total:
        raise Error(f"{seen} of {total} results", f"the console is in {folder / 'console.log'}")
    clock = "wall" if kvm else "icount"
    data = report.results(build, lines, scale, clock, 1)
    where = TOP / "report" / arch if scale == "full" and len(selected) == len(rows.ROWS) else folder
    write_atomically(where / "results.json", report.to_json(data))
    write_atomically(where / "report.md", report.markdown(build, lines, data, clock))
    print(report.text_table(report.table(lines)))
    say(f"written: {where}/results.json, report.md")
    problems = [p for line in lines for p in line.problems(not kvm)]
    for problem in problems:
        say(f"not met: {problem}")
    return FAIL if problems else PASS
