# SPDX-License-Identifier: GPL-2.0
"""`make mutants-kernel`: plants the bugs of tests/mutants/ that a KUnit case must catch, and sees it fail.

A build takes longest, so mutants share one where the one cannot reach the other's case: each is of another path,
as the files it touches are named. One that touches what paths share, or is caught by the suite of another path,
is planted alone. Each case has a boot of its own, with all paths but its mutant's switched off; it must pass in
that very boot of a kernel without mutants, and be `not ok` with its own. What else becomes of it in company (it
passes, it is skipped, the guest hangs, the kernel complains in it or before) does not count: that mutant is
planted once more, alone, where a complaint of the kernel within the case is a catch as well, as in make kunit.

Those of one file follow each other, and those of headers come last: with each that is planted, and with each that is
taken back, all that includes it is built again.

What this does not show: that mutants of two paths are apart is taken from the names and the switches, not
measured. Code that one path's patches change and that runs though the path is off would reach the other's case;
T=<name> plants one alone.
"""

import fcntl
import itertools
import os
import pathlib
import re
import shutil
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fnmatch import fnmatchcase

from ..base.cache import CACHE, TOP
from ..base.errors import FAIL, PASS, Error, say
from ..base.process import die_with_parent
from ..base.progress import minutes
from ..kernel.kbuild import flavour
from ..kernel.tree import PATHS, patches_of
from ..guest.boot import boot
from ..guest.splats import SPLAT
from . import kunit

FOLDER = TOP / "tests/mutants"
WORK = CACHE / "mutants/kernel"
BOOTS_AT_ONCE = 2


@dataclass(frozen=True)
class Mutant:
    """A patch, the case that must catch it, and the path it is of, or None."""

    name: str
    suite: str
    case: str
    path: str | None
    files: tuple = ()  # of the kernel, or of ours

    @property
    def patch(self):
        return FOLDER / f"{self.name}.patch"


@dataclass(frozen=True)
class Kernel:
    """What boot() wants to know of a build."""

    image: pathlib.Path
    arch: str
    flavour: str


@dataclass(frozen=True)
class Outcome:
    """What became of a case: failed, passed, skipped, complained or no result; and the line that says so."""

    word: str
    why: str = ""
    early: bool = False  # the kernel complained before its suite began


def path_of(text, suite):
    """The one path that a patch's files and the suite are of: a file or folder is called as its path is."""
    files = re.findall(r"^(?:---|\+\+\+) [ab]/(\S+)", text, re.M)
    of = [{p for p in PATHS if p in (part.split(".")[0] for part in pathlib.PurePath(f).parts)} for f in files]
    if not of or any(len(paths) != 1 for paths in of) or len(set.union(*of)) != 1:
        return None
    path = of[0].pop()
    return None if any(p in suite and p != path for p in PATHS) else path


def files_of(text):
    """The files that a patch changes; of a patch of one of our patches, what that one changes there."""
    found = set()
    for part in re.split("^(?=--- a/)", text, flags=re.M)[1:]:
        file = re.match(r"--- a/(\S+)", part)[1]
        if not file.startswith("patches/"):
            found.add(file)
            continue
        lines = (TOP / file).read_text().splitlines()
        for begin, length in re.findall(r"^@@ -(\d+),?(\d*)", part, re.M):
            heads = [re.match(r"\+\+\+ b/(\S+)", line) for line in lines[:int(begin) - 1 + int(length or 1)]]
            found.add(next((head[1] for head in reversed(heads) if head), file))
    return tuple(sorted(found))


def build_order(mutant):
    """By what has to be built again. See above."""
    return any(f.endswith(".h") for f in mutant.files), mutant.files


def mutants(pattern, folder=FOLDER):
    """The mutants that a KUnit case catches, of a name as the pattern says."""
    found = []
    for patch in sorted(folder.glob(f"{pattern}.patch")):
        text = patch.read_text()
        head = re.match(r"Caught-by: kunit (\S+) (\S+)\n", text)
        if head:
            found.append(Mutant(patch.stem, *head.groups(), path_of(text, head[1]), files_of(text)))
        elif text.startswith("Caught-by: kunit"):
            raise Error(f"{patch} begins with another line than Caught-by: kunit <suite> <case>", "correct it")
    if not found:
        raise Error(f"no mutant of the kernel is named {pattern}",
                    "one of tests/mutants/*.patch with Caught-by: kunit; the others are for make mutants")
    return found


def groups(found):
    """The builds: at most one mutant of each path in one, and those of no path alone."""
    of = {}
    for mutant in sorted(found, key=build_order):
        of.setdefault(mutant.path, []).append(mutant)
    alone = [[m] for m in of.pop(None, [])]
    return [[m for m in row if m] for row in itertools.zip_longest(*of.values())] + alone


def switched_off(path, paths):
    """Command line: all paths off but the mutant's; nothing where it is of no single path."""
    return " ".join(f"mm_batch.{p}=off" for p in paths if path and p != path)


def late(mutant):
    """Whether its suite needs a user space."""
    return mutant.suite not in kunit.AT_BOOT


def where(mutant, kernel):
    """The first of the boots that has what the case needs."""
    name = f"{mutant.suite}.{mutant.case}"
    found = next((s for s in kunit.BOOTS[kernel.flavour]
                  if (late(mutant) or fnmatchcase(mutant.suite, s.only)) and name not in kunit.skips(s)), None)
    if not found:
        raise Error(f"{name} is skipped, or not run, in every boot of the {kernel.flavour} kernel", "name another case")
    return found


def command_line(mutant, kernel, paths):
    return " ".join(filter(None, (kunit.arguments(f"{mutant.suite}.{mutant.case}"), where(mutant, kernel).arguments,
                                  switched_off(mutant.path, paths))))


def judge(ended, suite, case):
    """What became of the case. What is printed before its suite begins is not the case's."""
    lines = ended.lines
    start = next((n for n, line in enumerate(lines) if re.search(rf"# Subtest: {suite}$", line)), None)
    if start is None:
        return Outcome("no result", ended.why if ended.code != PASS else "KUnit did not run it")
    complaint, early = None, any(SPLAT.search(line) for line in lines[:start])
    for line in lines[start:]:
        result = re.match(rf" *(not )?ok \d+ {case}( # SKIP.*)?$", line)
        if result and result[1]:
            return Outcome("failed", line.strip(), early)
        if result and not complaint:
            return Outcome("skipped" if result[2] else "passed", line.strip())
        if result:
            break
        if SPLAT.search(line) or "Kernel panic" in line:
            complaint = complaint or line.strip()[:120]
    if complaint:
        return Outcome("complained", complaint)
    return Outcome("no result", ended.why if ended.code != PASS else "its suite ended without it")


def try_case(kernel, mutant, paths, log):
    # By icount, a busy host cannot make the guest's timers fail, which would look like a bug that is caught. Two CPUs,
    # one of which is never idle, take minutes by it.
    cpus = where(mutant, kernel).cpus
    how = {"cpus": cpus, "icount": cpus == 1, "timeout": kunit.slower(kernel, 180), "log": log}
    if late(mutant):
        # The whole suite, which debugfs knows.
        ended = kunit.boot_to_debugfs(kernel, log.with_suffix(".guest"), kunit.started_late(mutant.suite),
                                      f"loglevel=7 {switched_off(mutant.path, paths)}", **how)
    else:
        ended = boot(kernel, command_line(mutant, kernel, paths), **how)
    return judge(ended, mutant.suite, mutant.case)


def verdict(outcome, alone):
    """True if caught, False if missed, None if it is to be planted alone."""
    if outcome.word == "failed" and (alone or not outcome.early) or alone and outcome.word == "complained":
        return True
    return False if alone else None


class Tree:
    """A copy of this tree, in which patches are planted and a kernel is built."""

    def __init__(self, arch, work=WORK):
        self.arch, self.work, self.tree = arch, work, work / "tree"
        work.mkdir(parents=True, exist_ok=True)
        self.held = open(work / "lock", "w")
        try:
            fcntl.flock(self.held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.held.close()
            raise Error("another run of the kernel's mutants is on", "wait until it ends") from None
        shutil.rmtree(self.tree, ignore_errors=True)
        names = subprocess.run(["git", "-C", TOP, "ls-files", "-co", "--exclude-standard", "-z"], capture_output=True,
                               check=True).stdout.decode().split("\0")
        for name in filter(None, names):
            if (TOP / name).is_file():
                (self.tree / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(TOP / name, self.tree / name)
        # So that git apply takes the paths from here.
        subprocess.run(["git", "init", "-q", self.tree], check=True)

    def apply(self, mutant, *options):
        return subprocess.run(["git", "apply", *options, mutant.patch], cwd=self.tree, capture_output=True,
                              text=True).returncode == 0

    def build(self, name, planted):
        """The kernel with these mutants, or why there is none."""
        applied = []
        try:
            for mutant in planted:
                if not self.apply(mutant):
                    return None, f"{mutant.name} does not apply"
                applied.append(mutant)
            return self.built(name)
        finally:
            for mutant in reversed(applied):
                self.apply(mutant, "-R")

    def built(self, name):
        log = self.work / f"{name}-build.log"
        with open(log, "w") as errors:
            # The tree's own tools, from the tree's own patches and sources.
            done = subprocess.run([self.tree / "tests/tools/fetch/with", "kernel", "python3", "-m", "mmb", "--arch",
                                   self.arch, "kernel"], cwd=self.tree, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=errors, text=True, preexec_fn=die_with_parent)
        if done.returncode:
            said = (log.read_text().splitlines() or ["it said nothing"])[-1]
            # All else, as a full disk or another build, says nothing of the mutant.
            if re.search("building the kernel failed|does not apply to Linux", said):
                return None, f"does not compile, see {log}"
            raise Error(f"no kernel was built ({said})", f"see {log}")
        image = self.work / f"{name}.image"
        shutil.copy2(done.stdout.split()[-1], image)
        return Kernel(image, self.arch, flavour()), None


class Run:
    """All of the mutants, with the time that is left."""

    def __init__(self, tree, found, paths, pool):
        self.tree, self.found, self.paths, self.pool = tree, found, paths, pool
        self.ended = {}  # name -> whether it was caught
        self.since = time.monotonic()

    def start(self, kernel, mutant, name):
        return self.pool.submit(try_case, kernel, mutant, self.paths, self.tree.work / f"{name}.log")

    def say(self, mutant, line, caught):
        self.ended[mutant.name] = caught
        done, all_of = len(self.ended), len(self.found)
        left = (time.monotonic() - self.since) * (all_of - done) / done
        print(f"{mutant.name:34} {line} ({done} of {all_of}, about {minutes(left)} left)", flush=True)

    def baseline(self):
        """Each boot without mutants, once: those whose case does not pass there are missed. Returns the others."""
        kernel, why = self.tree.build("baseline", [])
        if not kernel:
            raise Error(f"the kernel without mutants {why}", "run make kernel")
        boots = {}
        for m in self.found:
            boots.setdefault(command_line(m, kernel, self.paths), m)
        say(f"{len(boots)} boots without mutants")
        outcomes = {line: self.start(kernel, m, f"baseline-{n}") for n, (line, m) in enumerate(boots.items())}
        good = []
        for m in self.found:
            outcome = outcomes[command_line(m, kernel, self.paths)].result()
            if outcome.word == "passed":
                good.append(m)
            else:
                self.say(m, f"MISSED: {m.suite} {m.case} does not pass without it ({outcome.word}: {outcome.why})",
                         False)
        kernel.image.unlink()
        return good

    def plant(self, builds):
        """Builds the next while the one before boots; returns what is to be planted alone."""
        again, before = [], []
        for group in builds:
            kernel, why = self.tree.build(group[0].name, group)
            started = [(m, self.start(kernel, m, m.name)) for m in group] if kernel else []
            again += self.finish(before)
            before = [(m, f, len(group) == 1, kernel) for m, f in started]
            if not kernel and len(group) == 1:
                self.say(group[0], f"MISSED: {why}", False)
            elif not kernel:
                again += group
        return again + self.finish(before)

    def finish(self, started):
        again = []
        for mutant, future, alone, _ in started:
            outcome = future.result()
            caught = verdict(outcome, alone)
            what = f"kunit {mutant.suite} {mutant.case}"
            if caught is None:
                say(f"{mutant.name}: {outcome.word} in company ({outcome.why}): once more, alone")
                again.append(mutant)
            elif caught:
                how = "" if outcome.word == "failed" else f", in which the kernel complained: {outcome.why}"
                self.say(mutant, f"caught by {what}{how}", True)
            else:
                self.say(mutant, f"MISSED: {what}: {outcome.word} ({outcome.why})", False)
        for kernel in {kernel for *_, kernel in started}:
            kernel.image.unlink()
        return again

    def all(self):
        good = self.baseline()
        builds = groups(good)
        say(f"{len(good)} mutants in {len(builds)} builds")
        again = self.plant(builds)
        self.plant([[m] for m in again])
        missed = [m.name for m in self.found if not self.ended.get(m.name)]
        print(f"mutants-kernel: {len(self.found) - len(missed)} caught, {len(missed)} missed, "
              f"in {minutes(time.monotonic() - self.since)}")
        if missed:
            say(f"missed: {' '.join(missed)}")
        return FAIL if missed else PASS


def mutants_kernel(arch):
    """The verb."""
    found = mutants(os.environ.get("T") or "*")
    paths = [p for p in PATHS if patches_of(p)]
    with ThreadPoolExecutor(BOOTS_AT_ONCE) as pool:
        return Run(Tree(arch), found, paths, pool).all()
