# SPDX-License-Identifier: GPL-2.0
"""`make kunit`: the suites at boot, once more from debugfs, and our selftests."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from . import guest
from .boot import boot
from .common import FAIL, PASS, write_atomically
from .kbuild import SELFTESTS
from .ktap import judged, merged

AT_BOOT = ["mm_batch_pages", "mm_batch_block_order", "mm_batch_contig_free", "mm_batch_hooks", "mm_batch_pte_batch",
           "mm_batch_folio_pte_batch", "mm_batch_file_unmap", "mm_batch_file_unmap_as_c"]
AFTER_INIT = [*AT_BOOT, "guest_mm_batch"]

# What the suites want of the command line: contiguous memory, and large folios.
NEEDS = "cma=160M thp_anon=64K:always thp_shmem=64K:always"

HOOKS = {"page_owner", "page_table_check", "alloc_tag", "page_poison", "init_on_free", "kasan"}


@dataclass(frozen=True)
class Suites:
    """A boot with KUnit: which hooks its kernel and its command line turn on."""

    name: str
    arguments: str
    hooks: frozenset

    def skips(self, build):
        """The cases that must be skipped in this boot, and no others."""
        out = {f"mm_batch_hooks.test_{hook}" for hook in HOOKS - self.hooks}
        return out if build.flavour == "debug" else out | {"mm_batch_contig_free.test_fault_prepare"}


BOOTS = {
    # One hook at a time: with two on, the gate of the fast prepare may forget either.
    "release": [
        Suites("kunit", "", frozenset()),
        *(Suites(f"kunit-{hook.replace('_', '-')}", argument, frozenset({hook})) for hook, argument in (
            ("page_owner", "page_owner=on"), ("page_table_check", "page_table_check=on"),
            ("page_poison", "page_poison=1"), ("init_on_free", "init_on_free=1"))),
    ],
    # KASAN, page_table_check and allocation tags are always on there.
    "debug": [
        Suites("kunit", "page_owner=on page_poison=1", frozenset(HOOKS - {"init_on_free"})),
        Suites("kunit-init-on-free", "init_on_free=1", frozenset({"kasan", "page_table_check", "alloc_tag",
                                                                  "init_on_free"})),
    ],
}

# In the guest: what reclaim needs.
RECLAIM = "memory_cgroups\nswap_on 64\n"

# What guest_mm_batch needs, then each suite from debugfs.
LATE_JOB = RECLAIM + """\
mkdir /sys/fs/cgroup/mm_batch
echo always >/sys/kernel/mm/transparent_hugepage/hugepages-64kB/enabled || fail 'no folio sizes'
for suite in {suites}; do
	echo 1 >/sys/kernel/debug/kunit/$suite/run || fail "cannot run $suite"
	echo "results: begin $suite"
	cat /sys/kernel/debug/kunit/$suite/results
	echo "results: end"
done
"""

# One script's KTAP as a test of the whole.
SUBTESTS = """
sh /{name}.sh 2>&1 | tee /{name}.out | sed 's/^/    /'
if grep -q '^not ok' /{name}.out; then echo 'not ok {number} {name}'; else echo 'ok {number} {name}'; fi
"""


def slower(build, seconds):
    """A time limit: the debug kernel takes many times as long."""
    return seconds * (8 if build.flavour == "debug" else 1)


def arguments(cases):
    """The kernel's command line to run the suites, or single cases, that match, at boot."""
    return f"kunit.enable=1 kunit.autorun=1 kunit.filter_glob={cases} kunit_shutdown=reboot {NEEDS}"


def at_boot(build, suites, timeout=120):
    """Boots one CPU with the suites on: some count exactly, which no other CPU may disturb."""
    log = build.base.work / f"{build.out.name}-{suites.name}.log"
    ended = boot(build, f"{arguments('mm_batch*')} {suites.arguments}", cpus=1, icount=False,
                 timeout=slower(build, timeout), log=log)
    code, line = judged(build, suites.name, ended, log, suites.skips(build))
    return present(code, line, AT_BOOT, "\n".join(ended.lines))


def present(code, line, wanted, text):
    """A suite that is not there did not pass."""
    absent = [s for s in wanted if not re.search(rf"# Subtest: {s}$", text, re.M)]
    if code == PASS and absent:
        return FAIL, f"suites missing: {', '.join(absent)}"
    return code, line


def after_init(build, timeout=120, job=LATE_JOB):
    """Boots to a user space that sets up swap, folio sizes and a cgroup, and starts the suites from debugfs."""
    folder = build.base.work / f"{build.out.name}-kunit-late"
    archive = guest.initrd(folder, job.format(suites=" ".join(AFTER_INIT)), arch=build.arch)
    log = folder / "results.log"
    suites = BOOTS[build.flavour][0]
    ended = boot(build, f"kunit.enable=1 kunit.autorun=0 loglevel=5 {NEEDS} {suites.arguments}",
                 initrd=archive, cpus=1, icount=False, timeout=slower(build, timeout),
                 log=folder / "console.log", finished=f"^{guest.DONE}|^{guest.FAILED}")
    failed = guest.failure(ended)
    if failed:
        return FAIL, f"kunit-late: {failed}"
    text = "\n".join(ended.lines)
    documents = re.findall(r"^results: begin .*\n((?:.*\n)*?)results: end", text, re.M)
    write_atomically(log, merged(documents))
    code, line = judged(build, "kunit-late", ended, log, suites.skips(build))
    return present(code, line, AFTER_INIT, log.read_text())


def selftests(build, modules, timeout=300):
    """Boots two CPUs and runs our selftests from user space, the boot parameter among them."""
    folder = build.base.work / f"{build.out.name}-selftests"
    scripts = sorted(SELFTESTS.glob("*.sh"))
    job = RECLAIM + f"echo 'KTAP version 1'; echo 1..{len(scripts)}\n" + "".join(
        SUBTESTS.format(number=n, name=s.stem) for n, s in enumerate(scripts, 1))
    archive = guest.initrd(folder, job, modules, build.selftests(), build.arch)
    log = folder / "selftests.log"
    ended = boot(build, "quiet loglevel=3 cma=160M mm_batch.contig_free=off mm_batch.file_unmap=off",
                 initrd=archive, cpus=2, icount=False, timeout=slower(build, timeout), log=log,
                 finished=f"^{guest.DONE}|^{guest.FAILED}")
    failed = guest.failure(ended)
    return (FAIL, f"selftests: {failed}") if failed else judged(build, "selftests", ended, log)


@dataclass(frozen=True)
class Part:
    """One boot of `make kunit`."""

    name: str
    what: str
    run: Callable  # (build, modules) -> (code, one line)


def parts(kind):
    """The boots of a kernel of this flavour, in order."""
    out = [Part(s.name, f"KUnit, {s.arguments or 'no hook on'}", lambda build, _, s=s: at_boot(build, s))
           for s in BOOTS[kind]]
    return [*out, Part("kunit-late", "KUnit from debugfs, after init", lambda build, _: after_init(build)),
            Part("selftests", "our selftests", selftests)]
