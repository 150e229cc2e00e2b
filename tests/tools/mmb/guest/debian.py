# SPDX-License-Identifier: GPL-2.0
"""Booting a disk that has a system of its own, with UEFI and GRUB, as a machine does: it may reboot as it likes."""

import pathlib

from ..base.errors import PASS, Error, say
from ..base.progress import minutes
from .boot import accelerator, emulator, followed
from .initrd import DONE, ENDED, FAILED, failure

# What make prove-deb leaves in a folder.
DISK, FIRMWARE, PACKAGES, CONSOLE = "disk.img", "firmware.fd", "packages.tar", "console"
# Until the next line of its job. Emulated, dpkg makes an initrd in some minutes.
SECONDS = 1800
# For what a kernel prints behind a panic; then it would reboot.
LAST_WORDS = 5


def qemu(folder):
    """The command line. Nothing is kept in the firmware: GRUB is where it looks without that. Packages, once there are
    some, are another disk.
    """
    drives = [folder / DISK, *folder.glob(PACKAGES)]
    return [emulator("x86_64", threads=True), "-M", "q35", "-cpu", "max", "-smp", "4", "-m", "3072",
            *accelerator(icount=False, threads=True), "-nodefaults", "-display", "none", "-serial", "stdio",
            "-bios", str(folder / FIRMWARE),
            *(word for drive in drives for word in ("-drive", f"file={drive},if=virtio,format=raw,cache=unsafe"))]


def job_line(line):
    """Says what the job says, which shows that it goes on: seconds for the next."""
    if "Kernel panic - not syncing" in line:
        return LAST_WORDS
    if not line.startswith("mm_batch: ") or line.startswith((DONE, FAILED)):
        return None
    say(f"  {line.removeprefix('mm_batch: ')}")
    return SECONDS


def follow(name):
    """Boots the disk of a folder until its job is done."""
    folder = pathlib.Path(name)
    say(f"booting it; it is given up {minutes(SECONDS)} after its last line")
    ended = followed(qemu(folder), SECONDS, folder / CONSOLE, ENDED, job_line)
    if failed := failure(ended):
        raise Error(failed[1], f"the console is in {folder / CONSOLE}", failed[0])
    return PASS
