# SPDX-License-Identifier: GPL-2.0
"""Runs the selftests of the list, ours and the kernel's, in the guest, in every mode."""

import itertools
import os
import re
import shutil
from fnmatch import fnmatchcase

from ..base.cache import TOP
from ..base.errors import FAIL, PANIC, PASS, TIMEOUT, Error, say
from ..paths import PATHS
from ..guest import payload, rootfs, upstream
from ..guest.boot import THREADS_ARCH, emulator
from . import expected, ktap
from .expected import DONE, GONE, HANG, KILLED, PANICKED, SPLAT, Result

MODES = ("off", "c", "rust")
RUNS = 3  # of what is not as it should be
# The path that leaves nothing to some of the others: it is on for tests that name it.
BATCHES = "folio_batch"

BEGINS = re.compile(r"^mm_batch: test begins: (\S+)")
ENDS = re.compile(r"^mm_batch: test ends: (\S+) code (\d+) seconds ([\d.]+) ?(.*)")
PROGRESS = re.compile(r"^# progress: (.*)")
BOOT_SECONDS = 120  # to the first test
SLACK = 90  # between a test's limit in the guest and the host's patience


def arguments(mode, config):
    """What sets a mode; a path that has none of that name stays as the kernel has it."""
    return " ".join(f"mm_batch.{name}={mode}" for name, path in PATHS.items() if mode in path.modes(config))


def before(test):
    """The commands that make the guest ready for a test, behind reset() of run-tests."""
    off = None if BATCHES in test.paths else f'echo off >"$params/{BATCHES}"'
    return "\n".join(filter(None, (off, test.before)))


class Guest:
    """The disks' contents are made once, the list of tests for each boot."""

    def __init__(self, build, modules, tests, folder, slower=1):
        self.build, self.modules, self.folder, self.slower = build, modules, folder, slower
        self.programs = folder / "programs"
        installed = upstream.programs(build, rootfs.tree(build.arch),
                                      [t.program for t in tests if not t.program.startswith("ours/")])
        shutil.rmtree(self.programs, ignore_errors=True)
        shutil.copytree(installed, self.programs)
        (self.programs / "ours").mkdir()
        for file in payload.selftests(build):
            shutil.copy(file, self.programs / "ours")

    def boot(self, tests, mode, log, on_line=lambda line: None, kernel=None, more=""):
        """Time begins anew with each test, and behind it. `kernel`: another one than the build's, which takes `more` on
        its command line.
        """
        files = {f"{when}/{t.name}": f"{commands}\n" for t in tests
                 for when, commands in (("before", before(t)), ("after", t.after)) if commands}
        files["tests"] = "".join(f"{t.limit(self.slower)} {t.name} {t.run}\n" for t in tests)
        job = rootfs.job_image(self.folder, ". /job/run-tests", self.modules,
                               {"selftests": self.programs}, files)
        limits = {t.name: t.limit(self.slower) for t in tests}

        def seconds(line):
            on_line(line)
            if starts := BEGINS.search(line):
                return limits[starts[1]] + SLACK * self.slower
            return SLACK * self.slower if ENDS.search(line) else None

        line = f"{arguments(mode, self.build.named)} {more}".rstrip()
        return rootfs.boot_guest(kernel or self.build, job, line, timeout=BOOT_SECONDS * self.slower, log=log,
                                 on_line=seconds, **tests[0].boot.options(self.build.arch))

    def some(self, tests, mode, log, run, on_result):
        """Boots and runs tests until one leaves the kernel unfit for the next. Returns name -> result."""
        results, begun, output = {}, None, []

        def ended_as(result):
            results[begun] = result
            on_result(begun, result)

        def read(line):
            nonlocal begun
            starts, stops = BEGINS.search(line), ENDS.search(line)
            if starts:
                begun = starts.group(1)
                output.clear()
            elif stops:
                ended_as(self.result(begun, mode, run, output, stops))
                begun = None
            elif begun:
                output.append(line)
                far = PROGRESS.search(line)
                if far:
                    say(f"  {begun}: {far.group(1)}")

        ended = self.boot(tests, mode, log, read)
        if begun:
            end = {PANIC: PANICKED, TIMEOUT: HANG}.get(ended.code, GONE)
            ended_as(Result(end, f"{ended.why} (console: {log})"))
        elif not results:
            raise Error(f"no test was begun ({ended.why})", f"see {log}", ended.code or FAIL)
        return results

    def result(self, name, mode, run, output, stops):
        code, seconds, found = int(stops.group(2)), float(stops.group(3)), stops.group(4).strip()
        if found:
            return Result(KILLED if found.startswith(("limit", "killed")) else SPLAT, found, seconds=seconds)
        # A run that failed is known by its log, also where the next one passes.
        log = self.folder / mode / f"{name}{f'.{run}' if run > 1 else ''}.log"
        log.parent.mkdir(exist_ok=True)
        cases, error = ktap.subtests(self.build.tree, "\n".join(output) + "\n", log)
        failed = any(status == "fail" for _, status in cases)
        if not error and code not in (0, 4) and not failed:
            error = f"exit code {code}, though no subtest failed"
        return Result(DONE, cases=cases, seconds=seconds, error=error)

    def all(self, tests, mode, on_result, run=1):
        """Every test, in as many boots as it takes: of each kind that some of them want, at least one."""
        results, boots = {}, 0
        for kind in dict.fromkeys(t.boot for t in tests):
            left = [t for t in tests if t.boot == kind]
            while left:
                boots += 1
                results |= self.some(left, mode, self.folder / f"{mode}-{run}.{boots}.console", run, on_result)
                left = [t for t in left if t.name not in results]
        return results


def judge(test, runs, mode):
    """The verdict on a test in a mode: (problems, note). `runs`: mode -> its results."""
    off = runs["off"][0] if mode != "off" and runs.get("off") else None
    found = [expected.problems(test, r) or (expected.differences(test, off, r) if off else []) for r in runs[mode]]
    bad = [f for f in found if f]
    fatal = next((f for f, r in zip(found, runs[mode]) if r.end != DONE), None)
    if fatal or not bad:
        return fatal or [], None
    if len(found) == RUNS and len(bad) == 1:
        if mode == "off":
            return [f"unstable in off, {bad[0][0]} in 1 of {RUNS} runs: mend it, or list it as unstable"], None
        return [], f"{bad[0][0]} in 1 of {RUNS} runs"
    return bad[0], None


def asked(text=None):
    """The tests of the list that ARCH=, T=, QUICK=1 and MINUTES= ask for, and the modes that MODE= does."""
    glob, quick, minutes = os.environ.get("T"), os.environ.get("QUICK") == "1", os.environ.get("MINUTES")
    arch = os.environ.get("ARCH") or "x86_64"
    found = [t for t in expected.parse(text or expected.LIST.read_text())[0].values()
             if (not glob or fnmatchcase(t.name, glob) or fnmatchcase(t.program, glob))
             and (not quick or t.quick) and (not minutes or t.lasts) and t.arch in (None, arch)]
    if not found:
        given = " ".join(f"{name}={os.environ[name]}" for name in ("ARCH", "T", "QUICK", "MINUTES") if os.environ.get(name))
        raise Error(f"{given} matches no test", f"the tests are in {expected.LIST.relative_to(TOP)}")
    for test in found if minutes else []:
        test.last(60 * int(minutes))
    # What lasts goes through the modes by itself.
    return found, (os.environ.get("MODE") or ("rust" if minutes else ",".join(MODES))).split(",")


def kselftest(build, modules, steps, slower=1):
    """Every chosen test in every chosen mode. Steps: one per mode, see estimates()."""
    tests, modes = asked()
    for test in tests:
        test.in_kernel(build.symbol)
    if any(test.boot.threads for test in tests) and build.arch == THREADS_ARCH:
        # Brought before a boot waits for it.
        emulator(build.arch, threads=True)
    folder = build.base.work / f"{build.out.name}-{verb()}"
    folder.mkdir(exist_ok=True)
    guest = Guest(build, modules, tests, folder, slower)
    runs = {t.name: {} for t in tests}
    for mode in modes:
        steps.start(step(mode), f"the selftests in mode {mode}")
        done = itertools.count(1)

        def report(name, result):
            steps.progress(next(done) / len(tests), f"{name}: {result.text}, {result.seconds:.0f} s")

        for name, result in guest.all(tests, mode, report).items():
            runs[name][mode] = [result]
    steps.done()
    again(guest, tests, modes, runs)
    return verdict(tests, modes, runs, folder)


def again(guest, tests, modes, runs):
    """Runs what is not as it should be until there are RUNS of it, in `off` too."""
    for mode in modes:
        odd = [t for t in tests if len(runs[t.name][mode]) < RUNS and runs[t.name][mode][0].end == DONE
               and judge(t, runs[t.name], mode)[0]]
        for where in dict.fromkeys([m for m in ("off", mode) if m in modes]):
            short = [t for t in odd if len(runs[t.name][where]) < RUNS]
            for run in range(2, RUNS + 1) if short else []:
                say(f"again in mode {where}, run {run} of {RUNS}: {', '.join(t.name for t in short)}")
                results = guest.all(short, where, lambda name, result: say(f"  {name}: {result.text}"), run)
                for name, result in results.items():
                    runs[name][where].append(result)


def verdict(tests, modes, runs, folder):
    width = max(len(t.name) for t in tests)
    print(f"{'test':{width}}  " + "".join(f"{m:>18}" for m in modes) + "   seconds    (ok+skipped)")
    for t in tests:
        results = [runs[t.name][m][0] for m in modes]
        print(f"{t.name:{width}}  " + "".join(f"{r.text:>18}" for r in results) + "   "
              + " ".join(f"{r.seconds:.0f}" for r in results))
    codes, failed = [PASS], 0
    for t in tests:
        for mode in modes:
            found, note = judge(t, runs[t.name], mode)
            if found:
                failed += 1
                codes += [expected.CODES.get(r.end, FAIL) for r in runs[t.name][mode]]
                print(f"{t.name}, {mode}: {'; '.join(found)}")
            elif note:
                print(f"{t.name}, {mode}: noted: {note}")
    print(f"kselftest: {len(tests)} tests in {', '.join(modes)}: {failed or 'none'} failed "
          f"(logs, JUnit: {folder})")
    return max(codes)


def step(mode):
    part = os.environ.get("T") or ("quick" if os.environ.get("QUICK") == "1" else "all")
    return f"kselftest {part} {mode}" + (f" {os.environ['MINUTES']} min" if os.environ.get("MINUTES") else "")


def verb():
    """Of this verb, for the folder that it leaves: two that run other tests may run side by side."""
    return "-".join(["kselftest", *re.findall(r"\w+", os.environ.get("T") or "")])


def estimates():
    """The steps and their seconds, until a run has taught better."""
    tests, modes = asked()
    return {step(mode): 20 + sum(t.seconds // 12 + t.longer for t in tests) for mode in modes}
