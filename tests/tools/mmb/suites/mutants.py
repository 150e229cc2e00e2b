# SPDX-License-Identifier: GPL-2.0
"""`make mutants-kernel`: plants the bugs of tests/mutants/ that a KUnit case or a selftest must catch, and sees it fail.

A build takes longest, so one kernel has all bugs, and its command line switches one on (planted.py says how). What
cannot be switched has a build of its own. Each case has a boot of its own; it must pass in that very boot with no bug
on, and be `not ok` with its own. A complaint of the kernel within the case is a catch as well, as in make kunit. So has
a selftest, with all paths in Rust, and any of its subtests is a catch. One that races may miss the bug where the host
is busy: if it passes, it is run again, up to TRIES times. What else becomes of it (it passes, it is skipped, the guest
hangs, the kernel does not say that the bug is on) is a miss.

What this does not show: what runs before the kernel has read its command line runs without the bug.
"""

import os
import pathlib
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import NamedTuple

from ..base.cache import CACHE, TOP
from ..base.errors import FAIL, PASS, Error, say
from ..base.process import die_with_parent, git_files
from ..base.progress import minutes
from ..kernel.kbuild import Build, flavour, settings
from ..kernel.tree import Base, hold, tree_of
from ..guest.boot import boot
from ..guest.splats import SPLAT
from . import expected, kselftest, kunit, planted

FOLDER = TOP / "tests/mutants"
WORK = CACHE / "mutants/kernel"
SELFTEST = "kselftest"
OURS = ("Caught-by: kunit", f"Caught-by: {SELFTEST}")
BEGINS = re.compile(rf"Caught-by: (?:kunit (?P<suite>\S+)|{SELFTEST}) (?P<case>\S+)\n")


@dataclass(frozen=True)
class Mutant:
    """A patch, the case that must catch it, or the selftest, and its number among all patches."""

    name: str
    suite: str
    case: str
    number: int
    patch: pathlib.Path = None

    @property
    def late(self):
        """Whether its suite needs a user space."""
        return self.suite not in kunit.AT_BOOT

    @property
    def selftest(self):
        return self.suite == SELFTEST

    @property
    def what(self):
        """What must catch it, as its patch says it."""
        return f"{'' if self.selftest else 'kunit '}{self.suite} {self.case}"


class Kernel(NamedTuple):
    """What boot() wants to know of a build."""

    image: pathlib.Path
    arch: str
    flavour: str
    symbol: Callable  # (name) -> a configuration symbol's value, or None


class Outcome(NamedTuple):
    """What became of a case: failed, passed, skipped, complained, no result, or not built; and why."""

    word: str
    why: str = ""


CAUGHT = ("failed", "complained")
TRIES = 5


def mutants(pattern, folder=FOLDER):
    """What is to be caught in the kernel, of a name as the pattern says: a patch may be so by several cases."""
    found, number = [], 0
    for patch in sorted(folder.rglob("*.patch"), key=lambda patch: patch.name):
        text = patch.read_text()
        if not text.startswith(OURS):
            continue
        number += 1
        while text.startswith("Caught-by:"):
            head = BEGINS.match(text)
            if not head:
                raise Error(f"{patch} begins with another line than {OURS[0]} <suite> <case> or "
                            f"{OURS[1]} <test>", "correct it")
            found.append(Mutant(patch.stem, head["suite"] or SELFTEST, head["case"], number, patch))
            text = text[head.end():]
    found = [mutant for mutant in found if fnmatchcase(mutant.name, pattern)]
    if not found:
        raise Error(f"no mutant of the kernel is named {pattern}",
                    f"a patch below tests/mutants/ with {' or '.join(OURS)}; the others are for make mutants")
    return found


def where(mutant, kernel):
    """The first of the boots that has what the case needs."""
    name = f"{mutant.suite}.{mutant.case}"
    found = next((s for s in kunit.BOOTS[kernel.flavour]
                  if (mutant.late or fnmatchcase(mutant.suite, s.only))
                  and not any(fnmatchcase(name, glob) for glob in kunit.skips(kernel, s))), None)
    if not found:
        raise Error(f"{name} is skipped, or not run, in every boot of the {kernel.flavour} kernel", "name another case")
    return found


def command_line(mutant, kernel):
    """Those of one suite that needs a user space have the same: there it runs as a whole."""
    first = "loglevel=7" if mutant.late else kunit.arguments(kernel, f"{mutant.suite}.{mutant.case}")
    return f"{first} {where(mutant, kernel).arguments}".rstrip()


def boot_key(mutant, kernel):
    """Mutants with the same one share the boot with none on."""
    if mutant.selftest:
        return (mutant.case,)
    return mutant.suite, where(mutant, kernel).cpus, command_line(mutant, kernel)


def judge_selftest(ended):
    """What became of a selftest."""
    if complaint := next((line for line in ended.lines if SPLAT.search(line) or "Kernel panic" in line), None):
        return Outcome("complained", complaint.strip()[:120])
    for word, begins in (("failed", "not ok "), ("passed", "# Totals:")):
        if line := next((line for line in ended.lines if line.startswith(begins)), None):
            return Outcome(word, line.strip())
    return Outcome("no result", ended.why)


def judge(ended, suite, case):
    """What became of the case. What is printed before its suite begins is not the case's."""
    if suite == SELFTEST:
        return judge_selftest(ended)
    lines = ended.lines
    start = next((n for n, line in enumerate(lines) if re.search(rf"# Subtest: {suite}$", line)), None)
    if start is None:
        return Outcome("no result", ended.why if ended.code != PASS else "KUnit did not run it")
    complaint = None
    for line in lines[start:]:
        result = re.match(rf" *(not )?ok \d+ {case}( # SKIP.*)?$", line)
        if result and result[1]:
            return Outcome("failed", line.strip())
        if result and not complaint:
            return Outcome("skipped" if result[2] else "passed", line.strip())
        if result:
            break
        if SPLAT.search(line) or "Kernel panic" in line:
            complaint = complaint or line.strip()[:120]
    if complaint:
        return Outcome("complained", complaint)
    return Outcome("no result", ended.why if ended.code != PASS else "its suite ended without it")


def boot_selftest(mutant, kernel, log, more):
    """The boot of a selftest, as make kselftest has it in mode rust."""
    base, test = Base(), expected.listed()[mutant.case]
    folder = log.with_suffix(".guest")
    folder.mkdir(exist_ok=True)
    build = Build(base, tree_of(base, ["planted"]), kernel.arch)
    guest = kselftest.Guest(build, [], [test], folder, kunit.slower(kernel, 1))
    return guest.boot([test], "rust", log, kernel=kernel, more=f"loglevel=7 {more}")


def boot_for(mutant, kernel, log, more="", last=()):
    """The boot that has its case. `more` is for its command line; to a user space, `last` ends it, too."""
    if mutant.selftest:
        return boot_selftest(mutant, kernel, log, more)
    cpus = where(mutant, kernel).cpus
    # By icount, a busy host cannot make the guest's timers fail, which would look like a bug that is caught. Two CPUs,
    # one of which is never idle, take minutes by it.
    how = {"cpus": cpus, "icount": cpus == 1, "timeout": kunit.slower(kernel, 180), "log": log}
    line = f"{command_line(mutant, kernel)} {more}".rstrip()
    if mutant.late:
        # The whole suite, which debugfs knows.
        return kunit.boot_to_debugfs(kernel, log.with_suffix(".guest"),
                                     kunit.STARTED_LATE.format(suites=mutant.suite, large=kunit.large(kernel)),
                                     line, last, **how)
    return boot(kernel, line, **how)


def try_case(mutant, kernel, log, switched):
    """What becomes of the case, with the bug switched on, or there from the start."""
    more = f"{planted.SWITCH}={mutant.number}" if switched else ""
    ended = boot_for(mutant, kernel, log, more, [rf"^ *(not )?ok \d+ {mutant.case}( |$)"])
    if switched and not any(planted.said(mutant.number, mutant.name) in line for line in ended.lines):
        return Outcome("no result", f"the kernel does not say that the bug is on; {ended.why}")
    return judge(ended, mutant.suite, mutant.case)


def tried(mutant, kernel, log, switched):
    """The last outcome of its case, which is tried again if it is a selftest and passes."""
    for _ in range(TRIES if mutant.selftest else 1):
        outcome = try_case(mutant, kernel, log, switched)
        if outcome.word != "passed":
            break
    return outcome


def copy_of_this_tree(there):
    shutil.rmtree(there, ignore_errors=True)
    for name in git_files(TOP):
        if (TOP / name).is_file():
            (there / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(TOP / name, there / name)
    # So that git apply takes the paths from here.
    subprocess.run(["git", "init", "-q", there], check=True)


class Tree:
    """Two copies of this tree: one in which bugs are planted one by one, to see what becomes of the kernel's files, and
    one in which they all are, of which kernels are built.
    """

    def __init__(self, arch, work=WORK):
        self.arch, self.work, self.tree, self.planted = arch, work, work / "tree", work / "planted"
        hold(work).alone()
        copy_of_this_tree(self.tree)

    def look(self, found):
        """Sees what each makes of the kernel's files, and whether it can be switched; returns those that can."""
        sources = planted.Sources(Base(), self.tree)
        self.plain, self.switched, self.alone = sources.plain, {}, {}
        self.names = {mutant.number: mutant.name for mutant in found}
        for mutant in {mutant.number: mutant for mutant in found}.values():
            try:
                files = sources.differing(mutant.patch)
            except Error as error:
                self.alone[mutant.number] = error
                continue
            bodies = {f: planted.changed(f, self.plain.get(f, ""), text) for f, text in files.items()}
            if None in bodies.values():
                self.alone[mutant.number] = files
            else:
                self.switched[mutant.number] = bodies
        return [m for m in found if m.number in self.switched]

    def build(self, mutant=None):
        """The kernel with all that can be switched, and a mutant that cannot; or why there is none."""
        alone = self.alone[mutant.number] if mutant else {}
        if isinstance(alone, Error):
            return None, str(alone)
        copy_of_this_tree(self.planted)
        planted.write(self.plain, self.planted, self.switched, self.names, alone)
        return self.built(mutant.name if mutant else "switched")

    def built(self, name):
        log = self.work / f"{name}-build.log"
        with open(log, "w") as errors:
            # The tree's own tools, from the tree's own patches and sources.
            done = subprocess.run([self.planted / "tests/tools/fetch/with", "kernel", "python3", "-m", "mmb", "kernel"],
                                  cwd=self.planted, env=os.environ | {"ARCH": self.arch, "PLANTED": "1"},
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True,
                                  preexec_fn=die_with_parent)
        if done.returncode:
            said = (log.read_text().splitlines() or ["it said nothing"])[-1]
            # All else, as a full disk or another build, says nothing of the mutant.
            if re.search("building the kernel failed|does not apply to Linux", said):
                return None, f"does not compile, see {log}"
            raise Error(f"no kernel was built ({said})", f"see {log}")
        image = self.work / f"{name}.image"
        made = pathlib.Path(done.stdout.split()[-1])
        shutil.copy2(made, image)
        config = next(folder / ".config" for folder in made.parents if (folder / ".config").exists())
        return Kernel(image, self.arch, flavour(), settings(config.read_text()).get), None


class Run:
    """All of the mutants, with the time that is left."""

    def __init__(self, tree, found, pool):
        self.tree, self.found, self.pool = tree, found, pool
        self.building = threading.Lock()
        self.caught = {}  # mutant -> whether it was
        self.since = time.monotonic()

    def say(self, mutant, outcome, why_missed=None):
        """What became of one: its outcome, or why it is missed without."""
        what = mutant.what
        self.caught[mutant] = not why_missed and outcome.word in CAUGHT
        if self.caught[mutant]:
            how = "" if outcome.word == "failed" else f", in which the kernel complained: {outcome.why}"
            line = f"caught by {what}{how}"
        else:
            line = f"MISSED: {why_missed or f'{what}: {outcome.word} ({outcome.why})'}"
        done, all_of = len(self.caught), len(self.found)
        left = (time.monotonic() - self.since) * (all_of - done) / done
        print(f"{mutant.name:34} {line} ({done} of {all_of}, about {minutes(left)} left)", flush=True)

    def baseline(self):
        """Each boot with no bug on, once: those whose case does not pass there are missed. Returns the others."""
        boots = {}
        for m in self.found:
            boots.setdefault(boot_key(m, self.kernel), []).append(m)
        say(f"{len(boots)} boots with none on")
        started = {self.pool.submit(boot_for, of[0], self.kernel, self.tree.work / f"baseline-{n}.log"): of
                   for n, of in enumerate(boots.values())}
        good = []
        for future in as_completed(started):
            for m in started[future]:
                word, why = judge(future.result(), m.suite, m.case)
                if word == "passed":
                    good.append(m)
                else:
                    self.say(m, None, f"{m.what} does not pass without it ({word}: {why})")
        return good

    def one(self, mutant):
        """What becomes of its case with it."""
        log = self.tree.work / f"{mutant.name}-{mutant.case}.log"
        if mutant in self.switched:
            return tried(mutant, self.kernel, log, True)
        with self.building:
            kernel, why = self.tree.build(mutant)
        if not kernel:
            return Outcome("not built", why)
        try:
            return tried(mutant, kernel, log, False)
        finally:
            kernel.image.unlink()

    def all(self):
        say(f"what {len(self.found)} mutants change in the kernel's files")
        self.switched = self.tree.look(self.found)
        say(f"{len(self.switched)} mutants in one kernel, {len(self.found) - len(self.switched)} with a build each")
        self.kernel, why = self.tree.build()
        if not self.kernel:
            raise Error(f"the kernel with bugs to be switched {why}", "T=<name> plants one")
        # What takes longest is begun first.
        good = sorted(self.baseline(), key=lambda m: (m in self.switched, m.name))
        started = {self.pool.submit(self.one, m): m for m in good}
        for future in as_completed(started):
            self.say(started[future], future.result())
        self.kernel.image.unlink()
        missed = [m.name for m in self.found if not self.caught.get(m)]
        print(f"mutants-kernel: {len(self.found) - len(missed)} caught, {len(missed)} missed, "
              f"in {minutes(time.monotonic() - self.since)}")
        if missed:
            say(f"missed: {' '.join(missed)}")
        return FAIL if missed else PASS


def mutants_kernel(arch):
    """The verb."""
    found = mutants(os.environ.get("T") or "*")
    pool = ThreadPoolExecutor(os.cpu_count())
    try:
        return Run(Tree(arch), found, pool).all()
    finally:
        # What has not begun never will where something went wrong.
        pool.shutdown(cancel_futures=True)
