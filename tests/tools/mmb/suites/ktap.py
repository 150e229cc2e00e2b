# SPDX-License-Identifier: GPL-2.0
"""The verdict on KTAP, as the kernel's own parser reads it, which also writes the JUnit files."""

import io
import re
import sys
from fnmatch import fnmatchcase
from importlib import import_module
from itertools import dropwhile

from ..base.errors import FAIL, PASS, say
from ..guest import splats

KTAP = "KTAP version 1"
STATUS = {"SUCCESS": "ok", "SKIPPED": "skip"}


def parse(tree, lines, junit):
    """What the parser of a kernel tree makes of lines: ((names, status) of each test, what is wrong with the format)."""
    folder = str(tree / "tools/testing/kunit")
    if folder not in sys.path:
        sys.path.insert(0, folder)
    words = io.StringIO()
    found = import_module("kunit_parser").parse_run_tests(lines, import_module("kunit_printer").Printer(output=words))
    import_module("kunit_junit").write_junit_result(found, junit)
    error = re.search(r"\[ERROR\] Test: (.*)", words.getvalue())
    return list(leaves(found)), error.group(1).strip() if error else None


def leaves(test, names=()):
    """(names, status) of each test below one, from the outermost suite in."""
    for child in test.subtests:
        if child.subtests:
            yield from leaves(child, (*names, child.name))
        else:
            yield (*names, child.name), STATUS.get(child.status.name, "fail")


def subtests(tree, text, log):
    """The (name, status) pairs of a selftest's output, and what is wrong with it as KTAP."""
    # Some colour their words; two of the kernel's print a plan and no version.
    text = re.sub(r"\x1b\[[\d;]*m|[^\n\t\x20-\x7e]", "", text)
    if re.search(r"^1\.\.\d", text, re.M) and not re.search(r"TAP version \d", text):
        text = "TAP version 13\n" + text
    log.write_text(text)
    # What follows "# XFAIL" is all the name that it has, which the parser takes for a remark.
    text = re.sub(r"^( *ok \d+) # (XFAIL .*)", r"\1 \2", text, flags=re.M)
    found, error = parse(tree, text.splitlines(), log.with_suffix(".xml"))
    # A test that is skipped as a whole says why in its plan.
    whole = re.search(r"^1\.\.0 *# *SKIP.*|\Z", text, re.M)[0]
    return [(names[-1], status) for names, status in found], error if found else whole or "no result"


def not_as_named(cases, skipped, globs):
    """The cases that are skipped and not named, or named and not skipped, and the names of none."""
    named = {glob: {case for case in cases if fnmatchcase(case, glob)} for glob in globs}
    return (set().union(*named.values()) ^ skipped) | {glob for glob, those in named.items() if not those}


def verdict(tree, log, skips=None):
    """Reads a KTAP log: (code, one line). JUnit is beside it.

    Zero tests, fewer than planned, or only skips is a failure; so is any skip but those named in `skips`
    (as "suite.case", or by globs), where given, and a case named there that ran, or is not there.
    """
    cases, error = parse(tree, log.read_text(errors="replace").splitlines(), log.with_suffix(".xml"))
    skipped, bad = ([names for names, s in cases if s == status] for status in ("skip", "fail"))
    odd = set() if skips is None else not_as_named({".".join(names[:2]) for names, _ in cases},
                                                   {".".join(names[:2]) for names in skipped}, skips)
    if not cases:
        return FAIL, f"no test was run ({error or 'no KTAP'}, in {log})"
    summary = f"{len(cases) - len(skipped) - len(bad)} passed, {len(bad)} failed, {len(skipped)} skipped"
    if error or bad:
        return FAIL, f"{summary} ({error or ', '.join('.'.join(names) for names in bad[:5])})"
    if len(skipped) == len(cases):
        return FAIL, f"{summary}: only skips"
    if odd:
        return FAIL, f"{summary}: unexpectedly skipped, or not skipped: {', '.join(sorted(odd))}"
    return PASS, summary


def judged(build, name, ended, log, skips=None):
    """The verdict on a boot that printed KTAP: its end, what the kernel complained of, its tests."""
    if ended.code != PASS:
        return ended.code, f"{name}: {ended.why} (console: {log})"
    if splat := splats.first(ended.lines):
        return FAIL, f"{name}: the kernel complained: {splat[:120]} (console: {log})"
    code, line = verdict(build.tree, log, skips)
    say(f"{name}: JUnit in {log.with_suffix('.xml')}")
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
