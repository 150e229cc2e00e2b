# SPDX-License-Identifier: GPL-2.0
"""What reclaim spends on unmapping, by the meter, which is built in with METER=1.

256 MiB of anonymous memory in folios of each size are reclaimed with the meter off and on, in one boot.
The meter's self test, and what it says that it costs, are checked against that.
"""

import re
import statistics

from ..base.cache import TOP
from ..base.errors import FAIL, PASS, Error, say
from ..kernel.kbuild import staged_build
from ..guest import initrd, payload
from ..guest.boot import boot
from .report import text_table

MIB = 256
RUNS = 3
# Folio in KiB, and how it is mapped.
SHAPES = ((2048, "whole"), (2048, "split"), (64, "whole"), (4, "whole"))
# What each run must show. Flushes of TLBs are left out: not every architecture counts them.
NEEDED = {"calls", "pages", "ns", "ns_net", "runs", "run_pages", "runs_1", "flush_dirty_asked", "flush_dirty_done",
          "flush_asked", "flush_done", "cost_inside", "cost_call", "cost_run"}
# How far what the meter costs may be from what it says that it costs, in parts of a whole call.
COST_LIMIT = 0.01

JOB = f"""
meter=/sys/kernel/debug/mm_batch_meter
[ -d $meter ] || fail 'no meter in this kernel'
swap_on 512
selftest() {{ sed 's/^/SELFTEST /' $meter/selftest; }}
# run KIB HOW ON: on what is counted while the meter is off, see there.
run() {{
	echo $3 >$meter/enable && echo 1 >$meter/reset || fail "the meter cannot be switched"
	/pageout {MIB} $1 $2 >/tmp/out || fail "pageout $1 $2"
	sed "s/^PAGEOUT/& $3/" /tmp/out
	sed "s/^/METER $3 $1 $2 /" $meter/stats
}}
"""


def job():
    lines = ["selftest"]
    for kib, how in SHAPES:
        lines += [f"run {kib} {how} {on}" for _ in range(RUNS) for on in (0, 1)]
    return JOB + "\n".join(lines + ["selftest"]) + "\n"


class Results:
    """What a boot printed: the self tests, and each run's stats by (KiB, how, meter on)."""

    def __init__(self, lines):
        self.selftests, self.runs = [], {}
        open_runs = {}
        for line in lines:
            if found := re.fullmatch(r"SELFTEST (\w+) (\w+)", line):
                name, value = found.groups()
                if name == "known_whole":
                    self.selftests.append({})
                self.selftests[-1][name] = value
            elif found := re.fullmatch(r"PAGEOUT ([01]) (\d+) (\w+) ns (\d+) pages (\d+) left (\d+) idle \d+", line):
                on, kib, how, ns, pages, left = found.groups()
                run = {"whole": int(ns), "in_all": int(pages), "left": int(left)}
                open_runs[(on, kib, how)] = run
                self.runs.setdefault((int(kib), how, on == "1"), []).append(run)
            elif found := re.fullmatch(r"METER ([01]) (\d+) (\w+) (\w+) ([\d.]+)", line):
                on, kib, how, name, value = found.groups()
                open_runs.get((on, kib, how), {})[name] = float(value)

    def median(self, kib, how, on, name):
        return statistics.median(run[name] for run in self.runs[(kib, how, on)])

    def cost(self, kib, how):
        """What the meter added to the whole call: seen, and as it says itself."""
        seen = self.median(kib, how, True, "whole") - self.median(kib, how, False, "whole")
        said = sum(self.median(kib, how, True, count) * self.median(kib, how, True, cost)
                   for count, cost in (("calls", "cost_call"), ("runs", "cost_run")))
        return seen, said

    def problems(self):
        """What makes the figures worthless, one line each."""
        if len(self.selftests) != 2:
            yield f"{len(self.selftests)} of 2 self tests ran"
        for test in self.selftests:
            if test.get("selftest") != "pass":
                yield (f"the meter's self test: {test.get('known_metered_net')} metered instead of "
                       f"{test.get('known_whole')}, more than 1 % off")
        for kib, how in SHAPES:
            name = f"{kib} KiB {how}"
            counts = [len(self.runs.get((kib, how, on), [])) for on in (False, True)]
            if counts != [RUNS, RUNS]:
                yield f"{name}: {sum(counts)} of {2 * RUNS} runs"
                continue
            if any(NEEDED - set(run) for on in (False, True) for run in self.runs[(kib, how, on)]):
                yield f"{name}: the meter did not show all that it should"
                continue
            for run in self.runs[(kib, how, False)]:
                if run["calls"] or run["runs"] or run["flush_asked"]:
                    yield f"{name}: something was counted with the meter off"
            for run in self.runs[(kib, how, True)]:
                if run["left"] or run["pages"] < run["in_all"] or run["run_pages"] < run["in_all"]:
                    yield (f"{name}: {run['in_all']} pages, of which {run['pages']:.0f} were metered, "
                           f"{run['run_pages']:.0f} unmapped, {run['left']} left")
            seen, said = self.cost(kib, how)
            whole = self.median(kib, how, False, "whole")
            if abs(seen - said) > COST_LIMIT * whole:
                yield (f"{name}: the meter cost {seen / 1e6:.2f} M, by its own account {said / 1e6:.2f} M; "
                       f"that is more than {COST_LIMIT:.0%} of the call apart")


def cost_table(results):
    """What unmapping costs, per page in try_to_unmap(), and in the whole call."""
    rows = [["folio", "net/page", "raw/page", "meter off", "meter on", "meter's cost", "by its account"]]
    for kib, how in SHAPES:
        net, raw = (results.median(kib, how, True, n) / results.median(kib, how, True, "pages")
                    for n in ("ns_net", "ns"))
        off, on = (results.median(kib, how, x, "whole") / 1e6 for x in (False, True))
        seen, said = results.cost(kib, how)
        rows.append([f"{kib} KiB {how}", f"{net:.1f}", f"{raw:.1f}", f"{off:.2f} M", f"{on:.2f} M",
                     f"{seen / 1e6:.2f} M", f"{said / 1e6:.2f} M"])
    return rows


def count_table(results):
    """Runs and flushes."""
    rows = [["folio", "calls", "runs", "pages/run", "dirty flushes asked", "done", "flushes asked", "done",
             "local TLB flushes, page", "all", "shootdowns", "run lengths"]]
    for kib, how in SHAPES:
        def count(name):
            # Not every architecture counts TLB flushes.
            if any(name not in run for run in results.runs[(kib, how, True)]):
                return "-"
            return f"{results.median(kib, how, True, name):.0f}"

        names = [n for n in results.runs[(kib, how, True)][0] if re.fullmatch(r"runs_\d+", n)]
        lengths = " ".join(f"{n[5:]}:{count(n)}" for n in names if count(n) != "0")
        mean = results.median(kib, how, True, "run_pages") / results.median(kib, how, True, "runs")
        rows.append([f"{kib} KiB {how}", count("calls"), count("runs"), f"{mean:.1f}", count("flush_dirty_asked"),
                     count("flush_dirty_done"), count("flush_asked"), count("flush_done"),
                     count("tlb_local_flush_one"), count("tlb_local_flush_all"), count("tlb_remote_flush"), lengths])
    return rows


def meter(arch):
    if arch != "x86_64":
        raise Error(f"make meter has no C library for {arch}", "run it with ARCH=x86_64")
    runs = len(SHAPES) * RUNS * 2
    boot_step = f"{arch} meter boot"
    build, steps = staged_build(arch, "meter", {"pageout": 2, boot_step: 4 * runs})
    steps.start("pageout", "building the workload")
    program = payload.program(build, TOP / "tests/kernel/workloads/pageout.c")
    steps.start(boot_step, f"booting, {runs} runs")
    folder = build.base.work / f"{build.out.name}-meter"
    archive = initrd.archive(folder, job(), files=[program], arch=build.arch)
    console, seen = folder / "console.log", 0

    def count(line):
        nonlocal seen
        if line.startswith("PAGEOUT"):
            seen += 1
            if seen % (2 * RUNS) == 0:
                steps.progress(seen / runs, f"{seen} of {runs} runs")

    ended = boot(build, "quiet loglevel=3", initrd=archive, timeout=120 + 40 * runs, log=console,
                 finished=f"^{initrd.DONE}|^{initrd.FAILED}", on_line=count)
    failed = initrd.failure(ended)
    if ended.code != PASS or failed:
        raise Error(failed or ended.why, f"the console is in {console}", ended.code or FAIL)
    steps.done()

    results = Results(ended.lines)
    problems = list(results.problems())
    for problem in problems:
        say(f"not met: {problem}")
    if problems:
        say(f"the console is in {console}")
        return FAIL
    print(f"Guest instructions, {MIB} MiB of anonymous memory, MADV_PAGEOUT to zram, each path in its "
          f"default mode; medians of {RUNS} runs\n")
    print(text_table(cost_table(results)) + "\n")
    print(text_table(count_table(results)) + "\n")
    kib, how = SHAPES[0]
    inside, call, run = (results.median(kib, how, True, f"cost_{n}") for n in ("inside", "call", "run"))
    print(f"The meter's own cost: {call:.1f} per call, {inside:.1f} of it inside of what it measures, "
          f"and {run:.1f} per run; off, a nop in each place")
    for test in results.selftests:
        whole, net = int(test["known_whole"]), int(test["known_metered_net"])
        print(f"self test: {whole} plain, {net} metered ({test['known_metered_raw']} raw), "
              f"{net / whole - 1:+.2%}; at most 1 % is a pass")
    return PASS
