# SPDX-License-Identifier: GPL-2.0
"""The main job: build, boot, run every row in every mode in one boot, report."""

import hashlib
import json
import os
import re
import threading
from concurrent.futures import ThreadPoolExecutor

from ..base.cache import TOP, write_atomically
from ..base.errors import Error, matching, say
from ..base.tables import text_table
from ..paths.model import MIB, STRESS_MIB, mib, stress_mib
from ..kernel.kbuild import flavour, named_config, staged_build
from ..guest import initrd, payload
from ..guest.boot import emulator, kvm
from . import report, rows, stack, timing, verdict


def chosen_rows(known):
    """All of these rows, or those that ROW= matches."""
    return matching("ROW", "row", known, lambda row: row.workload, re.search)


def refuse_debug():
    """The debug kernel has no figures: what finds mistakes costs more than what is measured."""
    if flavour() == "debug":
        raise Error("DEBUG=1 has no figures", "leave DEBUG= out, or give it to make kunit or make kselftest")


def configuration():
    """The one that is measured: what a row's limits and modes go by."""
    named = named_config()
    return named.stem if named else "release"


class Boots:
    """Boots with a job of rows, and collects what they print."""

    def __init__(self, build, modules, programs, folder, steps):
        self.build, self.modules, self.programs, self.folder, self.steps = build, modules, programs, folder, steps

    def key(self, guest, debian, job):
        """What a boot's figures are of: the guest, the kernel, its modules and programs, and the job."""
        digest = hashlib.sha256(f"{guest} {debian}\n{job}".encode())
        for file in (self.build.image, *self.modules, *self.programs):
            digest.update(file.read_bytes())
        return digest.hexdigest()

    def forget(self):
        """The next run measures anew."""
        for kept in self.folder.glob("*/measured-*.json"):
            kept.unlink()

    def run(self, selected, scale, runs, longer):
        """All of a row's runs are of one boot; returns the rows' lines."""
        config = self.build.named
        left = {row.workload: all_runs([row], config, runs) for row in selected}
        metrics = {row.workload: row.metric for row in selected}
        total, one = sum(left.values()), threading.Lock()

        def count(line):
            found = verdict.RESULT.search(line)
            if found and metrics.get(found[2]) == found[4]:
                with one:
                    left[found[2]] -= 1
                    if not left[found[2]]:
                        done = total - sum(left.values())
                        self.steps.progress(done / total, f"{done} of {total} runs, {found[2]} done")

        def booted(kind):
            some = [row for row in selected if row.boot == kind]
            console = self.folder / kind.name / "console"
            guest, job = rows.guest(kind), rows.job(some, config, scale, runs, longer)
            kept, key = console.with_name(f"measured-{longer}.json"), self.key(guest, kind.debian, job)
            before = json.loads(kept.read_text()) if kept.exists() else {}
            # The boot ended, in a run of all boots that did not.
            if before.get("of") == key:
                printed = before["printed"]
                say(f"{kind.name}: as a run that was interrupted has measured it")
                for line in printed:
                    count(line)
            else:
                printed = rows.done(self.build, console, job, self.modules, self.programs, kind.debian, on_line=count,
                                    timeout=int(120 + 20 * seconds_of(some, config, scale, runs) * longer), **guest)
            found, missing = verdict.lines_of(some, printed, config, scale)
            wanted, lost = all_runs(some, config, runs), sum(left[row.workload] for row in some)
            if missing or lost:
                cause = ", ".join(missing) or f"{wanted - lost} of {wanted} results"
                raise Error(cause, f"the console is in {console}")
            write_atomically(kept, json.dumps({"of": key, "printed": printed}))
            return found

        def length(kind):
            return seconds_of([row for row in selected if row.boot == kind], config, scale, runs)

        # The longest first, so that none is left for last.
        kinds = sorted({row.boot: None for row in selected}, key=length, reverse=True)
        lines = [line for found in side_by_side(booted, kinds) for line in found]
        return sorted(lines, key=lambda line: selected.index(line.row))


def side_by_side(booted, kinds):
    """What booted() returns for each kind. Two guests at once: a count of instructions does not see the other."""
    wall = kvm() or mib() != MIB  # or so large that one takes all the memory
    together = [kind for kind in kinds if not kind.threads and not wall]
    pool = ThreadPoolExecutor(2)
    try:
        found = dict(zip(together, pool.map(booted, together)))
    finally:
        # What has not begun never will where something went wrong.
        pool.shutdown(cancel_futures=True)
    return [found[kind] if kind in found else booted(kind) for kind in kinds]


def all_runs(selected, config, runs):
    return sum(len(rows.runs_of(row, config, runs)) for row in selected)


def seconds_of(selected, config, scale, runs):
    return sum(row.seconds(scale) * all_runs([row], config, runs) for row in selected)


def fetch(arch, selected):
    """What rows run with and may have to be fetched is, before anything takes its time."""
    if any(row.boot.threads for row in selected):
        emulator(arch, threads=True)
    if any(row.boot.debian for row in selected):
        initrd.tree(arch)


def asked(arch, scale):
    """The rows that there are, and those that are asked for, if what is asked for can be had."""
    refuse_debug()
    known = rows.known(arch, scale)
    return known, chosen_rows(known)


def sure_of(lines):
    """Of wall time: medians, and how sure one is that a mode is faster."""
    found = [timing.Timed.of(line.row, line.values[line.row.metric]) for line in lines if not line.row.counts]
    return text_table(timing.table(list(filter(None, found)))) if any(found) else ""


def evaluate(arch, scale):
    known, selected = asked(arch, scale)
    every = len(selected) == len(known)
    # Before the tree can change under a long run.
    measured = report.commit()
    wall, config = kvm(), configuration()
    runs = 10 if wall else 3
    total = all_runs(selected, config, runs)
    seconds = 15 + seconds_of(selected, config, scale, runs) / 2
    run_step = f"{arch} {scale} {total} runs" + (f" of {mib()} MiB" if mib() != MIB else "") + (
        f", workers of {stress_mib()} MiB" if stress_mib() != STRESS_MIB else "")
    fetch(arch, selected)
    build, steps = staged_build(arch, "evaluate", payload.STEP | {run_step: seconds})
    selected = rows.countable(build, selected)
    modules, programs = payload.modules(build, steps), payload.workloads(build)
    frames = stack.stack(build)
    steps.start(run_step, f"booting, {len(selected)} rows")
    folder = build.base.work / f"{build.out.name}-evaluate"
    boots = Boots(build, modules, programs, folder, steps)
    found = {line.row: line for line in boots.run(selected, scale, runs, 1)}
    # What is too noisy for its limits is run again, with longer loops and in a boot of its own.
    for longer in () if wall else (4, 16):
        noisy = [row for row in selected if found[row].too_noisy(config)]
        if noisy:
            say(f"  too noisy for their limits: {', '.join(r.workload for r in noisy)}; again, {longer} times as long")
            found.update((line.row, line) for line in boots.run(noisy, scale, runs, longer))
    steps.done()

    lines = [found[row] for row in selected]
    clock = "wall" if wall else "icount"
    data = report.results(build, measured, lines, scale, clock) | {"stack": frames}
    # Only the whole table of a configuration with a name is worth keeping. But for x86_64's release, it may be short.
    release = config == "release"
    tracked = (scale == "full" or not release or arch != "x86_64") and every and not wall and not any(
        os.environ.get(name) for name in ("EXTRA_CONFIG", "RECLAIM_MIB", "STRESS_MIB", "KDIR"))
    where = TOP / "report" / (arch if release else f"{arch}-{config}") if tracked else folder
    write_atomically(where / "results.json", json.dumps(data, indent=1) + "\n")
    write_atomically(where / "report.md", report.markdown(build, lines, data, clock))
    print(report.console(lines, config))
    if wall and (sure := sure_of(lines)):
        print(f"\n{sure}")
    if frames:
        print(f"\n{stack.said(frames)}")
    say(f"written: {where}/results.json, report.md")
    of_rows = [problem for line in lines for problem in line.problems(not wall, config)]
    # What was measured is judged: another run is to measure anew.
    boots.forget()
    return verdict.judged([*of_rows, *stack.problems(frames, config)])
