# SPDX-License-Identifier: GPL-2.0
"""What the selftests must show: the committed list, and how a test's results are judged by it."""

import fnmatch
import re
from collections import Counter

from ..base.cache import TOP
from ..base.errors import FAIL, PANIC, TIMEOUT, Error

LIST = TOP / "tests/kernel/selftests/expected.list"
# More tests that do not hold still than this, and the list would say nothing.
MOST_UNSTABLE = 5

# How a test's run can end, and what the command's exit code is then.
DONE, KILLED, HANG, SPLAT, PANICKED, GONE = "done", "limit", "hang", "splat", "panic", "gone"
CODES = {KILLED: TIMEOUT, HANG: TIMEOUT, SPLAT: FAIL, PANICKED: PANIC, GONE: FAIL}


class Test:
    """A row of the list, and the rows that add to it."""

    def __init__(self, name, paths, limit, ok, command):
        self.name, self.paths, self.command = name, paths.split(","), command
        self.limit, self.ok = int(limit), int(ok)
        self.known = []  # (status, count, glob): subtests that are not ok in `off`
        self.without = []  # the same, in a kernel that lacks a symbol: it, and one of these
        self.more = []  # (symbol, count): subtests that are there, and ok, only in a kernel with it
        self.unstable = []  # globs
        self.before = self.after = None
        self.quick = self.can_last = False
        # Of the host, one for each CPU; or CPUs that take turns by instructions, not by the host's clock; CPUs, if not as
        # many as others have; MiB of a slower tier of memory.
        self.threads, self.in_step, self.cpus, self.slower = False, False, None, 0
        self.lasts = 0  # seconds beyond its limit

    def in_kernel(self, symbol):
        """Takes what depends on the kernel's configuration for what it is there. `symbol`: a symbol's value."""
        for name, row in self.without:
            if symbol(name):
                self.ok += row[1]
            else:
                self.known.append(row)
        self.ok += sum(count for name, count in self.more if symbol(name))
        self.without, self.more = [], []

    def last(self, seconds):
        """Makes a test that can last do so."""
        self.lasts, self.command = seconds, f"{self.command} {seconds}"

    def seconds(self, slower):
        """Its time limit, where tests take so much longer."""
        return self.limit * slower + self.lasts

    @property
    def program(self):
        return self.command.split()[0]

    def steady(self, result):
        """The run's subtests that hold still."""
        return Counter({case: n for case, n in result.cases.items()
                        if not any(fnmatch.fnmatchcase(case[0], glob) for glob in self.unstable)})


class Result:
    """One run of a test: how it ended, and the (subtest, status) pairs with their numbers."""

    def __init__(self, end, why="", cases=(), seconds=0.0, error=None):
        self.end, self.why, self.cases, self.seconds, self.error = end, why, Counter(cases), seconds, error

    def count(self, status):
        return sum(n for (_, s), n in self.cases.items() if s == status)

    @property
    def text(self):
        if self.end != DONE:
            return self.end.upper()
        skipped, failed = self.count("skip"), self.count("fail")
        text = f"{self.count('ok')}" + (f"+{skipped}s" if skipped else "")
        return text + (f" {failed} not ok" if failed else "")


def parse(text):
    """The list's tests by name, and those left out with the reason."""
    tests, out = {}, {}
    for number, line in enumerate(text.splitlines(), 1):
        line = re.sub(r"(^|\s+)#.*", "", line)
        if not line:
            continue
        kind, name, *rest = line.split(None, 2)
        rest = rest[0] if rest else ""
        try:
            if kind == "test" and name not in tests:
                tests[name] = Test(name, *rest.split(None, 3))
            elif kind == "out" and rest:
                out[name] = rest
            elif kind in ("skip", "fail"):
                count, glob, symbol = re.fullmatch(r"(\d+)\s+(.+?)(?:\s+without (CONFIG_\w+))?", rest).groups()
                row = (kind, int(count), glob)
                if symbol:
                    tests[name].without.append((symbol, row))
                else:
                    tests[name].known.append(row)
            elif kind == "more":
                count, symbol = re.fullmatch(r"(\d+)\s+with (CONFIG_\w+)", rest).groups()
                tests[name].more.append((symbol, int(count)))
            elif kind == "lasts" and not rest:
                tests[name].can_last = True
            elif kind == "unstable":
                glob, _why = rest.split(None, 1)
                tests[name].unstable.append(glob)
            elif kind in ("before", "after") and rest:
                setattr(tests[name], kind, rest)
            elif kind == "boot":
                how, cpus, slower = re.fullmatch(r"(?=.)(threads|in-step)?\s*(?:cpus=(\d+))?\s*(?:slower=(\d+))?",
                                                 rest).groups()
                test = tests[name]
                test.threads, test.in_step = how == "threads", how == "in-step"
                test.cpus, test.slower = cpus and int(cpus), int(slower or 0)
            elif kind == "quick":
                for quick in [name, *rest.split()]:
                    tests[quick].quick = True
            else:
                raise ValueError
        except (ValueError, TypeError, KeyError, AttributeError):
            raise Error(f"{LIST.name}, line {number}, is not understood", "see the head of that file") from None
    if sum(len(t.unstable) for t in tests.values()) > MOST_UNSTABLE:
        raise Error(f"{LIST.name} has more than {MOST_UNSTABLE} unstable tests", "mend one")
    return tests, out


def shortened(names):
    names = sorted(names)
    return ", ".join(f"'{n}'" for n in names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def problems(test, result):
    """What is wrong with a run, as the list has it."""
    if result.end != DONE:
        return [f"{result.end}: {result.why}"]
    if result.error:
        return [result.error]
    found = []
    left = test.steady(result)
    ok = sum(n for (_, status), n in left.items() if status == "ok")
    for status, count, glob in test.known:
        match = [case for case in left if case[1] == status and fnmatch.fnmatchcase(case[0], glob)]
        seen = sum(left.pop(case) for case in match)
        if seen != count:
            found.append(f"{seen} subtests '{glob}' are '{status}', listed are {count}")
    for status, words in (("fail", "not ok"), ("skip", "skipped, which is not listed")):
        names = [name for name, s in left if s == status]
        if names:
            found.append(f"{words}: {shortened(names)}")
    if ok != test.ok:
        found.append(f"{ok} subtests are ok, listed are {test.ok}")
    return found


def without_numbers(cases):
    """The same, where a name holds something that was measured."""
    found = Counter()
    for (name, status), count in cases.items():
        found[re.sub(r"\d+(\.\d+)?", "N", name), status] += count
    return found


def differences(test, off, other):
    """How a mode's run differs from that of `off`."""
    if off.end != DONE or other.end != DONE:
        return []
    here, there = without_numbers(test.steady(other)), without_numbers(test.steady(off))
    differ = {name for name, _ in (here - there) + (there - here)}
    return [f"differs from off: {shortened(differ)}"] if differ else []
