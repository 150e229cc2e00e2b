# SPDX-License-Identifier: GPL-2.0
"""make patches-check: what make series wrote applies, builds and boots patch by patch, leaves nothing behind
when it is off, builds in other configurations, and pleases checkpatch.

QUICK=1 is for CI: of the patches, only each path's last is built, and none is booted. FULL=1 adds each patch with
the series off, configurations, and patches/versions.md.
"""

import itertools
import json
import os
import re
import subprocess
import time

from ..base.cache import TOP, write_atomically
from ..base.errors import FAIL, PASS, Error, say
from ..base.progress import Steps
from ..kernel.kbuild import Build
from ..kernel.tree import (BETTER_C, OFFERED, SERIES, Base, copy_base, hold, offered, patches_of, put_back, stage, stamp_of,
                           touched_by)
from . import applies
from .configurations import DISTRIBUTION, FULL, VariantBuild
from .states import States
from .write import unsigned_series

# Whoever submits the series signs it off. Kconfig sources the files that lie beside it. A packaged source has no
# history in which checkpatch could find the commit of a Fixes: line.
IGNORED = "MISSING_SIGN_OFF,EMBEDDED_FILENAME,UNKNOWN_COMMIT_ID"
# What a header of trace events looks like.
TRACE = ",OPEN_ENDED_LINE,PARENTHESIS_ALIGNMENT"
UNCHANGED = "unchanged since it passed"


class Table:
    """What was checked, and how it ended."""

    def __init__(self):
        self.rows = []
        self.since = time.monotonic()

    def add(self, check, what, code, line):
        now = time.monotonic()
        self.rows.append((check, what, code, line, now - self.since))
        self.since = now
        if code != PASS:
            say(f"FAILED: {check}: {what}: {line}")

    @property
    def code(self):
        return max(code for _, _, code, _, _ in self.rows)

    def show(self):
        width = max(len(what) for _, what, *_ in self.rows)
        for check, what, code, line, seconds in self.rows:
            state = "ok" if code == PASS else "FAIL"
            print(f"{check:<11} {what:<{width}}  {state:<4} {seconds:5.0f} s  {line}")
        bad = sum(code != PASS for _, _, code, _, _ in self.rows)
        print(f"patches-check: {len(self.rows)} checks, {bad} failed")


def of_moved_line(said, lines):
    """Whether checkpatch complains of a line of the kernel's own, which the patch has taken from elsewhere."""
    where = re.match(r"-:(\d+): (?:WARNING|CHECK): ", said)
    line = lines[int(where[1]) - 1] if where else ""
    return line.startswith("+") and line[1:].strip() in {old[1:].strip() for old in lines if old.startswith("-")}


def checkpatch(tree, patch, ignored=IGNORED):
    """By standard input: it takes a file that git knows for a source."""
    if "include/trace/events/" in patch.read_text():
        ignored += TRACE
    with open(patch) as mail:
        command = [tree / "scripts/checkpatch.pl", "--no-tree", "--strict", "--terse", "--quiet", "--no-summary",
                   "--ignore", ignored, "-"]
        done = subprocess.run(command, stdin=mail, capture_output=True, text=True)
    said = (done.stdout + done.stderr).strip().splitlines()
    found = [line for line in said if not of_moved_line(line, patch.read_text().splitlines())]
    broken = done.returncode and not said
    return (FAIL, "; ".join(found) or f"exit code {done.returncode}") if found or broken else (PASS, "nothing found")


def checkpatch_series():
    """The verb of make lint: what checkpatch says of the series."""
    base = Base()
    verdicts = [(patch, *checkpatch(base.tree, patch)) for patch in applies.patches_in(unsigned_series(base))]
    # What is for evaluation only has no entry in MAINTAINERS.
    verdicts += [(patch, *checkpatch(base.tree, patch, f"{IGNORED},FILE_PATH_CHANGES"))
                 for folder in sorted((TOP / "patches").iterdir()) if folder.is_dir() and folder.name not in SERIES
                 for patch in patches_of(folder.name)]
    for patch, code, line in verdicts:
        if code != PASS:
            print(f"{patch.name}: {line}")
    return max(code for _, code, _ in verdicts)


def check_staged(tree, git, names):
    """What make series wrote is what make kernel builds."""
    differ = sorted(n for n in names if applies.content(tree / n) != applies.content(git.folder / n))
    return (FAIL, f"differs in {', '.join(differ)}") if differ else (PASS, f"{len(names)} files")


def check_applies(table, steps, base, tree, names, folders, quick):
    steps.start("series apply", "applying the series")
    git, why = applies.apply(base.tree, names, folders, base.work / "series-am", base.version)
    if why:
        raise Error(f"the series does not apply to Linux {base.version} ({why})", "see make series")
    table.add("applies", f"Linux {base.version}", PASS, "by git am")
    table.add("applies", "is what make kernel builds", *check_staged(tree, git, names))
    for what, patches in ((f"{BETTER_C}, without the series", patches_of(BETTER_C)),
                          (f"{OFFERED[1][0]}, with the fixes alone", offered())):
        _, why = applies.am(base.tree, touched_by(patches), patches, base.work / "am", base.version)
        table.add("applies", what, FAIL if why else PASS, why or "by git am")
    if not quick:
        steps.start("series upstream", "applying it to upstream's release")
        for version, archive in applies.upstream():
            _, why = applies.apply(applies.extracted(archive, names), names, folders, base.work / "am", version)
            table.add("applies", f"upstream's {version}", FAIL if why else PASS, why or "by git am")
    return git


def check_off(table, steps, states):
    """What the whole series leaves in a kernel without its option."""
    last = len(states.commits) - 1
    if states.is_done(last, "off"):
        steps.skip("series base")
        steps.skip("series off")
        table.add("is off", "CONFIG_MM_BATCH=n", PASS, UNCHANGED)
        return
    try:
        steps.start("series base", "building the base without the series")
        states.compile(0, whole=True)
        unpatched = states.symbols()
        steps.start("series off", "building with the series off")
        code, line = states.off(unpatched)
        if code == PASS:
            states.mark(last, "off")
    except Error as error:
        code, line = FAIL, str(error)
    table.add("is off", "CONFIG_MM_BATCH=n", code, line)


def check_states(table, steps, states, chosen, quick):
    last = len(states.commits) - 1
    what = "built" if quick else "booted"
    todo = [i for i in chosen if not (states.is_done(i, what) or states.is_done(i, "booted"))]
    if not quick:
        check_off(table, steps, states)
    if todo:
        states.enter(0)
        states.configure(0)
    for index in chosen:
        name = f"{index}/{last} {states.subject(index)[:60]}"
        if index not in todo:
            steps.skip(f"series {what} {index}")
            table.add("builds", name, PASS, UNCHANGED)
            continue
        steps.start(f"series {what} {index}", f"patch {index} of {last}")
        try:
            states.compile(index, whole=not quick)
            code, line = (PASS, "mm/ and rust/ built") if quick else states.boot(index)
        except Error as error:
            code, line = FAIL, str(error)
        if code == PASS:
            states.mark(index, what)
        table.add("builds", name, code, line)


def check_without(table, steps, states, full):
    """What most kernels are that have the series: without its option. Who bisects them comes upon each patch."""
    last = len(states.commits) - 1
    for index in range(1 if full else last, last + 1):
        name = f"{index}/{last} CONFIG_MM_BATCH=n"
        if states.is_done(index, "without"):
            steps.skip(f"series without {index}")
            table.add("builds", name, PASS, UNCHANGED)
            continue
        steps.start(f"series without {index}", f"patch {index} of {last}, with the series off")
        try:
            states.compile(index, whole=False, on=False)
            states.mark(index, "without")
            code, line = PASS, "mm/ and rust/ built"
        except Error as error:
            code, line = FAIL, str(error)
        table.add("builds", name, code, line)


def check_variants(table, steps, base, tree, states, variants):
    last = len(states.commits) - 1
    for variant in variants:
        if states.is_done(last, repr(variant)):
            steps.skip(f"series {variant.name}")
            table.add("configured", variant.name, PASS, UNCHANGED)
            continue
        steps.start(f"series {variant.name}", variant.name)
        code, line = VariantBuild(base, tree, variant).make()
        if code == PASS:
            states.mark(last, repr(variant))
        table.add("configured", variant.name, code, line)


def last_of_each(folders):
    """The numbers, in the series, of each folder's last patch."""
    return list(itertools.accumulate(len(applies.patches_in([folder])) for folder in folders))


def steps_of(chosen, quick, variants, full):
    """What there is to do, with seconds for what was never timed."""
    last = chosen[-1]
    steps = {"series apply": 5} | ({} if quick else {"series upstream": 60})
    if not quick:
        steps |= {"series base": 90, "series off": 90}
    steps |= {f"series {'built' if quick else 'booted'} {index}": 45 for index in chosen}
    steps |= {f"series without {index}": 15 for index in range(1 if full else last, last + 1)}
    steps |= {f"series {variant.name}": 240 for variant in variants}
    return steps | {"series checkpatch": 15} | ({"series versions": 240} if full else {})


def own_build(base, names, arch):
    """What takes each state in turn: a tree and a build of its own, as every header that a patch touches would make
    the kernel that is tested be built anew."""
    tree = base.work / "linux-series"
    stamp = stamp_of(tree)
    hold(tree).alone()
    before = set(json.loads(stamp.read_text())) if stamp.exists() else set()
    copy_base(base, tree, before)
    put_back(base, tree, before - set(names))
    write_atomically(stamp, json.dumps(sorted(names)))
    return Build(base, tree, arch, "series")


def patches_check(arch):
    quick, full = (os.environ.get(name) == "1" for name in ("QUICK", "FULL"))
    # An evaluation's patches are not in what make series writes, and its configurations are not what is checked.
    for name in ("METER", "CONFIG"):
        os.environ.pop(name, None)
    base, tree = stage()
    folders = unsigned_series(base)
    patches = applies.patches_in(folders)
    variants = [] if quick else [DISTRIBUTION] + (FULL if full else [])
    chosen = last_of_each(folders) if quick else list(range(1, len(patches) + 1))
    steps = Steps("patches-check", steps_of(chosen, quick, variants, full))
    table = Table()
    names = applies.touched(folders)
    git = check_applies(table, steps, base, tree, names, folders, quick)
    steps.start("series checkpatch", "checkpatch --strict")
    for patch in patches:
        table.add("checkpatch", patch.name[:60], *checkpatch(tree, patch))
    states = States(own_build(base, names, arch), git)
    check_states(table, steps, states, chosen, quick)
    check_without(table, steps, states, full)
    states.enter(len(states.commits) - 1)
    check_variants(table, steps, base, states.build.tree, states, variants)
    if full:
        steps.start("series versions", "applying it to other versions")
        found = applies.write_versions(base, names, folders)
        applied = sum(result == "yes" for result in found.values())
        table.add("versions", applies.TABLE.name, PASS, f"applies to {applied} of {len(found)}")
    steps.done()
    table.show()
    return table.code


def versions():
    """The verb that writes patches/versions.md alone."""
    base = Base()
    folders = unsigned_series(base)
    for version, result in applies.write_versions(base, applies.touched(folders), folders).items():
        print(f"{version:<45} {result}")
    return PASS
