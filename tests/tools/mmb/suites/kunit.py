# SPDX-License-Identifier: GPL-2.0
"""`make kunit`: the suites at boot, once more from debugfs, and our selftests."""

import re
from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import NamedTuple

from ..base.cache import write_atomically
from ..base.errors import FAIL, PASS
from ..paths import PATHS
from ..guest import initrd, payload
from ..guest.boot import THREADS_ARCH, boot
from .ktap import judged, merged

AT_BOOT = [suite for path in PATHS.values() for suite in path.suites]
AFTER_INIT = [*AT_BOOT, *(suite for path in PATHS.values() for suite in path.suites_late)]

# By flavour; the first is also that of the suites after init.
BOOTS = {flavour: [boot for path in PATHS.values() for boot in path.kunit_boots if boot.flavour == flavour]
         for flavour in ("release", "debug", "uml")}

# In the guest: what reclaim needs, and what the suites after init do.
RECLAIM = "memory_cgroups\nswap_on {large}\n"
LATE_NEEDS = RECLAIM + """\
mkdir /sys/fs/cgroup/mm_batch
echo always >/sys/kernel/mm/transparent_hugepage/hugepages-{large}kB/enabled || fail 'no folio sizes'
"""

# Each suite from debugfs. What the kernel prints of it can lose its last lines where a guest ends; the results cannot.
STARTED_LATE = LATE_NEEDS + """\
for suite in {suites}; do
	echo 1 >/sys/kernel/debug/kunit/$suite/run || fail "cannot run $suite"
	echo "results: begin $suite"
	cat /sys/kernel/debug/kunit/$suite/results
	echo "results: end"
done
"""
LATE_JOB = STARTED_LATE + """\
# Of what they swapped out nothing is left that cannot be read.
swapoff /dev/zram0 || fail 'cannot swapoff'
"""

RESULT = re.compile(r"\s*(not )?ok \d")

# One script's KTAP as a test of the whole.
SUBTESTS = """
sh /{name}.sh 2>&1 | tee /{name}.out | sed 's/^/    /'
if grep -q '^not ok' /{name}.out; then echo 'not ok {number} {name}'; else echo 'ok {number} {name}'; fi
"""


def slower(build, seconds):
    """A time limit: the debug kernel takes many times as long, and so does a flush of all CPUs on arm64."""
    return seconds * (8 if build.flavour == "debug" else 1) * (4 if build.arch == "arm64" else 1)


def large(build):
    """A large folio of the suites, of 16 pages, in KiB. What they swap out takes less than as many MiB."""
    return 16 * (16 if build.symbol("CONFIG_ARM64_16K_PAGES") else 4)


def needs(build):
    """What the suites want of the command line."""
    return " ".join(path.boot_needs.format(large=f"{large(build)}K") for path in PATHS.values() if path.boot_needs)


def skips(build, suites):
    """The cases that must be skipped in a boot, by globs, and no others."""
    split = set() if build.symbol("CONFIG_THP_SWAP") else {case for path in PATHS.values() for case in path.thp_swap}
    return split | {case for path in PATHS.values() for case, condition in path.conditions.items()
                    if condition not in suites.on} | {what for what in lacks(suites) if "." in what}


def lacks(suites):
    """What User Mode Linux has not, in a boot of it."""
    return {what for path in PATHS.values() for what in path.uml_lacks if suites.flavour == "uml"}


def limit(build, seconds):
    """For boot(): a time limit that begins anew with each result."""
    seconds = slower(build, seconds)
    return {"timeout": seconds, "on_line": lambda line: seconds if RESULT.match(line) else None}


def arguments(build, cases):
    """The kernel's command line to run the suites, or single cases, that match, at boot."""
    return f"kunit.enable=1 kunit.autorun=1 kunit.filter_glob={cases} kunit_shutdown=reboot {needs(build)}"


def left_out(build, suites):
    """The verdict on a boot for what a kernel does not have, or None."""
    if suites.symbol and not build.symbol(suites.symbol):
        return PASS, f"{suites.name}: left out, as {suites.symbol} is not set"
    return None


def at_boot(build, suites, timeout=120):
    """Boots with the suites on that this boot is for."""
    if absent := left_out(build, suites):
        return absent
    log = build.base.work / f"{build.out.name}-{suites.name}.log"
    # User Mode Linux reboots by starting anew. The last word counts.
    off = " kunit_shutdown=halt" if build.arch == "um" else ""
    ended = boot(build, f"{arguments(build, suites.only)} {suites.arguments}{off}", cpus=suites.cpus, icount=False,
                 log=log, **limit(build, timeout))
    wanted = [suite for suite in AT_BOOT if fnmatchcase(suite, suites.only) and suite not in lacks(suites)]
    return verdict_of(build, suites.name, ended, log, suites, wanted, "\n".join(ended.lines))


def verdict_of(build, name, ended, log, suites, wanted, text):
    """That on a boot of suites. One that is not there did not pass."""
    code, line = judged(build, name, ended, log, {c for c in skips(build, suites) if c.split(".")[0] in wanted})
    absent = [s for s in wanted if not re.search(rf"# Subtest: {s}$", text, re.M)]
    if code == PASS and absent:
        return FAIL, f"suites missing: {', '.join(absent)}"
    return code, line


def boot_to_debugfs(build, folder, job, arguments, last=(), **how):
    """Boots to a user space whose job sets up swap, folio sizes and a cgroup, and starts suites from debugfs.

    It ends with the job, or with a line like one of `last`.
    """
    archive = initrd.archive(folder, job, arch=build.arch)
    return boot(build, f"kunit.enable=1 kunit.autorun=0 {needs(build)} {arguments}", initrd=archive,
                finished="|".join([initrd.ENDED, *last]), **how)


def after_init(build, suites=None, timeout=120, job=LATE_JOB):
    """All suites once more, and those that need a user space; or those that this boot is for."""
    name = suites.name if suites else "kunit-late"
    wanted = [suite for suite in AFTER_INIT if not suites or fnmatchcase(suite, suites.only)]
    if suites and (absent := left_out(build, suites)):
        return absent
    suites = suites or BOOTS[build.flavour][0]
    folder = build.base.work / f"{build.out.name}-{name}"
    log = folder / "results.log"
    ended = boot_to_debugfs(build, folder, job.format(suites=" ".join(wanted), large=large(build)),
                            f"loglevel=5 {suites.arguments}", cpus=suites.cpus, icount=False,
                            log=folder / "console.log", **limit(build, timeout))
    if failed := initrd.failure(ended):
        return failed[0], f"{name}: {failed[1]} (console: {folder}/console.log)"
    text = "\n".join(ended.lines)
    documents = re.findall(r"^results: begin .*\n((?:.*\n)*?)results: end", text, re.M)
    write_atomically(log, merged(documents))
    return verdict_of(build, name, ended, log, suites, wanted, log.read_text())


def selftests(build, modules, timeout=300):
    """Boots two CPUs and runs our selftests from user space, the boot parameter among them."""
    if build.symbol("CONFIG_ARM64_16K_PAGES"):
        return PASS, "selftests: left out, as their programs are for pages of 4 KiB"
    if build.flavour == "debug" and build.arch == THREADS_ARCH:
        return PASS, "selftests: left out, as make kselftest DEBUG=1 runs them"
    folder = build.base.work / f"{build.out.name}-selftests"
    scripts = sorted(payload.SELFTESTS.glob("*.sh"))
    job = RECLAIM.format(large=large(build)) + f"echo 'KTAP version 1'; echo 1..{len(scripts)}\n" + "".join(
        SUBTESTS.format(number=n, name=s.stem) for n, s in enumerate(scripts, 1))
    archive = initrd.archive(folder, job, modules, payload.selftests(build), build.arch)
    log = folder / "selftests.log"
    off = " ".join(f"mm_batch.{path}=off" for path in PATHS)
    ended = boot(build, f"quiet loglevel=3 cma=160M {off}", initrd=archive, cpus=2, icount=False,
                 log=log, finished=initrd.ENDED, **limit(build, timeout))
    if failed := initrd.failure(ended):
        return failed[0], f"selftests: {failed[1]} (console: {log})"
    return judged(build, "selftests", ended, log)


class Part(NamedTuple):
    """One boot of `make kunit`."""

    name: str
    what: str
    run: Callable  # (build, modules) -> (code, one line)


def parts_at_boot(kind):
    """The boots of a kernel of this flavour that are over before init."""
    return [Part(s.name, f"KUnit, {s.arguments or 'nothing more on'}", lambda build, _, s=s: at_boot(build, s))
            for s in BOOTS[kind] if not s.late]


def parts(kind):
    """The boots of a kernel of this flavour, in order."""
    late = [Part(s.name, f"{s.only} from debugfs, with {s.cpus} CPUs", lambda build, _, s=s: after_init(build, s))
            for s in BOOTS[kind] if s.late]
    return [*parts_at_boot(kind), *late,
            Part("kunit-late", "KUnit from debugfs, after init", lambda build, _: after_init(build)),
            Part("selftests", "our selftests", selftests)]
