# SPDX-License-Identifier: GPL-2.0
"""`make full`: everything that is too long for CI, step by step, each stamped with the hash of its inputs.

report/full.json, which is tracked, says what passed on which inputs. A step whose inputs have changed since is
stale; a step that passed on the present ones is not run again.
"""

import ast
import hashlib
import json
import os
import re
import subprocess
import time
from dataclasses import dataclass

from ..base.cache import CACHE, TOP, write_atomically
from ..base.errors import FAIL, PASS, Error, say
from ..base.process import die_with_parent
from ..base.progress import minutes
from ..suites import expected

REPORT = TOP / "report/full.json"


def tools(*names):
    """The tools that every step needs, and those of this one."""
    return tuple(f"tests/tools/{n}" for n in ("fetch/", *names))


def sources(name):
    """A module's file, or the files of one that is a folder."""
    module = TOP / "tests/tools" / name.replace(".", "/")
    return sorted(module.glob("*.py")) if module.is_dir() else [module.with_suffix(".py")]


def imported(name):
    """The modules of ours that a module imports, as in mmb.guest.boot."""
    for source in sources(name):
        package = source.relative_to(TOP / "tests/tools").parent.parts
        for node in ast.walk(ast.parse(source.read_text())):
            if isinstance(node, ast.ImportFrom) and node.level:
                room = [*package[:len(package) - node.level + 1], *(node.module or "").split(".")]
                room = ".".join(part for part in room if part)
                inside = [f"{room}.{n.name}" for n in node.names]
                yield from ([room] if sources(room)[0].is_file() and room.count(".") > 1 else []) or [
                    i for i in inside if sources(i) and sources(i)[0].is_file()] or [room]


def mmb(*names):
    """What builds and boots a kernel, the modules of this step, and all that these import."""
    found, new = set(), {f"mmb.{name}" for name in ("kernel.kbuild", "guest.boot", "guest.initrd", *names)}
    while new:
        found |= new
        new = {other for name in new for other in imported(name)} - found
    return tools(*(str(source.relative_to(TOP / "tests/tools")) for name in sorted(found) for source in sources(name)
                   if not source.name.startswith("test_")))


USER = ("rust/", "shim/", "tests/properties/", "tests/loom/", "tests/shuttle/", "tests/compile_fail/", "tests/lib.rs",
        "tests/Cargo.toml", "Cargo.toml", "Cargo.lock", ".config/", *tools("test"))
KERNEL = ("rust/", "patches/", "tests/kernel/config/", "tests/kernel/kunit/", "tests/kernel/free_pages_prepare.hooks",
          "tests/kernel/splats", *mmb())
MODULES = ("tests/kernel/bench/", "tests/kernel/lib.sh")
ROWS = (*MODULES, "tests/kernel/workloads/", *mmb("measure.evaluate"))
KUNIT = (*KERNEL, *MODULES, "tests/kernel/selftests/", *mmb("suites.kunit"))
SELFTESTS = (*KERNEL, "tests/kernel/bench/", "tests/kernel/selftests/", "tests/kernel/guest/", *mmb("suites.kselftest"))
PROFILE = (*KERNEL, *ROWS, "tests/tools/mmb/measure/plugin/", *mmb("measure.profile"))


def kernel_mutants():
    """The planted bugs for which a kernel is built."""
    return tuple(str(patch.relative_to(TOP)) for patch in sorted((TOP / "tests/mutants").glob("*.patch"))
                 if patch.read_text().startswith("Caught-by: kunit"))


# Of patches/, what no kernel is built of. Cover letters have figures, which come of steps.
PROSE = ("patches/*.md", "patches/*/*.md", "patches/*/0000-cover-letter.patch")


@dataclass(frozen=True)
class Step:
    """One step: a make command, what it depends on, and how long it takes if nothing better is known.

    prose: it reads what is in patches/ for people alone.
    """

    name: str
    command: str
    inputs: tuple
    seconds: int
    prose: bool = False


def racing():
    """What races with reclaim for long, in the debug kernel: a step each, so that there may be a machine for each."""
    tests = expected.parse(expected.LIST.read_text())[0].values()
    return [Step(f"racing-{t.name}", f"make kselftest T={t.name} MINUTES=20 DEBUG=1", SELFTESTS, 1600) for t in tests
            if t.can_last]


STEPS = [
    Step("lint", "make lint", ("rust/", "shim/", "tests/", "patches/"), 120, prose=True),
    Step("test", "make test", USER, 60),
    Step("loom", "make loom", USER, 30),
    Step("shuttle", "make shuttle", USER, 30),
    Step("mutants", "make mutants", (*USER, "tests/mutants/"), 1200),
    Step("kunit", "make kunit", KUNIT, 300),
    Step("kunit-debug", "make kunit DEBUG=1", KUNIT, 900),
    Step("kunit-arm64", "make kunit ARCH=arm64", KUNIT, 900),
    Step("kunit-arm64-debug", "make kunit ARCH=arm64 DEBUG=1", KUNIT, 1800),
    Step("kunit-better_c", "make kunit CONFIG=better_c", KUNIT, 900),
    Step("kunit-distro", "make kunit CONFIG=distro", KUNIT, 1200),
    Step("mutants-kernel", "make mutants-kernel", (*KERNEL, *kernel_mutants(), *mmb("suites.mutants")), 7200),
    Step("same-source", "make same-source", ("rust/", *mmb("kernel.compiled"), *tools("same-source")), 60),
    Step("runner", "make runner",
         ("tests/tools/", "tests/kernel/lib.sh", "tests/kernel/splats", "tests/kernel/workloads/", "tests/kernel/guest/",
          "tests/kernel/selftests/", "Makefile"), 240),
    Step("meter", "make meter", (*KERNEL, "tests/kernel/lib.sh", "tests/kernel/workloads/", *mmb("measure.meter")), 300),
    Step("profile", "make profile ROW=order9", PROFILE, 120),
    Step("profile-reclaim", "make profile ROW=ext4-64k", PROFILE, 120),
    Step("kselftest", "make kselftest", SELFTESTS, 2400),
    Step("kselftest-arm64", "make kselftest ARCH=arm64 T=ours/*", SELFTESTS, 1200),
    Step("kselftest-debug", "make kselftest QUICK=1 DEBUG=1", SELFTESTS, 900),
    *racing(),
    Step("patches-check", "make patches-check FULL=1", (*KERNEL, *mmb("series.check")), 5400, prose=True),
    Step("evaluate", "make evaluate SCALE=full", (*KERNEL, *ROWS), 7200),
    Step("prove-fresh", "make prove-fresh", ("rust/", "patches/", "shim/", "tests/", "Makefile"), 2700),
]


def given(makefile):
    """What a user may give make: what it exports, and what it uses itself. Not where things are."""
    names = re.findall(r"\$\(([A-Z_]+)\)", makefile) + re.search(r"^export (.*)$", makefile, re.M).group(1).split()
    return {name for name in names if not name.startswith("MM_BATCH_")}


# What would make another command of a step's: a stamp is for the command as it stands here.
VARIABLES = {"MAKEFLAGS", "MFLAGS", "MAKEOVERRIDES"} | given((TOP / "Makefile").read_text())


def environment():
    """A step's: ours without what make full itself was given."""
    return {name: value for name, value in os.environ.items() if name not in VARIABLES}


def files(step):
    """The step's files in the work tree, without what a step itself writes."""
    # A step writes versions.md.
    without = ("patches/versions.md",) if step.prose else PROSE
    names = subprocess.run(["git", "-C", TOP, "ls-files", "-co", "--exclude-standard", "-z", "--", *step.inputs,
                            *(f":(exclude,glob){path}" for path in without)], capture_output=True, check=True)
    return sorted(n for n in set(names.stdout.decode().split("\0")) if n and (TOP / n).is_file())


def inputs(step):
    """SHA-256 over the names and contents of the step's files."""
    digest = hashlib.sha256(step.command.encode())
    for name in files(step):
        digest.update(f"\0{name}\0".encode() + hashlib.sha256((TOP / name).read_bytes()).digest())
    return digest.hexdigest()


def recorded():
    """Name -> what the report says of it."""
    try:
        return {s["name"]: s for s in json.loads(REPORT.read_text())["steps"]}
    except FileNotFoundError:
        return {}
    except (ValueError, KeyError) as error:
        raise Error(f"{REPORT} is not readable ({error})", "remove it, or restore it from git") from None


def state(step, known):
    """fresh, failed (on these inputs), stale or never run."""
    was = known.get(step.name)
    if not was:
        return "never run"
    if was["inputs"] != inputs(step):
        return "stale"
    return "fresh" if was["status"] == "pass" else "failed"


def record(step, hashed, status, seconds):
    # Read again: another make full, of another step, may have ended meanwhile.
    known = recorded()
    known[step.name] = {"name": step.name, "inputs": hashed, "status": status, "seconds": round(seconds)}
    steps = [known[s.name] for s in STEPS if s.name in known]
    write_atomically(REPORT, json.dumps({"steps": steps}, indent=1) + "\n")


def chosen():
    wanted = os.environ.get("STEP")
    found = [s for s in STEPS if not wanted or re.fullmatch(wanted, s.name)]
    if not found:
        raise Error(f"STEP={wanted} matches no step", "one of " + ", ".join(s.name for s in STEPS))
    return found


def full():
    """Runs what is not fresh, and goes on after a failure."""
    steps = chosen()
    known = recorded()
    todo = [s for s in steps if state(s, known) != "fresh"]
    expected = {s.name: known.get(s.name, {}).get("seconds", s.seconds) for s in todo}
    say(f"full: {len(steps) - len(todo)} steps are fresh, {len(todo)} to run, "
        f"about {minutes(sum(expected.values()))} in all")
    failed = []
    for number, step in enumerate(todo, 1):
        left = sum(expected[s.name] for s in todo[number - 1:])
        log = CACHE / f"full/{step.name}.log"
        say(f"full: {number} of {len(todo)}: {step.command} (about {minutes(left)} left; log: {log})")
        log.parent.mkdir(parents=True, exist_ok=True)
        hashed, start = inputs(step), time.monotonic()
        with open(log, "w") as out:
            code = subprocess.run(step.command.split(), cwd=TOP, env=environment(), stdin=subprocess.DEVNULL,
                                  stdout=out, stderr=subprocess.STDOUT, preexec_fn=die_with_parent).returncode
        if hashed != inputs(step):
            raise Error(f"what {step.name} depends on changed while it ran", "run make full again")
        status = "fail" if code else "pass"
        record(step, hashed, status, time.monotonic() - start)
        say(f"full: {step.name}: {status}, {minutes(time.monotonic() - start)}")
        failed += [step.name] if code else []
    for name in failed:
        say(f"full: {name} failed: see {CACHE}/full/{name}.log")
    return FAIL if failed else PASS


def stale():
    """Prints the steps that are not fresh; what CI shows."""
    known = recorded()
    for step in STEPS:
        say(f"full: {step.name}: {state(step, known)}")
    return PASS
