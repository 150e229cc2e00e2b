# SPDX-License-Identifier: GPL-2.0
"""`make time`: the rows of all paths in User Mode Linux, on the host's CPU."""

import os
import random
from contextlib import contextmanager
from time import monotonic

from ..base.cache import TOP
from ..base.errors import Error, say
from ..base.progress import Steps
from ..base.tables import number, text_table
from ..guest import payload
from ..guest.rootfs import ext4
from ..kernel.kbuild import named_config, staged_build
from ..kernel.tree import BETTER_C
from ..paths import PATHS
from . import evaluate, report, rows, timing
from .figures import REPORTS, TIMES, Figures, timed_rows
from .kept import cpu, keep
from .timing import shown, sure
from .verdict import RESULT, judged

# The kernels: what mode c is there, and the configuration.
KERNELS = {"C": "release", "twin": BETTER_C}
# What a kernel's boots take of the time, in seconds, by kind.
SECONDS = {"short": {"bench": 12, "remote": 70}, "full": {"bench": 60, "remote": 400}}
PASSES = 400
MEMORY, DISK_MIB = 512, 128
SWAP = "brd.rd_nr=1 brd.rd_size=98304"


def asked():
    evaluate.refuse_debug()
    if named_config():
        raise Error("make time has one configuration, and C's twins besides", "leave CONFIG= out")
    return evaluate.chosen_rows(timed_rows())


@contextmanager
def configured(name):
    """What staged_build() goes by."""
    os.environ["TIMED"] = "1"
    if name == "release":
        os.environ.pop("CONFIG", None)
    else:
        os.environ["CONFIG"] = name
    try:
        yield
    finally:
        os.environ.pop("CONFIG", None)


def job(selected, modes_of, passes, seconds, order):
    """The shell's lines: as many passes as an interval needs, and more for so many seconds."""
    lines = ["remember_modes"]
    for number in range(passes + 1):
        if number > timing.AT_LEAST:
            lines.append(f"[ $(cut -d. -f1 /proc/uptime) -lt {seconds} ] || return 0")
        # What is written is read back, once.
        lines += [f"check={'check' if number == 0 else ''}",
                  # No row finds a path as another one has left it.
                  *(f"default_modes; count {row.path} {row.workload} {mode} ns {row.command}"
                    for row, mode in timing.one_pass(selected, modes_of, order))]
    return "\n".join(lines) + "\n"


def runs_of(console):
    """What such a job printed."""
    found = filter(None, map(RESULT.search, console))
    return [(*line.group(1, 2, 3), float(line[5])) for line in found]


class Kernel:
    """A build, and what its guests need."""

    def __init__(self, head, config):
        self.head, self.config = head, config
        with configured(config):
            self.build, steps = staged_build("um", "time", payload.STEP)
            self.modules = payload.modules(self.build, steps)
            self.programs = payload.workloads(self.build)
            steps.done()
        self.folder = self.build.base.work / f"{self.build.out.name}-{config}-time"

    def modes_of(self, row):
        return PATHS[row.path].modes(self.config)

    def run(self, kind, selected, seconds, on_line):
        """Boots of a kind, with all rows of it."""
        folder = self.folder / kind.name
        folder.mkdir(parents=True, exist_ok=True)
        disk = ext4(folder / "scratch.ext4", DISK_MIB)
        script = kind.commands() + job(selected, self.modes_of, PASSES, seconds, random.Random())
        console = folder / "console"
        lines = rows.done(self.build, console, script, self.modules, self.programs, memory=MEMORY, on_line=on_line,
                          arguments=f"quiet loglevel=3 cma=160M init_on_alloc=0 {SWAP} ubd0={disk}",
                          timeout=120 + 10 * seconds)
        found = timing.timed(selected, self.modes_of, runs_of(lines))
        if lost := {row.workload for row in selected} - {line.row.workload for line in found}:
            raise Error(f"fewer than {timing.AT_LEAST} runs of {', '.join(sorted(lost))}", f"the console is in {console}")
        return {line.row: line for line in found}


def progress(steps, seconds, every=15):
    """For boot(): says now and then how many runs there were."""
    runs, start, said_at = 0, monotonic(), monotonic()

    def count(line):
        nonlocal runs, said_at
        runs += bool(RESULT.search(line))
        if monotonic() - said_at >= every:
            said_at = monotonic()
            steps.progress(min((said_at - start) / seconds, 0.99), f"{runs} runs")

    return count


def time(scale):
    selected = asked()
    measured = report.commit()
    kernels = [Kernel(head, config) for head, config in KERNELS.items()]
    kinds = list(dict.fromkeys(row.boot for row in selected))
    plan = {f"um time {scale} {kernel.head} {kind.name}": (kernel, kind) for kernel in kernels for kind in kinds}
    steps = Steps("time", {name: SECONDS[scale][kind.name] for name, (_, kind) in plan.items()})
    found = {kernel.head: {} for kernel in kernels}
    for name, (kernel, kind) in plan.items():
        seconds = SECONDS[scale][kind.name]
        some = [row for row in selected if row.boot == kind]
        steps.start(name, f"{kind.name}: {len(some)} rows, mode c is {kernel.head}, {seconds} s")
        found[kernel.head] |= kernel.run(kind, some, seconds, progress(steps, seconds))
    steps.done()
    lines = [(row, found["C"][row], found["twin"][row]) for row in selected]
    data = results(kernels[0].build, measured, lines, scale)
    where = TOP / (TIMES if scale == "full" and len(selected) == len(timed_rows()) else "out/time")
    text = text_table(table(lines)) + "\n" + said(data)
    print(text)
    say(f"written: {where}/: {', '.join(keep(where, data, text))}")
    return judged(problem for _, plain, _ in lines for problem in plain.problems())


def instructions(figures, row, mode):
    """Of the evaluation, per page; None where it has no such row, or has not measured it yet."""
    value = figures.median(row.counted, mode, row.metric) if row.counted in figures.rows else None
    return value / row.pages if value else None


def table(lines):
    figures = Figures(REPORTS["release"])
    text = [["row", "off", "C", "twin", "Rust", "off/Rust", "required", "C/Rust", "twin/Rust", "instructions: off", "C",
             "Rust", "off/Rust"]]
    for row, plain, twin in lines:
        counted = [instructions(figures, row, mode) for mode in ("off", "c", "rust")]
        text.append([row.workload, shown(plain.estimate("off")), shown(plain.estimate("c")), shown(twin.estimate("c")),
                     shown(plain.estimate("rust")), sure(plain.ratio("off", "rust")), number(row.gain, 2),
                     sure(plain.ratio("c", "rust")), sure(twin.ratio("c", "rust")),
                     *(number(value, 0) for value in counted),
                     number(counted[0] and counted[2] and counted[0] / counted[2], 2)])
    return text


SAID = """
Nanoseconds per page in User Mode Linux {kernel}, on {cpu}: medians of {runs} passes,
quotients of runs in one pass with their 95 % interval; (I) improves, (R) is worse, for sure. Beside them, guest
instructions of the same row in report/x86_64. Not in these times, as a process has no such thing: flushes and IPIs, page
table walks, PMDs that map folios, and helpers of Rust that are inlined."""


def said(data):
    low, high = min(r["runs"] for r in data["results"]), max(r["runs"] for r in data["results"])
    return SAID.format(kernel=data["kernel"], cpu=data["cpu"], runs=low if low == high else f"{low} to {high}")


def results(build, measured, lines, scale):
    found = [(head, line) for _, *both in lines for head, line in zip(KERNELS, both)]
    return {
        "schema": 1, "kernel": build.base.version, "commit": measured, "cpu": cpu(), "cpus": os.cpu_count(),
        "scale": scale, "toolchain": build.toolchain(),
        "results": [entry for head, line in found for entry in timing.entries(line, "ns", c=head)],
        "ratios": [entry for head, line in found for entry in timing.quotients(line, c=head)],
    }
