# SPDX-License-Identifier: GPL-2.0
"""The verdict on KTAP; the kernel's own kunit.py reads it and writes the JUnit files."""

import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from itertools import dropwhile

from ..base.errors import FAIL, PASS, say
from ..guest import splats

KTAP = "KTAP version 1"


def leaves(element, names=()):
    """(names, testcase) of each test, from the outermost suite in."""
    for child in element:
        if child.tag == "testsuite":
            yield from leaves(child, (*names, child.get("name", "?")))
        elif child.tag == "testcase":
            yield (*names, child.get("name", "?")), child


def parse(parser, log, junit):
    """What kunit.py makes of a KTAP log: (leaves or None, exit code, its words)."""
    junit.unlink(missing_ok=True)
    parsed = subprocess.run([sys.executable, parser, "parse", f"--junit={junit}", log], capture_output=True, text=True)
    text = re.sub(r"\x1b\[\d*;?\d*m", "", parsed.stdout)
    found = list(leaves(ElementTree.parse(junit).getroot())) if junit.exists() else None
    return found, parsed.returncode, text


def error_in(text):
    """The parser's first word on what is wrong with the format."""
    found = re.search(r"\[ERROR\] Test: (.*)", text)
    return found.group(1).strip() if found else None


def status(case):
    if case.find("skipped") is not None:
        return "skip"
    return "fail" if case.find("failure") is not None or case.find("error") is not None else "ok"


def subtests(parser, text, log):
    """The (name, status) pairs of a selftest's output, and what is wrong with it as KTAP."""
    # Some colour their words; two of the kernel's print a plan and no version.
    text = re.sub(r"\x1b\[[\d;]*m|[^\n\t\x20-\x7e]", "", text)
    if re.search(r"^1\.\.\d", text, re.M) and not re.search(r"TAP version \d", text):
        text = "TAP version 13\n" + text
    log.write_text(text)
    found, _, words = parse(parser, log, log.with_suffix(".xml"))
    if not found:
        # A test that is skipped as a whole says why in its plan.
        whole = re.search(r"^1\.\.0 *# *SKIP.*", text, re.M)
        return [], whole.group(0) if whole else "no result"
    return [(names[-1], status(case)) for names, case in found], error_in(words)


def verdict(parser, log, junit, skips=None):
    """Reads a KTAP log: (code, one line).

    Zero tests, fewer than planned, or only skips is a failure; so is any skip but those named in `skips`
    (as "suite.case"), where given, and a case named there that ran.
    """
    cases, returncode, text = parse(parser, log, junit)
    if cases is None:
        return FAIL, f"no KTAP in {log}"
    skipped = [names for names, case in cases if status(case) == "skip"]
    bad = [names for names, case in cases if status(case) == "fail"]
    summary = f"{len(cases) - len(skipped) - len(bad)} passed, {len(bad)} failed, {len(skipped)} skipped"
    if not cases:
        return FAIL, "no test was run"
    if returncode or bad:
        return FAIL, f"{summary} ({error_in(text) or ', '.join('.'.join(names) for names in bad[:5])})"
    if len(skipped) == len(cases):
        return FAIL, f"{summary}: only skips"
    if skips is not None:
        odd = {".".join(names[:2]) for names in skipped} ^ set(skips)
        if odd:
            return FAIL, f"{summary}: unexpectedly skipped, or not skipped: {', '.join(sorted(odd))}"
    return PASS, summary


def judged(build, name, ended, log, skips=None):
    """The verdict on a boot that printed KTAP: its end, what the kernel complained of, its tests."""
    junit = log.with_suffix(".xml")
    if ended.code != PASS:
        return ended.code, f"{name}: {ended.why} (console: {log})"
    splat = splats.first(ended.lines)
    if splat:
        return FAIL, f"{name}: the kernel complained: {splat[:120]} (console: {log})"
    code, line = verdict(build.tree / "tools/testing/kunit/kunit.py", log, junit, skips)
    say(f"{name}: JUnit in {junit}")
    return code, f"{name}: {line}" if code == PASS else f"{name}: {line} (console: {log})"


def merged(documents):
    """One KTAP document of what several suites' debugfs files hold, a suite each.

    The kernel may have printed a line where a document begins.
    """
    lines = [KTAP, f"1..{len(documents)}"]
    for number, document in enumerate(documents, 1):
        body = list(dropwhile(lambda line: line != KTAP, document.splitlines()))[2:]
        lines += [re.sub(r"^(ok|not ok) 1 ", rf"\1 {number} ", line) for line in body]
    return "\n".join(lines) + "\n"
