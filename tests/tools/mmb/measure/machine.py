# SPDX-License-Identifier: GPL-2.0
"""mm-batch-measure: the rows in time, on the machine that has booted the kernel of `make deb`.

Python's standard library is enough. It comes with the programs of tests/kernel/workloads and, for each kernel, the
module mm_batch_bench. What it changes on the machine is in putback.py.
"""

import argparse
import os
import platform
import random
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from time import monotonic

from ..base.errors import FAIL, PASS, Error, chosen, say
from ..base.process import die_with_parent
from ..base.progress import minutes
from ..base.tables import number, text_table
from ..paths import PATHS
from . import timing
from .kept import cpu, keep
from .putback import (ZRAM, Changes, command, put_text, remove_folder, remove_group, remove_zram, swap_off, unload,
                      unload_all)

PROGRAM = "mm-batch-measure"
HERE = Path(__file__).resolve().parents[2]
MODES = Path("/sys/module/mm_batch/parameters")
BENCH = Path("/sys/module/mm_batch_bench/parameters/run")
CGROUPS = Path("/sys/fs/cgroup")
GROUP = CGROUPS / PROGRAM
THP = Path("/sys/kernel/mm/transparent_hugepage")
FILES = Path("/var/cache") / PROGRAM
SWAP_MIB, DISK_MIB, MEMORY_MIB = 256, 64, 768
# Before all else: a swap with a higher priority is used first.
FIRST = "32767"
# Of a run.
SECONDS = 60


class Failed(Exception):
    """A run that did not come to its end: why."""


def modes_of(row):
    return PATHS[row.path].modes("release")


def known():
    return [row for path in PATHS.values() for row in (*path.timed, *path.crowded)]


def pairs(words):
    return {name: float(value) for name, value in zip(words[::2], words[1::2])}


def program(name, *arguments):
    """What a workload prints."""
    try:
        done = subprocess.run([HERE / name, *arguments], capture_output=True, text=True, timeout=SECONDS,
                              preexec_fn=die_with_parent)
    except subprocess.TimeoutExpired:
        raise Failed(f"no end after {SECONDS} s") from None
    if done.returncode:
        raise Failed((done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1])
    return done.stdout.split()


def remote(*arguments, check=False):
    """Reclaim of another task's memory: what is counted, per page."""
    file = FILES / "file"
    try:
        found = pairs(program("remote", *arguments, str(file), str(GROUP), *(["check"] if check else [])))
    finally:
        # Or the next row that has the cgroup reclaim would find its page cache there, and reclaim that.
        file.unlink(missing_ok=True)
    pages = found.pop("pages")
    return {metric: value / pages for metric, value in found.items()}


def victim(mib, cpus, group=None, check=False):
    """Reclaim while other CPUs read: per page, and what they keep of their reads."""
    found = pairs(program("victim", mib, cpus, str(GROUP) if group else "pageout")[1:])
    return {"ns": found["ns"] / found["pages"], "interrupts": found["interrupts"] / found["pages"],
            "reads kept, %": 100 * found["meanwhile"] / found["alone"]}


def bench(*arguments, check=False):
    """Freeing, timed by the module: per page."""
    try:
        BENCH.write_text(" ".join(arguments))
    except OSError as error:
        raise Failed(f"the module does not run it: {error.strerror}") from None
    ns, pages = map(float, BENCH.read_text().split())
    return {"ns": ns / pages}


# By the first word of a row's command.
WORKLOADS = {"remote": remote, "victim": victim, "bench": bench}


def mode_of(path):
    return (MODES / path).read_text().strip()


def set_mode(path, mode):
    put_text(MODES / path, mode)
    if (now := mode_of(path)) != mode:
        raise Error(f"the mode of {path} is {now}, and not {mode}", "let nothing else set it meanwhile")


def run(row, mode, check):
    """One run of a row: metric -> value. Rows of other paths find this path's mode as it was."""
    before = mode_of(row.path)
    set_mode(row.path, mode)
    try:
        what, *arguments = row.command.split()
        return WORKLOADS[what](*arguments, check=check)
    finally:
        put_text(MODES / row.path, before)


def memory_mib():
    found = re.search(r"^MemAvailable:\s+(\d+) kB$", Path("/proc/meminfo").read_text(), re.M)
    return int(found[1]) >> 10


def refuse():
    """What is missing, before anything is changed."""
    release = platform.release()
    if not MODES.is_dir():
        raise Error(f"this kernel, {release}, has no mm_batch", "boot the one that make deb made: docs/build.md")
    if os.geteuid():
        raise Error("swap, a cgroup and the modes are root's to change", f"sudo {PROGRAM}")
    if not (CGROUPS / "cgroup.controllers").exists() or "memory" not in (CGROUPS / "cgroup.controllers").read_text():
        raise Error(f"{CGROUPS} has no memory controller of cgroup v2", "boot with systemd.unified_cgroup_hierarchy=1")
    if (have := memory_mib()) < MEMORY_MIB:
        raise Error(f"{MEMORY_MIB} MiB of memory must be available, and {have} are", "end some programs")
    if (have := shutil.disk_usage(FILES.parent).free >> 20) < SWAP_MIB + DISK_MIB:
        raise Error(f"{FILES.parent} needs {SWAP_MIB + DISK_MIB} MiB free, and has {have}", "free some")


def swap_to_zram(changes):
    if not ZRAM.exists():
        changes.about_to(unload_all, "zram")
        try:
            command("modprobe", "zram")
        except Error as error:
            raise Error(f"no zram ({error})", f"{PROGRAM} --swap=file") from None
    device = (ZRAM / "hot_add").read_text().strip()
    changes.about_to(remove_zram, device)
    put_text(f"/sys/block/zram{device}/disksize", f"{SWAP_MIB}M")
    swap_on(changes, f"/dev/zram{device}")


def swap_to_file(changes):
    file = FILES / "swap"
    with open(file, "wb") as out:
        file.chmod(0o600)
        os.posix_fallocate(out.fileno(), 0, SWAP_MIB << 20)
    swap_on(changes, str(file))


def swap_on(changes, where):
    command("mkswap", where)
    changes.about_to(swap_off, where)
    command("swapon", "-p", FIRST, where)


SWAPS = {"zram": swap_to_zram, "file": swap_to_file}


def prepare(changes, swap):
    """A folder, swap and a cgroup of our own; and all settings kept that workloads change."""
    changes.about_to(remove_folder, FILES)
    FILES.mkdir(mode=0o700, exist_ok=True)
    SWAPS[swap](changes)
    if "memory" not in (CGROUPS / "cgroup.subtree_control").read_text().split():
        changes.about_to(put_text, CGROUPS / "cgroup.subtree_control", "-memory")
        put_text(CGROUPS / "cgroup.subtree_control", "+memory")
    changes.about_to(remove_group, GROUP)
    GROUP.mkdir(exist_ok=True)
    # What is swapped out is to go to our swap.
    if (GROUP / "memory.zswap.max").exists():
        put_text(GROUP / "memory.zswap.max", "0")
    for setting in (*THP.glob("hugepages-*/enabled"), *THP.glob("hugepages-*/shmem_enabled"),
                    *(MODES / path for path in PATHS)):
        changes.keep(setting)
    # Folios of the size that a row wants, or it would fail now and then.
    changes.set(THP / "defrag", "always")
    # khugepaged would collapse the folios of a file, and unmap them before a row does: it is not to wake up.
    changes.set(THP / "khugepaged/scan_sleep_millisecs", str(2**32 - 1))


def load_bench(changes):
    """The module for rows that free pages in the kernel; without it they fail, and say so."""
    module = HERE / platform.release() / "mm_batch_bench.ko"
    if module.exists() and not BENCH.exists():
        changes.about_to(unload, module.stem)
        command("insmod", str(module))


class Runs:
    """The runs of all rows, and what became of each."""

    def __init__(self, rows):
        # In the order in which they were: metric -> (path, workload, mode, value).
        self.rows, self.values, self.left_out, self.done = rows, {}, {}, 0

    def one(self, row, mode, check):
        if row in self.left_out:
            return
        try:
            found = run(row, mode, check)
        except Failed as failed:
            self.left_out[row] = f"mode {mode}: {failed}"
            say(f"left out: {row.workload}, {self.left_out[row]}")
            return
        self.done += 1
        for metric, value in found.items():
            self.values.setdefault(metric, []).append((row.path, row.workload, mode, value))

    def all(self, passes, order, every=15):
        """The first pass reads back what it wrote, and does not count."""
        start = said = monotonic()
        for number_ in range(passes + 1):
            for row, mode in timing.one_pass(self.rows, modes_of, order):
                self.one(row, mode, check=number_ == 0)
                if monotonic() - said >= every:
                    said = monotonic()
                    left = (said - start) * (passes + 1 - number_) / max(number_, 0.5)
                    say(f"  pass {number_} of {passes}, {self.done} runs (about {minutes(left)} left)")

    def lines(self, metric="ns"):
        rows = [row for row in self.rows if row not in self.left_out]
        return timing.timed(rows, modes_of, self.values.get(metric, []))


def counted(runs):
    """The table of what is counted beside time: medians, per page unless their name says otherwise."""
    text = [["row", "counted", *timing.HEADS.values(), "off/Rust"]]
    lines = [(metric, line) for metric in runs.values if metric != "ns" for line in runs.lines(metric)]
    for metric, line in sorted(lines, key=lambda found: runs.rows.index(found[1].row)):
        off, _, rust = medians = [e and e.median for e in map(line.estimate, timing.HEADS)]
        text.append([line.row.workload, metric, *(number(value, 3) for value in medians),
                     number(off / rust if rust else None, 2)])
    return text


SAID = """
Nanoseconds per page in Linux {kernel}, on {cpu}: medians of {passes} passes, quotients of
runs in one pass with their 95 % interval; (I) improves, (R) is worse, for sure."""
VIRTUAL = """
This is a virtual machine: its times are not those of a machine, and say nothing of one where it is emulated."""


def described(data, runs):
    parts = [text_table(timing.table(runs.lines())) + SAID.format(**data), *([VIRTUAL] if data["virtual"] else [])]
    beside = counted(runs)
    parts += ["", text_table(beside)] if len(beside) > 1 else []
    parts += [] if "cycles" in runs.values else ["", "Not there: perf's counters of cycles, instructions and misses."]
    return "\n".join([*parts, *(f"left out: {row.workload}, {why}" for row, why in runs.left_out.items())])


def first_line(file):
    """A setting that figures may depend on; None where there is none."""
    try:
        return Path(file).read_text().splitlines()[0]
    except (OSError, IndexError):
        return None


def results(runs, swap, passes):
    metrics = [(metric, line) for metric in runs.values for line in runs.lines(metric)]
    return {
        "schema": 1, "kernel": platform.release(), "version": platform.version(), "cpu": cpu(), "cpus": os.cpu_count(),
        "virtual": bool(re.search(r"^flags\s*:.*\bhypervisor\b", Path("/proc/cpuinfo").read_text(), re.M)),
        "memory_mib": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20, "swap": swap, "passes": passes,
        "governor": first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "lru_gen": first_line("/sys/kernel/mm/lru_gen/enabled"), "command_line": first_line("/proc/cmdline"),
        # Of what a row does not set.
        "modes": {path: mode_of(path) for path in PATHS},
        "results": [entry for metric, line in metrics for entry in timing.entries(line, metric)],
        "ratios": [entry for line in runs.lines() for entry in timing.quotients(line)],
        "left_out": {row.workload: why for row, why in runs.left_out.items()},
    }


def whose(folder):
    """What root wrote is the user's who called sudo."""
    if user := os.environ.get("SUDO_UID"):
        for path in (folder, *folder.iterdir()):
            os.chown(path, int(user), int(os.environ["SUDO_GID"]))


def measure(args):
    refuse()
    runs = Runs(chosen(args.row, "--row", "row", known(), lambda row: row.workload, re.search))
    with Changes() as changes:
        prepare(changes, args.swap)
        load_bench(changes)
        say(f"{len(runs.rows)} rows, each in its modes, {args.passes} passes; ^C ends it and puts all back")
        runs.all(args.passes, random.Random())
    if not runs.lines():
        raise Error("no row came to its end", "see above")
    data = results(runs, args.swap, args.passes)
    text = described(data, runs)
    print(text)
    names = keep(args.out, data, text)
    whose(args.out)
    say(f"written: {args.out}/: {', '.join(names)}"
        + ("" if "times.svg" in names else "; a plot wants python3-matplotlib"))
    return PASS


def passes(text):
    if not text.isdecimal() or not timing.AT_LEAST <= int(text) <= 1000:
        raise argparse.ArgumentTypeError(f"{text} is no number of passes: give {timing.AT_LEAST} to 1000")
    return int(text)


def main():
    parser = argparse.ArgumentParser(prog=PROGRAM, description="measures mm_batch on this machine; needs root")
    parser.add_argument("--row", help="some rows, by an extended regular expression")
    parser.add_argument("--passes", type=passes, default=20, help="how often each row is run (%(default)s)")
    parser.add_argument("--swap", choices=SWAPS, default="zram", help="what is swapped to (%(default)s)")
    parser.add_argument("--out", type=Path, default=Path(f"{PROGRAM}-{platform.release()}"),
                        help="a folder (%(default)s)")
    parser.add_argument("--list", action="store_true", help="prints the rows, and measures nothing")
    args = parser.parse_args()
    if args.list:
        rows = [[row.workload, row.path, " ".join(modes_of(row))] for row in known()]
        print(text_table([["row", "path", "modes"], *rows]))
        return PASS
    for number_ in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number_, signal.default_int_handler)
    try:
        return measure(args)
    except Error as error:
        say(f"error: {error}")
        return FAIL
    except OSError as error:
        say(f"error: {error}: run it again, and see dmesg if that stays")
        return FAIL
    except KeyboardInterrupt:
        say("interrupted: all is as it was")
        return 130


if __name__ == "__main__":
    sys.exit(main())
