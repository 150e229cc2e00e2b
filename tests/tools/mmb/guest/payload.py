# SPDX-License-Identifier: GPL-2.0
"""What guests run and load, built with a kernel: our modules, workloads and selftests."""

import platform

from ..base.cache import TOP, alone
from ..base.process import run
from . import initrd, rootfs, upstream

BENCH = TOP / "tests/kernel/bench"
SELFTESTS = TOP / "tests/kernel/selftests"
WORKLOADS = TOP / "tests/kernel/workloads"
STEP = {"module": 20}


def module(build, source, name):
    """Builds a module outside of the tree; returns the .ko."""
    out = build.base.work / f"{build.out.name}-{name}"
    out.mkdir(exist_ok=True)
    with alone(out.name):
        run(build.command(f"M={source}", f"MO={out}", "modules"), out.with_name(f"{out.name}.log"), f"building {name}")
    return out / f"{name}.ko"


def program(build, source, *include):
    """Builds a static program for the guest; returns it. `include`: folders of headers."""
    out = build.base.work / f"{build.out.name}-programs" / source.stem
    out.parent.mkdir(exist_ok=True)
    part = out.with_name(out.name + ".part")
    own = build.arch in (platform.machine(), "um")
    compiler = ["cc"] if own else upstream.compiler(build.arch, initrd.tree(build.arch))
    flags = ["-O2", "-Wall", "-Wextra", "-Werror", "-static", *(f"-I{folder}" for folder in include)]
    with alone(out.parent.name):
        run([*compiler, *flags, "-o", part, source], out.with_name(out.name + ".log"), f"building {source.name}")
        part.replace(out)
    return out


def selftests(build):
    """The files of our selftests: scripts, and programs, which it builds."""
    headers = build.tree / "tools/testing/selftests"
    return [*sorted(SELFTESTS.rglob("*.sh")), *(program(build, p, headers) for p in sorted(SELFTESTS.glob("*.c")))]


def workloads(build):
    """The programs of the evaluation's rows, built."""
    return [program(build, source) for source in sorted(WORKLOADS.glob("*.c"))]


def modules(build, steps):
    """The modules that guests load: ours, and the kernel's vmalloc test. Its step is STEP."""
    steps.start("module", "building the workloads")
    return [module(build, BENCH, "mm_batch_bench"), build.out / "lib/test_vmalloc.ko"]


def loadable(build, steps):
    """What the guest can load: the kernel's test modules, and ours."""
    return sorted(set(modules(build, steps) + rootfs.modules_of(build)))
