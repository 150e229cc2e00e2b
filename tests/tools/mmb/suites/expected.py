# SPDX-License-Identifier: GPL-2.0
"""What the selftests must show: the committed list, and how a test's results are judged by it."""

import re
import tomllib
from collections import Counter
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from ..base.cache import TOP
from ..base.errors import FAIL, PANIC, TIMEOUT, Error
from ..guest.boot import THREADS_ARCH

LIST = TOP / "tests/kernel/selftests/expected.toml"
# More tests that do not hold still than this, and the list would say nothing.
MOST_UNSTABLE = 5

# How a test's run can end, and what the command's exit code is then.
DONE, KILLED, HANG, SPLAT, PANICKED, GONE = "done", "limit", "hang", "splat", "panic", "gone"
CODES = {KILLED: TIMEOUT, HANG: TIMEOUT, SPLAT: FAIL, PANICKED: PANIC, GONE: FAIL}


@dataclass(frozen=True)
class Boot:
    """What tests want of their boot, which others do not share. The list says what each is."""

    threads: bool = False
    in_step: bool = False
    cpus: int | None = None
    slower: int = 0

    def options(self, arch):
        """For boot_guest()."""
        of_x86 = {"threads": self.threads, "slower": self.slower} if arch == THREADS_ARCH else {}
        return of_x86 | {"icount": "in step" if self.in_step else False} | ({"cpus": self.cpus} if self.cpus else {})


@dataclass(frozen=True)
class Known:
    """Subtests that are not simply ok, by a glob."""

    subtests: str = "*"
    count: int = 0
    without: str | None = None  # a symbol: so only in a kernel that lacks it
    with_: str | None = None  # a symbol: so only in a kernel that has it
    why: str = ""


@dataclass
class Test:
    """A test of the list."""

    name: str
    run: str
    paths: list
    seconds: int
    ok: int
    skip: list = field(default_factory=list)
    fail: list = field(default_factory=list)
    more: list = field(default_factory=list)
    unstable: list = field(default_factory=list)
    boot: Boot = Boot()
    before: str | None = None
    after: str | None = None
    quick: bool = False
    lasts: bool = False
    arch: str | None = None  # that alone has it
    longer: int = 0  # seconds beyond its limit

    def in_kernel(self, symbol):
        """Takes what depends on the kernel's configuration for what it is there. `symbol`: a symbol's value."""
        fine = [known for known in [*self.skip, *self.fail] if known.without and symbol(known.without)]
        self.ok += sum(known.count for known in fine + [known for known in self.more if symbol(known.with_)])
        self.skip, self.fail = ([known for known in some if known not in fine] for some in (self.skip, self.fail))
        self.more = []

    def last(self, seconds):
        """Makes a test that can last do so."""
        self.longer, self.run = seconds, f"{self.run} {seconds}"

    def limit(self, slower=1):
        """Its time limit in seconds, where tests take so much longer."""
        return self.seconds * slower + self.longer

    @property
    def program(self):
        return self.run.split()[0]

    def steady(self, result):
        """The run's subtests that hold still."""
        return Counter({case: n for case, n in result.cases.items()
                        if not any(fnmatchcase(case[0], known.subtests) for known in self.unstable)})


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
        return f"{self.count('ok')}" + (f"+{skipped}s" if skipped else "") + (f" {failed} not ok" if failed else "")


def known(row):
    return Known(**{"with_" if name == "with" else name: value for name, value in row.items()})


def parse(text):
    """The list's tests by name, and those left out with the reason."""
    name = None
    try:
        found = tomllib.loads(text)
        tests = {}
        for name, row in found.pop("test").items():
            lists = {kind: [known(entry) for entry in row.pop(kind, [])] for kind in ("skip", "fail", "more", "unstable")}
            tests[name] = Test(name=name, boot=Boot(**row.pop("boot", {})), **lists, **row)
            if not all(isinstance(number, int) for number in (tests[name].seconds, tests[name].ok)):
                raise TypeError("seconds and ok are numbers")
        out = found.pop("out", {})
        if found:
            raise TypeError(f"{min(found)} is no part of it")
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        where = f"{LIST.name}, {name}," if name else LIST.name
        raise Error(f"{where} is not understood ({error})", "see the head of that file") from None
    # Those of a program count once, also where it is run for another path again.
    if len({(t.program, known.subtests) for t in tests.values() for known in t.unstable}) > MOST_UNSTABLE:
        raise Error(f"{LIST.name} has more than {MOST_UNSTABLE} unstable tests", "mend one")
    return tests, out


def listed():
    """The tests of the committed list, by name."""
    return parse(LIST.read_text())[0]


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
    for status, listed in [("skip", k) for k in test.skip] + [("fail", k) for k in test.fail]:
        match = [case for case in left if case[1] == status and fnmatchcase(case[0], listed.subtests)]
        seen = sum(left.pop(case) for case in match)
        if seen != listed.count:
            found.append(f"{seen} subtests '{listed.subtests}' are '{status}', listed are {listed.count}")
    for status, words in (("fail", "not ok"), ("skip", "skipped, which is not listed")):
        names = [name for name, s in left if s == status]
        if names:
            found.append(f"{words}: {shortened(names)}")
    if ok != test.ok:
        found.append(f"{ok} subtests are ok, listed are {test.ok}")
    return found


def without_numbers(cases):
    """The same, where a name holds something that was measured."""
    return Counter((re.sub(r"\d+(\.\d+)?", "N", name), status) for name, status in cases.elements())


def differences(test, off, other):
    """How a mode's run differs from that of `off`."""
    if off.end != DONE or other.end != DONE:
        return []
    here, there = without_numbers(test.steady(other)), without_numbers(test.steady(off))
    differ = {name for name, _ in (here - there) + (there - here)}
    return [f"differs from off: {shortened(differ)}"] if differ else []
