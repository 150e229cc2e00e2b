# SPDX-License-Identifier: GPL-2.0
"""Tests in the booted kernel; the kernel's own kunit.py reads the KTAP and writes the JUnit files."""

import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

from . import guest
from .boot import boot
from .common import FAIL, PASS, TOP, say

SUITES = ["mm_batch_pages", "mm_batch_block_order", "mm_batch_contig_free"]


def verdict(parser, log, junit):
    """Reads a KTAP log: (code, one line). Zero tests, fewer than planned, or only skips is a failure."""
    junit.unlink(missing_ok=True)
    parsed = subprocess.run([sys.executable, parser, "parse", f"--junit={junit}", "--summary", log],
                            capture_output=True, text=True)
    text = re.sub(r"\x1b\[\d*;?\d*m", "", parsed.stdout)
    if not junit.exists():
        return FAIL, f"no KTAP in {log}"
    cases = list(ElementTree.parse(junit).getroot().iter("testcase"))
    skipped = [c for c in cases if c.find("skipped") is not None]
    bad = [c for c in cases if c.find("failure") is not None or c.find("error") is not None]
    summary = f"{len(cases) - len(skipped) - len(bad)} passed, {len(bad)} failed, {len(skipped)} skipped"
    if not cases:
        return FAIL, "no test was run"
    if parsed.returncode or bad:
        names = ", ".join(c.get("name", "?") for c in bad[:5])
        error = next((l for l in text.splitlines() if "ERROR" in l or "missing" in l), names)
        return FAIL, f"{summary} ({error.strip()})"
    if len(skipped) == len(cases):
        return FAIL, f"{summary}: only skips"
    return PASS, summary


def judged(build, name, ended, log):
    """The verdict on a boot that printed KTAP."""
    junit = log.with_suffix(".xml")
    if ended.code != PASS:
        return ended.code, f"{name}: {ended.why} (console: {log})"
    code, line = verdict(build.tree / "tools/testing/kunit/kunit.py", log, junit)
    say(f"{name}: JUnit in {junit}")
    return code, f"{name}: {line}" if code == PASS else f"{name}: {line} (console: {log})"


def kunit(build, timeout=300):
    """Boots one CPU with the suites on: some count exactly, which no other CPU may disturb."""
    log = build.base.work / f"{build.out.name}-kunit.log"
    ended = boot(build, "kunit.enable=1 kunit.autorun=1 kunit.filter_glob=mm_batch* kunit_shutdown=reboot cma=160M",
                 cpus=1, icount=False, timeout=timeout, log=log)
    code, line = judged(build, "kunit", ended, log)
    if code == PASS:
        seen = "\n".join(ended.lines)
        absent = [s for s in SUITES if not re.search(rf"# Subtest: {s}$", seen, re.M)]
        if absent:
            code, line = FAIL, f"kunit: suites missing: {', '.join(absent)}"
    return code, line


def selftests(build, modules, timeout=300):
    """Boots two CPUs and runs our selftests from user space, the boot parameter among them."""
    folder = build.base.work / f"{build.out.name}-selftests"
    scripts = sorted((TOP / "tests/kernel/selftests").glob("*.sh"))
    job = "insmod /modules/mm_batch_bench.ko\n" + "".join(f"sh /{s.name}\n" for s in scripts)
    archive = guest.initrd(folder, job, modules, scripts)
    log = folder / "selftests.log"
    ended = boot(build, "quiet loglevel=3 cma=160M mm_batch.contig_free=off", initrd=archive, cpus=2, icount=False,
                 timeout=timeout, log=log, finished=f"^{guest.DONE}")
    return judged(build, "selftests", ended, log)
