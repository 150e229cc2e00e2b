# SPDX-License-Identifier: GPL-2.0
"""make patches-check: what make series wrote applies, builds and boots patch by patch, leaves nothing behind
when it is off, builds in other configurations, and pleases checkpatch.

QUICK=1 is for CI: of the patches, only each path's last is built, and none is booted. FULL=1 adds each patch with
the series off, configurations, and patches/versions.md.
"""

import os
import re
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

from ..base.cache import TOP
from ..base.errors import FAIL, PASS, Error, say
from ..base.progress import Steps
from ..kernel.kbuild import Build
from ..kernel.tree import SERIES, Base, content, patches_of, stage, touched_by
from ..paths import PATHS
from . import applies
from .configurations import DISTRIBUTION, FULL, build_variant
from .parts import PARTS
from .states import States
from .write import unsigned_series

# Whoever submits the series signs it off. Kconfig sources the files that lie beside it. A packaged source has no
# history in which checkpatch could find the commit of a Fixes: line.
IGNORED = "MISSING_SIGN_OFF,EMBEDDED_FILENAME,UNKNOWN_COMMIT_ID"
# What a header of trace events looks like.
TRACE = ",OPEN_ENDED_LINE,PARENTHESIS_ALIGNMENT"


class Table:
    """What was checked, and how it ended."""

    def __init__(self, steps):
        self.rows, self.steps, self.since = [], steps, time.monotonic()
        self.pool, self.pending = ThreadPoolExecutor(1), None

    def seconds(self):
        """Since this was asked before."""
        before, self.since = self.since, time.monotonic()
        return self.since - before

    def add(self, check, what, code, line, seconds=None):
        self.rows.append((check, what, code, line, self.seconds() if seconds is None else seconds))
        if code != PASS:
            say(f"FAILED: {check}: {what}: {line}")

    def add_applied(self, what, tree, patches, base, version):
        _, why = applies.apply(tree, patches, base.work / "am", version)
        self.add("applies", what, FAIL if why else PASS, why or "by git am")

    def try_state(self, states, index, what, step, text, row, work):
        """A check of the kernel after a patch, unless it has passed: work() returns a code and a line, or what does so
        and needs no build, as a boot, which then goes on beside the next check's build, and whose time is not said.
        """
        if states.is_done(index, what):
            self.finish()
            self.steps.skip(step)
            self.add(*row, PASS, "unchanged since it passed")
            return
        self.steps.start(step, text)
        try:
            rest = work()
        except Error as error:
            rest = FAIL, str(error)
        of = states, index, what, row, self.seconds()
        self.finish()
        if callable(rest):
            self.pending = self.pool.submit(rest), *of
        else:
            self.end(*rest, *of)

    def finish(self):
        """Waits for the check that is not through, if one is."""
        if not self.pending:
            return
        (future, *of), self.pending = self.pending, None
        try:
            code, line = future.result()
        except Error as error:
            code, line = FAIL, str(error)
        self.end(code, line, *of)

    def end(self, code, line, states, index, what, row, seconds):
        if code == PASS:
            states.mark(index, what)
        self.add(*row, code, line, seconds)

    def show(self):
        """Prints it; returns the worst."""
        self.finish()
        width = max(len(what) for _, what, *_ in self.rows)
        for check, what, code, line, seconds in self.rows:
            state = "ok" if code == PASS else "FAIL"
            print(f"{check:<11} {what:<{width}}  {state:<4} {seconds:5.0f} s  {line}")
        codes = [code for _, _, code, _, _ in self.rows]
        print(f"patches-check: {len(codes)} checks, {len(codes) - codes.count(PASS)} failed")
        return max(codes)


def of_the_kernels(said, lines):
    """Whether checkpatch complains of a line of the kernel's own, beside a change or taken from elsewhere by it."""
    where = re.match(r"-:(\d+): (?:WARNING|CHECK): ", said)
    line = lines[int(where[1]) - 1] if where else ""
    moved = {old[1:].strip() for old in lines if old.startswith("-")}
    return line.startswith(" ") or (line.startswith("+") and line[1:].strip() in moved)


def checkpatch(tree, patch, ignored=IGNORED):
    """By standard input: it takes a file that git knows for a source."""
    if "include/trace/events/" in patch.read_text():
        ignored += TRACE
    with open(patch) as mail:
        command = [tree / "scripts/checkpatch.pl", "--no-tree", "--strict", "--terse", "--quiet", "--no-summary",
                   "--ignore", ignored, "-"]
        done = subprocess.run(command, stdin=mail, capture_output=True, text=True)
    said = (done.stdout + done.stderr).strip().splitlines()
    found = [line for line in said if not of_the_kernels(line, patch.read_text().splitlines())]
    broken = done.returncode and not said
    return (FAIL, "; ".join(found) or f"exit code {done.returncode}") if found or broken else (PASS, "nothing found")


def checkpatch_series():
    """The verb of make lint: what checkpatch says of the series."""
    base = Base()
    # What is for evaluation only has no entry in MAINTAINERS.
    others = [patch for folder in sorted((TOP / "patches").iterdir()) if folder.is_dir() and folder.name not in SERIES
              for patch in patches_of(folder)]
    worst = PASS
    for ignored, patches in (IGNORED, unsigned_series(base)), (f"{IGNORED},FILE_PATH_CHANGES", others):
        for patch in patches:
            code, line = checkpatch(base.tree, patch, ignored)
            if code != PASS:
                print(f"{patch.name}: {line}")
            worst = max(worst, code)
    return worst


def check_staged(tree, git, names):
    """What make series wrote is what make kernel builds."""
    differ = sorted(n for n in names if content(tree / n) != content(git.folder / n))
    return (FAIL, f"differs in {', '.join(differ)}") if differ else (PASS, f"{len(names)} files")


def check_applies(table, base, tree, patches, quick):
    table.steps.start("series apply", "applying the series")
    git, why = applies.apply(base.tree, patches, base.work / "series-am", base.version)
    if why:
        raise Error(f"the series does not apply to Linux {base.version} ({why})", "see make series")
    table.add("applies", f"Linux {base.version}", PASS, "by git am")
    table.add("applies", "is what make kernel builds", *check_staged(tree, git, touched_by(patches)))
    # What a path adds, with files of ours, was just applied.
    for name, part in [(name, PARTS[name]()) for name in PARTS if name not in PATHS]:
        table.add_applied(f"PART={name}", base.tree, [*part.below, *part.own], base, base.version)
    if not quick:
        table.steps.start("series upstream", "applying it to upstream's release")
        for version, archive in applies.upstream():
            theirs = applies.extracted(archive, touched_by(patches))
            table.add_applied(f"upstream's {version}", theirs, patches, base, version)
    return git


def check_states(table, states, chosen, quick):
    what, last = "built" if quick else "booted", states.last
    if not all(states.is_done(index, what) for index in chosen):
        states.enter(0)
        states.configure(0)
    for index in chosen:
        subject = states.git("log", "-1", "--format=%s", states.commits[index])
        table.try_state(states, index, what, f"series {what} {index}", f"patch {index} of {last}",
                        ("builds", f"{index}/{last} {subject[:60]}"),
                        lambda: states.compile(index) if quick else states.boot(index))
    if not quick:
        table.try_state(states, last, "off", "series off", "building with the series off, and without it",
                        ("is off", "CONFIG_MM_BATCH=n"), states.off)


def check_without(table, states, full):
    """What most kernels are that have the series: without its option. Who bisects them comes upon each patch."""
    last = states.last
    for index in range(1 if full else last, last + 1):
        table.try_state(states, index, "without", f"series without {index}",
                        f"patch {index} of {last}, with the series off",
                        ("builds", f"{index}/{last} CONFIG_MM_BATCH=n"), lambda: states.compile(index, on=False))


def last_of_each(patches):
    """The numbers, in the series, of each folder's last patch."""
    return list({patch.parent: number for number, patch in enumerate(patches, 1)}.values())


def patches_check(arch):
    quick, full = (os.environ.get(name) == "1" for name in ("QUICK", "FULL"))
    # An evaluation's patches are not in what make series writes, and its configurations are not what is checked.
    for name in ("METER", "CONFIG"):
        os.environ.pop(name, None)
    base, tree = stage()
    patches = unsigned_series(base)
    variants = [] if quick else [DISTRIBUTION] + (FULL if full else [])
    chosen = last_of_each(patches) if quick else list(range(1, len(patches) + 1))
    # What there is to do, with seconds for what was never timed.
    steps = Steps("patches-check", {"series apply": 5} | ({} if quick else {"series upstream": 60, "series off": 180})
                  | {f"series {'built' if quick else 'booted'} {index}": 45 for index in chosen}
                  | {f"series without {index}": 15 for index in range(1 if full else len(patches), len(patches) + 1)}
                  | {f"series {variant.name}": 240 for variant in variants} | {"series checkpatch": 15}
                  | ({"series versions": 240} if full else {}))
    table = Table(steps)
    git = check_applies(table, base, tree, patches, quick)
    steps.start("series checkpatch", "checkpatch --strict")
    for patch in patches:
        table.add("checkpatch", patch.name[:60], *checkpatch(tree, patch))
    # In a tree and a build of their own, as every header that a patch touches would make the kernel that is tested be
    # built anew.
    states = States(Build(*stage("linux-series"), arch, "series"), git)
    check_states(table, states, chosen, quick)
    check_without(table, states, full)
    states.enter(states.last)
    for variant in variants:
        table.try_state(states, states.last, repr(variant), f"series {variant.name}", variant.name,
                        ("configured", variant.name), lambda: build_variant(base, states.build.tree, variant))
    if full:
        steps.start("series versions", "applying it to other versions")
        found = applies.write_versions(base, patches)
        applied = sum(result == "yes" for result in found.values())
        table.add("versions", applies.TABLE.name, PASS, f"applies to {applied} of {len(found)}")
    steps.done()
    return table.show()


def versions():
    """The verb that writes patches/versions.md alone."""
    base = Base()
    for version, result in applies.write_versions(base, unsigned_series(base)).items():
        print(f"{version:<45} {result}")
    return PASS
