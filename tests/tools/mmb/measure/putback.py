# SPDX-License-Identifier: GPL-2.0
"""What mm-batch-measure changes on a machine, and how each change is taken back.

How to take a change back is written to a list in /run before it is made. The end of a run goes through that list, and
so does the start of the next one, if a run was killed.
"""

import fcntl
import json
import os
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from ..base.cache import write_atomically
from ..base.errors import Error, say

FOLDER = Path("/run/mm-batch-measure")
ZRAM = Path("/sys/class/zram-control")


def command(*words):
    """Runs a program, which may be where only root has it in PATH."""
    path = f"{os.environ.get('PATH', '/usr/bin')}:/usr/sbin:/sbin"
    try:
        done = subprocess.run(words, env=os.environ | {"PATH": path}, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True)
    except FileNotFoundError:
        raise Error(f"no {words[0]} here", "install the package that has it") from None
    if done.returncode:
        why = (done.stderr.splitlines() or [f"exit code {done.returncode}"])[0]
        raise Error(f"{' '.join(words)} failed ({why})", "see dmesg")
    return done.stdout


def put_text(file, text):
    Path(file).write_text(text)


def swap_off(device):
    if any(line.split()[0] == device for line in Path("/proc/swaps").read_text().splitlines()[1:]):
        command("swapoff", device)


def remove_zram(number):
    if Path(f"/sys/block/zram{number}").exists():
        put_text(f"/sys/block/zram{number}/reset", "1")
        put_text(ZRAM / "hot_remove", number)


def unload(module):
    """One that was loaded by its file."""
    if Path(f"/sys/module/{module}").exists():
        command("rmmod", module)


def unload_all(module):
    """One of the kernel's, and what came with it."""
    if Path(f"/sys/module/{module}").exists():
        command("modprobe", "-r", module)


def remove_folder(folder):
    if Path(folder).exists():
        shutil.rmtree(folder)


def remove_group(folder):
    """A cgroup, and what runs in it."""
    group = Path(folder)
    for left in range(50, -1, -1):
        if not group.exists():
            return
        put_text(group / "cgroup.kill", "1")
        # What was killed takes its time to go.
        try:
            group.rmdir()
        except OSError:
            if not left:
                raise
            time.sleep(0.1)


UNDO = {what.__name__: what for what in (put_text, swap_off, remove_zram, unload, unload_all, remove_folder,
                                         remove_group)}
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Changes:
    """The changes of a run, which are taken back when it ends, however that is."""

    def __init__(self, folder=FOLDER):
        self.folder, self.list, self.done = folder, folder / "changes.json", []

    def __enter__(self):
        self.folder.mkdir(mode=0o700, exist_ok=True)
        self.lock = open(self.folder / "lock", "w")
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.lock.close()
            raise Error("another mm-batch-measure is running", "wait until it ends") from None
        if self.list.exists():
            say("an earlier run was killed: what it changed is put back")
            self.done = json.loads(self.list.read_text())
            self.put_back()
        return self

    def __exit__(self, *_):
        # A second ^C is not to leave half of it.
        before = {number: signal.signal(number, signal.SIG_IGN) for number in ENDING}
        try:
            self.put_back()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            self.lock.close()

    def about_to(self, undo, *arguments):
        """Says how the change is taken back that is made next. Taking back what was not made does nothing."""
        self.done.append([undo.__name__, *map(str, arguments)])
        self.write()

    def keep(self, file):
        """The file of a setting, which is about to be changed by somebody."""
        text = Path(file).read_text().strip()
        # Of several, "always [madvise] never" has the one that is set in brackets.
        self.about_to(put_text, file, text.split("[")[1].split("]")[0] if "[" in text else text)

    def set(self, file, text):
        self.keep(file)
        Path(file).write_text(text)

    def write(self):
        if self.done:
            write_atomically(self.list, json.dumps(self.done))
        else:
            self.list.unlink(missing_ok=True)

    def put_back(self):
        """The last change first. What cannot be taken back stays on the list, for the next run."""
        stays = []
        for name, *arguments in reversed(self.done):
            try:
                UNDO[name](*arguments)
            except (OSError, Error) as error:
                say(f"not put back: {error}")
                stays.insert(0, [name, *arguments])
        self.done = stays
        with suppress(FileNotFoundError):
            self.write()
        if stays:
            raise Error(f"{len(stays)} of the machine's settings could not be put back",
                        "see above, and run it again, which tries once more")
