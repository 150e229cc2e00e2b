# SPDX-License-Identifier: GPL-2.0
"""What a path is to the tools: what paths/<path>.py declares, once, and all tools take from there."""

from __future__ import annotations  # Python 3.9, on the machine of whoever measures

import os
from dataclasses import dataclass, field, fields, replace

from ..base.cache import TOP

WORKLOADS = TOP / "tests/kernel/workloads"
# What reclaim's rows map; 80 % of it are reclaimed. The seed's workload is RECLAIM_MIB=10240.
MIB = 32
# What MADV_PAGEOUT's rows map. The seed's program has 256.
ANON_MIB = 64
# What each worker of stress-ng maps. The seed's 16 have this.
STRESS_MIB = 128
# When a run of stress-ng ends: so many pages were stolen.
STOLEN = {"short": 25_000, "full": 250_000}


def mib():
    return int(os.environ.get("RECLAIM_MIB") or MIB)


def stress_mib():
    return int(os.environ.get("STRESS_MIB") or STRESS_MIB)


@dataclass(frozen=True)
class Limits:
    """A limit in each configuration; None: the row is shown there without one. Each must be stated."""

    release: float | None
    distro: float | None
    noinline: float | None
    better_c: float | None


CONFIGURATIONS = [f.name for f in fields(Limits)]
NONE = Limits(release=None, distro=None, noinline=None, better_c=None)


def everywhere(limit):
    """The same in each configuration."""
    return Limits(**dict.fromkeys(CONFIGURATIONS, limit))


@dataclass(frozen=True)
class Boot:
    """A kind of boot that rows run in: its workload, and what its guest has. What is mapped must fit."""

    name: str
    script: str  # of tests/kernel/workloads: makes the guest ready, and defines the rows' commands
    cpus: int = 1
    disk: bool = False  # for what is mapped
    loops: bool = True  # rows have loops; else only more parts make a run longer
    reader: str | None = None  # the kernel's function that times a row; None: a module of ours
    call: str | None = None  # the kernel's function that a row is one call of, by a system call that user space times
    profiled: bool = True  # `make profile` can tell when a row is timed
    threads: bool = False  # of the host, one for each CPU: its rows count, as no clock is exact then
    workers: int = 0  # of stress-ng, which map memory
    debian: tuple = ()  # programs of the guest's packages, which come with their libraries
    arguments: str = ""  # of the command line, beyond what all have
    seconds: float | None = None  # of a short run; None: by what is mapped

    def commands(self):
        stress = f"stress_mib={self.workers * stress_mib()}\n" if self.workers else ""
        return f"mib={mib()}\n{stress}{(WORKLOADS / self.script).read_text()}"

    def maps(self):
        """MiB that a row maps, if it is more than any guest has room for."""
        return max(mib() if self.disk else 0, self.workers * stress_mib())


@dataclass(frozen=True)
class Counter:
    """A metric of a row that counts, in the modes off and rust. Limits are for medians."""

    metric: str
    at_most: Limits = NONE  # Rust's
    # What of it goes from off to Rust, in % of off's, at least: for SCALE=full, as a short run is no measure.
    less: Limits = NONE
    aim: float | None = None  # the same
    # Rust/off at most. What is within off's own runs is not above, nor what is below `least`, of which too few happen.
    not_above: Limits = NONE
    least: float = 0
    full_only: bool = False  # above is judged with SCALE=full alone


@dataclass(frozen=True)
class Row:
    """A row of the evaluation: what is run, how often, and what it must reach."""

    workload: str
    command: str  # in the guest; {loops}, {mib}, {anon_mib} or {stolen} is replaced
    metric: str  # what the table shows
    unit: str  # of what it is a quotient
    boot: Boot
    limits: Limits  # Rust/C at most, plus the row's noise
    gains: Limits = NONE  # off/Rust at least
    more_gains: dict = field(default_factory=dict, hash=False)  # the same of one of `more`, by its name
    not_above: Limits = NONE  # Rust/off at most: a row that the path does little or nothing for
    x86_alone: bool = False  # not_above is of x86_64, where one CPU that flushes for itself owes nothing
    slack: Limits = NONE  # beyond C by so many instructions per unit, it is within `limits` in any case
    loops: int = 1  # of one part of a short run
    aim: float | None = None
    published: str | None = None
    more: tuple = ()  # metrics that are written down with it
    counters: tuple = ()  # of a row that counts: what limits there are; the first is its metric, then `more`
    after: str | None = None  # a command in the guest, behind all runs, for what is said beside
    full_only: bool = False  # it takes too long for a short run
    path: str = ""  # whose it is; Path says it

    @property
    def counts(self):
        """Whether it counts events, instead of instructions."""
        return bool(self.counters)

    def filled(self, command, scale, longer=1):
        loops = self.loops * (longer if self.boot.loops else 1)
        return command.format(loops=loops, mib=mib(), anon_mib=ANON_MIB, stolen=STOLEN[scale])

    def command_for(self, scale, longer=1):
        return self.filled(self.command, scale, longer)

    def parts(self, longer=1):
        return 4 if self.boot.loops else 2 * longer

    def seconds(self, scale):
        """Of a run, about."""
        mapped = 1 if self.boot.loops else max(1, mib() / MIB)
        longer = scale == "full" and (self.full_only or "{stolen}" in self.command)
        return (4 if longer else 0.8) * (self.boot.seconds or mapped)


@dataclass(frozen=True)
class TimedRow:
    """A row in time: of `make time`, in User Mode Linux, and of mm-batch-measure, on a machine."""

    workload: str
    command: str  # in the guest, which sets $value to nanoseconds per page
    boot: Boot
    counted: str | None = None  # the evaluation's row whose instructions are shown beside
    metric: str | None = None  # of that row; None: its own
    pages: int = 1  # that it is the sum of
    gain: float | None = None  # off/Rust at least, in User Mode Linux
    path: str = ""  # whose it is; Path says it


@dataclass(frozen=True)
class KunitBoot:
    """A boot with KUnit: what its command line turns on, and which suites it runs."""

    name: str
    flavour: str  # of the kernel; uml: User Mode Linux
    arguments: str = ""
    on: frozenset = frozenset()  # conditions of cases, see Path.conditions
    cpus: int = 1  # some suites count exactly, which no other CPU may disturb
    only: str = "mm_batch*"  # a glob of suites
    late: bool = False  # they are started from debugfs, once a guest has swap and all that
    symbol: str | None = None  # of Kconfig, without which there is nothing to turn on, and no boot


# Reclaim of memory that is mapped and used in a cgroup, metered around try_to_unmap().
RECLAIM = Boot("reclaim", "reclaim.sh", disk=True, loops=False, reader="mm_batch_meter_unmap")
# Rust/off at most, of pages that a hundred tasks map or more.
MANY_TASKS = everywhere(1.02)
# Reclaim of another task's memory.
REMOTE = Boot("remote", "remote.sh", loops=False)
# What its rows map: what comes before and behind the call takes ten times as long.
REMOTE_MIB = 16


def remote(workload, kind, kib, content="data", how="pageout", counted=None, **kw):
    return TimedRow(workload, f"remote {kind} {kib} {REMOTE_MIB} {content} {how}", REMOTE, counted=counted, **kw)


def counting(workload, command, unit, boot, counters, **kw):
    first, *others = (counter.metric for counter in counters)
    return Row(workload, command, first, unit, boot, NONE, more=tuple(others), counters=tuple(counters), **kw)


@dataclass(frozen=True)
class Path:
    """One path. Its patches are in patches/<name>/, its selftests in tests/kernel/selftests/."""

    name: str
    about: str  # what the report says of its rows; {mib} is what is mapped, {c} what mode c is
    rows: tuple
    suites: tuple  # of KUnit, at boot and once more from debugfs
    suites_late: tuple = ()  # from debugfs alone, as they need what a guest sets up
    boot_needs: str = ""  # of the command line, where its suites and selftests run; {large} is a large folio's size
    conditions: dict = field(default_factory=dict)  # suite.case -> what a boot must turn on, or it is skipped
    thp_swap: tuple = ()  # globs of suite.case: skipped by a kernel without CONFIG_THP_SWAP, as arm64 with pages of 16K
    kunit_boots: tuple = ()
    timed: tuple = ()
    crowded: tuple = ()  # timed rows for a machine of its own: User Mode Linux has one CPU
    uml_lacks: tuple = ()  # suites that User Mode Linux does not have, and as suite.case what it skips in any boot
    # What mode c is. None: there is none, and setting it is EINVAL.
    c: str | None = "the kernel's batch as 7.3 has it"
    # What mode c is with CONFIG=better_c: a twin, by patches of its own. None: as everywhere else.
    twin: str | None = None

    def __post_init__(self):
        for name in ("rows", "timed", "crowded"):
            object.__setattr__(self, name, tuple(replace(row, path=self.name) for row in getattr(self, name)))

    def what_c_is(self, config):
        """What mode c is in a configuration, or None."""
        return self.twin if config == "better_c" and self.twin else self.c

    def modes(self, config):
        """Its modes in a configuration, in the order of a table's columns."""
        return ("off", "c", "rust") if self.what_c_is(config) else ("off", "rust")

    def head(self, config):
        """The name of mode c's column."""
        return "twin" if config == "better_c" and self.twin else "C"
