# SPDX-License-Identifier: GPL-2.0
"""Where things are, how an error reads, how long is left."""

import ctypes
import fcntl
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

TOP = pathlib.Path(__file__).resolve().parents[3]
CACHE = pathlib.Path(os.environ.get("MM_BATCH_CACHE") or pathlib.Path.home() / ".cache/mm_batch")
TOOLS = TOP / "tests/tools"

PASS, FAIL, TIMEOUT, PANIC = 0, 1, 2, 255


class Error(Exception):
    """An error the user can mend: what, and how."""

    def __init__(self, cause, mend, code=FAIL):
        super().__init__(f"{cause}: {mend}")
        self.code = code


def say(text):
    print(f"mm_batch: {text}", file=sys.stderr, flush=True)


def brought(*what):
    """What tests/tools/bring prints of a set, fetched if it is not there. It has said what went wrong."""
    done = subprocess.run([TOOLS / "bring", *what], stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit(done.returncode)
    return done.stdout.strip()


def need_space(mib, what):
    CACHE.mkdir(parents=True, exist_ok=True)
    have = shutil.disk_usage(CACHE).free >> 20
    if have < mib:
        raise Error(f"{what} needs {mib} MiB free in {CACHE}, which has {have}",
                    "free some, or set MM_BATCH_CACHE= to a larger disk")


def lock():
    """One command at a time builds and boots; the lock ends with this process."""
    CACHE.mkdir(parents=True, exist_ok=True)
    held = open(CACHE / "build.lock", "w")
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise Error(f"another mm_batch command is building in {CACHE}",
                    "wait until it ends, or set MM_BATCH_CACHE= to another folder") from None
    return held


def die_with_parent():
    """In a child: end when the parent is killed, so that nothing runs on unseen."""
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGTERM)


def write_atomically(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    part.write_text(text)
    part.replace(path)


def run(command, log, what, cwd=None, env=None, on_line=None):
    """Runs a command into a log. A failure is one line with the log's first error."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with open(log, "w") as out:
        child = subprocess.Popen([str(c) for c in command], cwd=cwd, env=env, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                 errors="replace", preexec_fn=die_with_parent)
        with child.stdout:
            for line in child.stdout:
                out.write(line)
                if on_line:
                    on_line(line)
        code = child.wait()
    if code:
        lines = log.read_text(errors="replace").splitlines()
        error = next((l for l in lines if re.search(r"error[:\[]|\*\*\*", l)), lines[-1] if lines else "no output")
        raise Error(f"{what} failed ({error.strip()[:160]})", f"see {log}")


class Steps:
    """What is being done, and about how long is left.

    Each step's duration is remembered and is the next run's estimate.
    """

    def __init__(self, what, steps):
        self.file = CACHE / "times.json"
        try:
            self.known = json.loads(self.file.read_text())
        except (OSError, ValueError):
            self.known = {}
        self.left = dict(steps)  # name -> seconds if nothing better is known
        self.name = None
        self.since = 0.0
        say(f"{what}: about {minutes(self.seconds_left())} in all")

    def estimate(self, name):
        return self.known.get(name, self.left[name])

    def seconds_left(self):
        return sum(self.estimate(name) for name in self.left)

    def start(self, name, text):
        self.done()
        self.name, self.since = name, time.monotonic()
        say(f"{text} (about {minutes(self.seconds_left())} left)")

    def progress(self, part, text):
        # The pace so far counts more than the last run, which may have had less to do.
        pace = (time.monotonic() - self.since) / part
        rest = max(pace, self.estimate(self.name)) * (1 - part) + sum(
            self.estimate(n) for n in self.left if n != self.name)
        say(f"  {text} (about {minutes(rest)} left)")

    def skip(self, name):
        """It need not be done."""
        self.left.pop(name, None)

    def done(self):
        if self.name:
            self.known[self.name] = round(time.monotonic() - self.since, 1)
            write_atomically(self.file, json.dumps(self.known, indent=1, sort_keys=True))
            self.left.pop(self.name)
            self.name = None


def objects_built(every=60):
    """For run(): counts what a build makes, and says so now and then."""
    made, said = 0, time.monotonic()

    def count(line):
        nonlocal made, said
        made += bool(re.match(r"  (CC|RUSTC|AS|LD|AR|HOSTCC)\b", line))
        if time.monotonic() - said >= every:
            said = time.monotonic()
            say(f"  {made} objects so far")

    return count


def minutes(seconds):
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
