# SPDX-License-Identifier: GPL-2.0
"""`make full`: what is not fresh, in two lanes. Ninja runs them: each kernel is built once, before what runs it, and of
what builds for itself there is one at a time, beside what boots.
"""

import os
import pathlib
import re
import shlex
import subprocess
import tempfile
import time

from ..base.cache import CACHE, TOP, alone
from ..base.errors import FAIL, PASS, Error, matching, say
from ..base.process import die_with_parent
from ..base.progress import minutes
from ..kernel.kbuild import staged_build
from ..guest import payload
from .stamps import SOURCES, differing, hash_of, inputs, kernel_of, record, recorded, state, states, what_runs
from .steps import KERNELS, of_full, of_soak

LANES = 2
LOGS = CACHE / "full"


# What a user may give make, but for where things are, and what hands it on: it would make another command of a step's,
# and a stamp is for the command as it stands there.
VARIABLES = {"MAKEFLAGS", "MFLAGS", "MAKEOVERRIDES"} | set(
    re.findall(r"^(?!MM_BATCH_)([A-Z_]+)\t", (TOP / "tests/tools/variables").read_text(), re.M))


def environment():
    """A step's: ours without what make full itself was given."""
    return {name: value for name, value in os.environ.items() if name not in VARIABLES}


def chosen():
    return matching("STEP", "step", of_full(), lambda step: step.name)


def build_file(steps):
    """For ninja: an edge for each kernel that these steps run, and for each of them. All are always to be done."""
    mmb = f"{shlex.quote(str(TOP / 'tests/tools/fetch/with'))} kernel python3 -m mmb"
    lines = [f"pool builds\n  depth = 1\nrule mmb\n  command = {mmb} $what\n  description = $what"]
    for name in [name for name in KERNELS if any(name in step.kernels for step in steps)]:
        lines.append(f"build kernel-{name}: mmb\n  what = full-kernel {name}\n  pool = builds")
    for step in steps:
        needs = " ".join(f"kernel-{name}" for name in step.kernels)
        lines.append(f"build {step.name}: mmb | {needs}\n  what = full-step {step.name}"
                     + ("\n  pool = builds" if step.builds else ""))
    return "\n".join(lines) + "\n"


def run(verb, steps):
    """Builds the kernels, runs what is not fresh then, and goes on after a failure."""
    _, known = recorded()
    seconds = sum(known.get(step.name, {}).get("seconds", step.seconds)
                  for step, now in states(steps).items() if now != "fresh")
    say(f"{verb}: {len(steps)} steps in {LANES} lanes, at most about {minutes(seconds / LANES)}; logs: {LOGS}")
    LOGS.mkdir(parents=True, exist_ok=True)
    # A folder of its own: another make full may run other steps of this tree meanwhile.
    with tempfile.TemporaryDirectory(prefix="mm_batch-full-") as folder:
        (pathlib.Path(folder) / "build.ninja").write_text(build_file(steps))
        done = subprocess.run(["ninja", f"-j{LANES}", "-k0", "-C", folder], env=environment(),
                              preexec_fn=die_with_parent)
    return FAIL if done.returncode else PASS


def logged(name, command):
    """Runs a make command into a log: exit code, seconds, and the load of the machine meanwhile."""
    log, start = LOGS / f"{name}.log", time.monotonic()
    with open(log, "w") as out:
        code = subprocess.run(shlex.split(command), cwd=TOP, env=environment(), stdin=subprocess.DEVNULL, stdout=out,
                              stderr=subprocess.STDOUT, preexec_fn=die_with_parent).returncode
    seconds = round(time.monotonic() - start)
    # Of the last 15 minutes; of shorter ones what is nearest.
    load = os.getloadavg()[0 if seconds < 180 else 1 if seconds < 600 else 2]
    return code, seconds, round(load, 1)


def build_kernel(name):
    """The edge of a kernel: builds it, and writes down what it is."""
    now = {"sources": hash_of(SOURCES)}
    for pair in KERNELS[name].split():
        os.environ.update([pair.split("=", 1)])
    arch = os.environ.get("ARCH") or "x86_64"
    build, steps = staged_build(arch, "full", payload.STEP)
    now |= what_runs(build, steps)
    steps.done()
    with alone("full.json"):
        kernels, known = recorded()
        was = kernels.get(name, {})
        record(kernels | {name: kernel_of(was, now)}, known)
    if was.get("sources") == now["sources"] and (parts := sorted(differing(was, now))):
        say(f"full: {name}: of the same sources, but not with the same {', '.join(parts)} as recorded")
    return PASS


def run_step(name):
    """The edge of a step: runs it unless it is fresh, and writes down how it ended."""
    step = next(step for step in (*of_full(), *of_soak()) if step.name == name)
    kernels, known = recorded()
    before = inputs(step, kernels, hash_of(SOURCES))
    if state(step, known.get(name), before) == "fresh":
        say(f"full: {name}: fresh")
        return PASS
    code, seconds, load = logged(name, step.command)
    with alone("full.json"):
        kernels, known = recorded()
        if before is None or before != inputs(step, kernels, hash_of(SOURCES)):
            raise Error(f"what {name} depends on changed while it ran", "run make full again")
        status = "fail" if code else "pass"
        this = {"name": name, "inputs": before, "status": status, "seconds": seconds, "load": load}
        record(kernels, known | {name: this})
    say(f"full: {name}: {status}, {minutes(seconds)} at a load of {load}" + (f": see {LOGS}/{name}.log" if code else ""))
    return FAIL if code else PASS


def stale():
    """Prints how fresh each step is; what CI shows."""
    for step, now in states((*of_full(), *of_soak())).items():
        say(f"full: {step.name}: {now}")
    return PASS
