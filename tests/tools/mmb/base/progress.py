# SPDX-License-Identifier: GPL-2.0
"""What is being done, and about how long is left."""

import json
import re
import time

from .cache import CACHE, write_atomically
from .errors import say


def known(file):
    """The seconds that steps took when they were last done, by name."""
    try:
        return json.loads(file.read_text())
    except (OSError, ValueError):
        return {}


class Steps:
    """What is being done, and about how long is left.

    Each step's duration is remembered and is the next run's estimate.
    """

    def __init__(self, what, steps):
        self.file = CACHE / "times.json"
        self.known = known(self.file)
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
            took = {self.name: round(time.monotonic() - self.since, 1)}
            # Read again: another command may have ended a step meanwhile.
            write_atomically(self.file, json.dumps(known(self.file) | took, indent=1, sort_keys=True))
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
