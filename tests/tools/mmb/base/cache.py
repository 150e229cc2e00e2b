# SPDX-License-Identifier: GPL-2.0
"""Where things are, and who may use them."""

import fcntl
import os
import pathlib
import shutil
import subprocess
from contextlib import contextmanager

from .errors import Error

TOP = pathlib.Path(__file__).resolve().parents[4]
CACHE = pathlib.Path(os.environ.get("MM_BATCH_CACHE") or pathlib.Path.home() / ".cache/mm_batch")
BRING = TOP / "tests/tools/fetch/bring"


def brought(*what):
    """What tests/tools/fetch/bring prints of a set, fetched if it is not there. It has said what went wrong."""
    done = subprocess.run([BRING, *what], stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit(done.returncode)
    return done.stdout.strip()


def need_space(mib, what):
    CACHE.mkdir(parents=True, exist_ok=True)
    have = shutil.disk_usage(CACHE).free >> 20
    if have < mib:
        raise Error(f"{what} needs {mib} MiB free in {CACHE}, which has {have}",
                    "free some, or set MM_BATCH_CACHE= to a larger disk")


def lock_file(name):
    file = CACHE / "locks" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    return open(file, "w")


class Lock:
    """Who uses a part of the cache. Users share it; who changes it must be alone. It ends with this process."""

    def __init__(self, name):
        self.name, self.file = name, lock_file(name)
        self.take(fcntl.LOCK_SH)

    def take(self, how):
        try:
            fcntl.flock(self.file, how | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Error(f"another mm_batch command uses {self.name} in {CACHE}",
                        "wait until it ends, or set MM_BATCH_CACHE= to another folder") from None

    def alone(self):
        """Until this process ends, or it is shared again."""
        self.take(fcntl.LOCK_EX)

    def __enter__(self):
        self.alone()

    def __exit__(self, *_):
        self.take(fcntl.LOCK_SH)


@contextmanager
def alone(name):
    """For what takes seconds: whoever comes second waits."""
    with lock_file(name) as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


def write_atomically(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    part.write_text(text)
    part.replace(path)
