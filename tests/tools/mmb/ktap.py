# SPDX-License-Identifier: GPL-2.0
"""The verdict on KTAP; the kernel's own kunit.py reads it and writes the JUnit files."""

import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

from .common import FAIL, PASS, say

SPLAT = re.compile(r"\bBUG: |\bWARNING: |\bOops: |Bad page state|INFO: (possible|task|trying|rcu)|\bKASAN: |UBSAN: |"
                   r"DEBUG_LOCKS_WARN|unreferenced object")


def leaves(element, names=()):
    """(names, testcase) of each test, from the outermost suite in."""
    for child in element:
        if child.tag == "testsuite":
            yield from leaves(child, (*names, child.get("name", "?")))
        elif child.tag == "testcase":
            yield (*names, child.get("name", "?")), child


def skipped_cases(junit):
    """The cases of which a part was skipped, as "suite.case"."""
    return {".".join(names[:2]) for names, case in leaves(ElementTree.parse(junit).getroot())
            if case.find("skipped") is not None}


def verdict(parser, log, junit, skips=None):
    """Reads a KTAP log: (code, one line).

    Zero tests, fewer than planned, or only skips is a failure; so is any skip but those named in `skips`,
    where given, and a case named there that ran.
    """
    junit.unlink(missing_ok=True)
    parsed = subprocess.run([sys.executable, parser, "parse", f"--junit={junit}", "--summary", log],
                            capture_output=True, text=True)
    text = re.sub(r"\x1b\[\d*;?\d*m", "", parsed.stdout)
    if not junit.exists():
        return FAIL, f"no KTAP in {log}"
    cases = list(leaves(ElementTree.parse(junit).getroot()))
    skipped = [c for _, c in cases if c.find("skipped") is not None]
    bad = [names for names, c in cases if c.find("failure") is not None or c.find("error") is not None]
    summary = f"{len(cases) - len(skipped) - len(bad)} passed, {len(bad)} failed, {len(skipped)} skipped"
    if not cases:
        return FAIL, "no test was run"
    if parsed.returncode or bad:
        names = ", ".join(".".join(n) for n in bad[:5])
        error = next((l for l in text.splitlines() if "ERROR" in l or "missing" in l), names)
        return FAIL, f"{summary} ({error.strip()})"
    if len(skipped) == len(cases):
        return FAIL, f"{summary}: only skips"
    if skips is not None:
        odd = skipped_cases(junit) ^ set(skips)
        if odd:
            return FAIL, f"{summary}: unexpectedly skipped, or not skipped: {', '.join(sorted(odd))}"
    return PASS, summary


def judged(build, name, ended, log, skips=None):
    """The verdict on a boot that printed KTAP: its end, what the kernel complained of, its tests."""
    junit = log.with_suffix(".xml")
    if ended.code != PASS:
        return ended.code, f"{name}: {ended.why} (console: {log})"
    splat = next((line for line in ended.lines if SPLAT.search(line)), None)
    if splat:
        return FAIL, f"{name}: the kernel complained: {splat.strip()[:120]} (console: {log})"
    code, line = verdict(build.tree / "tools/testing/kunit/kunit.py", log, junit, skips)
    say(f"{name}: JUnit in {junit}")
    return code, f"{name}: {line}" if code == PASS else f"{name}: {line} (console: {log})"


def merged(documents):
    """One KTAP document of what several suites' debugfs files hold, a suite each."""
    lines = ["KTAP version 1", f"1..{len(documents)}"]
    for number, document in enumerate(documents, 1):
        body = document.splitlines()[2:]
        lines += [re.sub(r"^(ok|not ok) 1 ", rf"\1 {number} ", line) for line in body]
    return "\n".join(lines) + "\n"
