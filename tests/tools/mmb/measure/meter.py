# SPDX-License-Identifier: GPL-2.0
"""What reclaim spends on unmapping, by the meter, which is built in with METER=1.

256 MiB of anonymous memory in folios of each size are reclaimed with the meter off and on, in one boot.
The meter's self test, and what it says that it costs, are checked against that.
"""

import re
import statistics

from ..base.cache import TOP
from ..base.errors import PASS, Error, say
from ..base.tables import text_table
from ..kernel.kbuild import staged_build
from ..guest import payload
from .rows import done
from .verdict import judged

MIB = 256
RUNS = 3
# Folio in KiB, and how it is mapped.
SHAPES = ((2048, "whole"), (2048, "split"), (64, "whole"), (4, "whole"))
# What each run must show. Flushes of TLBs are left out: not every architecture counts them.
NEEDED = {"calls", "pages", "ns", "ns_net", "runs", "run_pages", "runs_1", "flush_dirty_asked", "flush_dirty_done",
          "flush_asked", "flush_done", "cost_inside", "cost_call", "cost_run"}
FLUSHES = ("flush_dirty_asked", "flush_dirty_done", "flush_asked", "flush_done",
           "tlb_local_flush_one", "tlb_local_flush_all", "tlb_remote_flush")
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
    runs = [f"run {kib} {how} {on}" for kib, how in SHAPES for _ in range(RUNS) for on in (0, 1)]
    return JOB + "\n".join(["selftest", *runs, "selftest"]) + "\n"


class Results:
    """What a boot printed: the self tests, and each run's figures by (KiB, how, meter on)."""

    def __init__(self, lines):
        self.selftests, self.runs = [], {}
        for line in lines:
            if found := re.fullmatch(r"SELFTEST (\w+) (\w+)", line):
                if found[1] == "known_whole":
                    self.selftests.append({})
                self.selftests[-1][found[1]] = found[2]
            elif found := re.fullmatch(r"PAGEOUT ([01]) (\d+) (\w+) ns (\d+) pages (\d+) left (\d+) idle .*", line):
                run = {"whole": int(found[4]), "in_all": int(found[5]), "left": int(found[6])}
                self.runs.setdefault((int(found[2]), found[3], found[1] == "1"), []).append(run)
            elif found := re.fullmatch(r"METER ([01]) (\d+) (\w+) (\w+) ([\d.]+)", line):
                # Of the last run that there is.
                for run in self.runs.get((int(found[2]), found[3], found[1] == "1"), [])[-1:]:
                    run[found[4]] = float(found[5])

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
        net, raw, pages = (results.median(kib, how, True, name) for name in ("ns_net", "ns", "pages"))
        whole = [*(results.median(kib, how, on, "whole") for on in (False, True)), *results.cost(kib, how)]
        rows.append([f"{kib} KiB {how}", f"{net / pages:.1f}", f"{raw / pages:.1f}",
                     *(f"{n / 1e6:.2f} M" for n in whole)])
    return rows


def count_table(results):
    rows = [["folio", "calls", "runs", "pages/run", "dirty flushes asked", "done", "flushes asked", "done",
             "local TLB flushes, page", "all", "shootdowns", "run lengths"]]
    for kib, how in SHAPES:
        runs = results.runs[(kib, how, True)]
        # Not every architecture counts TLB flushes.
        counts = {n: f"{results.median(kib, how, True, n):.0f}" for n in runs[0] if all(n in run for run in runs)}
        lengths = " ".join(f"{name[5:]}:{count}" for name, count in counts.items()
                           if re.fullmatch(r"runs_\d+", name) and count != "0")
        mean = results.median(kib, how, True, "run_pages") / results.median(kib, how, True, "runs")
        rows.append([f"{kib} KiB {how}", counts["calls"], counts["runs"], f"{mean:.1f}",
                     *(counts.get(name, "-") for name in FLUSHES), lengths])
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
    console, seen = build.base.work / f"{build.out.name}-meter/console.log", 0

    def count(line):
        nonlocal seen
        seen += line.startswith("PAGEOUT")
        if line.startswith("PAGEOUT") and seen % (2 * RUNS) == 0:
            steps.progress(seen / runs, f"{seen} of {runs} runs")

    results = Results(done(build, console, job(), programs=[program], arguments="quiet loglevel=3",
                           timeout=120 + 40 * runs, on_line=count))
    steps.done()
    if code := judged(results.problems()):
        say(f"the console is in {console}")
        return code
    print(f"Guest instructions, {MIB} MiB of anonymous memory, MADV_PAGEOUT to zram, each path in its "
          f"default mode; medians of {RUNS} runs\n")
    print(text_table(cost_table(results)) + "\n")
    print(text_table(count_table(results)) + "\n")
    inside, call, run = (results.median(*SHAPES[0], True, f"cost_{n}") for n in ("inside", "call", "run"))
    print(f"The meter's own cost: {call:.1f} per call, {inside:.1f} of it inside of what it measures, "
          f"and {run:.1f} per run; off, a nop in each place")
    for test in results.selftests:
        whole, net = int(test["known_whole"]), int(test["known_metered_net"])
        print(f"self test: {whole} plain, {net} metered ({test['known_metered_raw']} raw), "
              f"{net / whole - 1:+.2%}; at most 1 % is a pass")
    return PASS
