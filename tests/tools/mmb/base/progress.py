# SPDX-License-Identifier: GPL-2.0
"""What is being done, and about how long is left."""

import json
import re
import time

from .cache import CACHE, alone, write_atomically
from .errors import say


def known(file):
    try:
        return json.loads(file.read_text())
    except (OSError, ValueError):
        return {}


class Steps:
    """What is being done: {name: seconds, if it was not done before}. How long each took is the next run's estimate."""

    def __init__(self, what, steps):
        self.file, self.name, self.since = CACHE / "times.json", None, 0.0
        before = known(self.file)
        self.left = {name: before.get(name, seconds) for name, seconds in steps.items()}
        say(f"{what}: about {minutes(sum(self.left.values()))} in all")

    def start(self, name, text):
        self.done()
        self.name, self.since = name, time.monotonic()
        say(f"{text} (about {minutes(sum(self.left.values()))} left)")

    def progress(self, part, text):
        # The pace so far counts more than the last run, which may have had less to do; but not at first, when a build
        # may have all it needs but for a few objects.
        pace = (time.monotonic() - self.since) / part if part >= 0.1 else 0
        estimate = self.left[self.name]
        rest = max(pace, estimate) * (1 - part) + sum(self.left.values()) - estimate
        say(f"  {text} (about {minutes(rest)} left)")

    def skip(self, name):
        self.left.pop(name, None)

    def done(self):
        if self.name:
            took = {self.name: round(time.monotonic() - self.since, 1)}
            # Read again: another command may have ended a step meanwhile.
            with alone(self.file.name):
                write_atomically(self.file, json.dumps(known(self.file) | took, indent=1, sort_keys=True))
            self.left.pop(self.name)
            self.name = None


def objects_built(steps=None, of=0, every=60):
    """For run(): counts what a build makes, and says so now and then; with the time that is left, where it is a step
    that makes about so many.
    """
    made, said = 0, time.monotonic()

    def count(line):
        nonlocal made, said
        made += bool(re.match(r"  (CC|RUSTC|AS|LD|AR|HOSTCC)\b", line))
        if time.monotonic() - said >= every:
            said = time.monotonic()
            if steps:
                steps.progress(min(made / of, 0.98), f"{made} of about {of} objects")
            else:
                say(f"  {made} objects so far")

    return count


def minutes(seconds):
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
