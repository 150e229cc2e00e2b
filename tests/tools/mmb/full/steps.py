# SPDX-License-Identifier: GPL-2.0
"""The steps of `make full`: everything that is too long for CI."""

from dataclasses import dataclass
from functools import cache

from ..base.cache import TOP
from ..suites import expected
from ..suites.mutants import FOLDER, mutants

# Of a user-space step, what it is built of.
USER = ("rust/", "shim/", "tests/properties/", "tests/loom/", "tests/shuttle/", "tests/compile_fail/", "tests/lib.rs",
        "tests/Cargo.toml", "Cargo.toml", "Cargo.lock", ".config/", "tests/tools/test", "tests/tools/fetch/")
# Of a boot, what is neither in the image nor a program: scripts, and what the outcome is judged by.
BOOT = ("tests/kernel/lib.sh", "tests/kernel/splats")
WORKLOADS = (*BOOT, "tests/kernel/workloads/*.sh")
GUEST = (*BOOT, "tests/kernel/guest/", "tests/kernel/selftests/*.sh")

# The kernels that steps run: what make is given for each.
KERNELS = {
    "meter": "METER=1",
    "release": "",
    "debug": "DEBUG=1",
    "better_c": "CONFIG=better_c",
    "distro": "CONFIG=distro",
    "arm64": "ARCH=arm64",
    "arm64-debug": "ARCH=arm64 DEBUG=1",
    "arm64-16k": "ARCH=arm64 EXTRA_CONFIG=CONFIG_ARM64_4K_PAGES=n,CONFIG_ARM64_16K_PAGES=y",
    "um": "ARCH=um",
    "meter-distro": "METER=1 CONFIG=distro",
    "meter-noinline": "METER=1 CONFIG=noinline",
    "meter-better_c": "METER=1 CONFIG=better_c",
    "meter-arm64": "METER=1 ARCH=arm64",
}


@dataclass(frozen=True)
class Step:
    """One step: a make command, and what its outcome depends on."""

    name: str
    command: str
    seconds: int  # if nothing better is known
    kernels: tuple = ()  # that it runs: names of KERNELS
    judges: tuple = ()  # modules of ours that run it, with all that these import
    files: tuple = ()  # of the work tree, or folders
    tests: tuple = ()  # the selftests that it runs: rows of their list
    kunit: bool = False  # it runs KUnit's suites, which are in each kernel
    prose: bool = False  # comments and messages count
    builds: bool = False  # mostly, so that another step that does would only wait; or runs what one builds anew


def racing(name, minutes):
    """What races with reclaim for so long, in the debug kernel: a step each, so that they run side by side."""
    return [Step(f"{name}-{t}", f"make kselftest T={t} MINUTES={minutes} DEBUG=1", 60 * minutes + 400, ("debug",),
                 ("suites.kselftest",), GUEST, (t,)) for t, row in expected.listed().items() if row.lasts]


def suites(verb, kernel, seconds, tests=(), given=""):
    """What a verb runs in a kernel: KUnit, or selftests of the list."""
    name = verb if kernel == "release" else f"{verb}-{kernel}"
    command = " ".join(filter(None, ("make", verb, given, KERNELS[kernel])))
    return Step(name, command, seconds, (kernel,), (f"suites.{verb}",), GUEST, tests, kunit=verb == "kunit")


def evaluate(given, seconds):
    """The limits of another configuration, or of arm64."""
    name = given.partition("=")[2]
    return Step(f"evaluate-{name}", f"make evaluate {given}", seconds, (f"meter-{name}",), ("measure.evaluate",), WORKLOADS)


@cache
def of_full():
    """All steps of `make full`."""
    # Of each selftest, what it must show; and the planted bugs for which a kernel is built, by who must catch each.
    listed, planted = expected.listed(), mutants("*")
    in_kernel = {bug.patch for bug in planted}
    return [
        # It writes report/x86_64.
        Step("prove-fresh", "make prove-fresh SCALE=full", 7500, ("meter",), ("measure.evaluate",),
             (*WORKLOADS, "tests/tools/prove-fresh", "tests/tools/fetch/")),
        # Its kernel is of the same sources as the release kernel, which stands for what of Rust is in both.
        Step("prove-deb", "make prove-deb", 10000, ("release",), ("series.deb", "measure.machine", "guest.debian"),
             ("tests/tools/prove-deb", "tests/tools/fetch/", "tests/kernel/machine/", "tests/kernel/workloads/",
              "tests/kernel/bench/", "patches/"), builds=True),
        Step("before", "make before", 1800, ("release",), ("series.before",), (*WORKLOADS, "patches/"), builds=True),
        Step("patches-check", "make patches-check FULL=1", 5400, ("release",), ("series.check",),
             (*BOOT, "patches/", "tests/kernel/config/"), kunit=True, builds=True),
        Step("mutants-kernel", "make mutants-kernel", 7200, ("release", "debug"), ("suites.mutants",),
             (*GUEST, *(str(patch.relative_to(TOP)) for patch in in_kernel)),
             tuple(sorted({bug.case for bug in planted if bug.selftest})), kunit=True, builds=True),
        suites("kselftest", "release", 2400, tuple(listed)),
        *racing("racing", 20),
        Step("mutants", "make mutants", 3600, files=(*USER, "tests/mutants/run", "tests/mutants/survivors.txt", *(
            str(patch.relative_to(TOP)) for patch in FOLDER.rglob("*.patch") if patch not in in_kernel)), builds=True),
        suites("kselftest", "debug", 900, tuple(t for t, row in listed.items() if row.quick), "QUICK=1"),
        suites("kselftest", "arm64", 5400, tuple(listed)),
        *(suites("kunit", *of) for of in (("release", 300), ("debug", 900), ("arm64", 900), ("arm64-debug", 1800),
                                          ("arm64-16k", 900), ("better_c", 300), ("distro", 300))),
        *(evaluate(given, 1200) for given in ("CONFIG=distro", "CONFIG=noinline", "CONFIG=better_c", "ARCH=arm64")),
        Step("uml", "make uml", 60, ("um",), ("suites.kunit",), BOOT, kunit=True),
        Step("runner", "make runner", 300, ("meter", "um"),
             files=("tests/tools/", "tests/kernel/machine/", *WORKLOADS, *GUEST,
                    "tests/kernel/selftests/expected.toml", "Makefile"), kunit=True, builds=True),
        Step("meter", "make meter", 300, ("meter",), ("measure.meter",), WORKLOADS, builds=True),
        Step("profile", "make profile ROW=order9", 120, ("meter",), ("measure.profile",), WORKLOADS, builds=True),
        Step("profile-reclaim", "make profile ROW=ext4-64k", 120, ("meter",), ("measure.profile",), WORKLOADS,
             builds=True),
        Step("test", "make test", 120, files=USER, prose=True),
        Step("same-source", "make same-source", 60, ("release",), ("kernel.compiled",), USER),
        Step("lint", "make lint", 240, files=("rust/", "shim/", "tests/", "patches/"), prose=True, builds=True),
    ]


@cache
def of_soak():
    """Those of `make soak`: no part of `make full`, with stamps of their own."""
    return racing("soak", 60)
