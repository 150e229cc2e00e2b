# SPDX-License-Identifier: GPL-2.0
"""The guest with a Debian root filesystem: its disks, and booting it.

Four disks, all thrown away after a boot (QEMU's snapshot=on): the root filesystem, which is made once; the job's,
with init, modules and tests; an empty one, ext4 as these; and one to swap to, on which a write takes time.
"""

import hashlib
import os
import pathlib
import shutil

from ..base.cache import CACHE, TOP, alone, need_space
from ..base.errors import FAIL, Error
from ..base.process import run
from . import upstream
from .boot import boot, qemu_command
from .initrd import DONE, failure, filled, tree

IMAGES = CACHE / "build/guest"
SCRIPTS = TOP / "tests/kernel/guest"
SIZE = {"cpus": 2, "memory": 5120, "nodes": 2}
ROOT_MIB, JOB_MIB, SCRATCH_MIB, SLOW_MIB = 600, 128, 2048, 64

# The RAM disk is for swap, beside zram (init). Without 1 GiB pages, which some tests use where one happens to be
# free. The console is for the job's lines.
ARGUMENTS = "root=/dev/vda rw brd.rd_nr=1 brd.rd_size=262144 cma=160M log_buf_len=4M clearcpuid=pdpe1gb"
QUIET = "quiet loglevel=1"

SHELL = """
echo "modules in /modules, the kernel's selftests in /job/selftests, an empty disk in /scratch; 'exit' leaves"
echo "modes: echo off (page by page), c (the kernel's C) or rust >/sys/module/mm_batch/parameters/contig_free"
tty=/dev/$(sed 's/.* //' /sys/class/tty/console/active)
cd /root
export PS1='mm-batch:\\w# '
setsid -c bash -l <$tty >$tty 2>&1 || true
[ -n "$complaint" ] || ! complaint=$(complaint) || echo "mm_batch: the kernel complained: $complaint"
"""


def needed(program):
    """A program that makes disks: in PATH, or where only root has it there."""
    found = shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    if not found:
        raise Error(f"no {program}", "apt-get install e2fsprogs fakeroot, or MM_BATCH_TOOLS=cache")
    return found


def fakeroot():
    """What makes files seem root's: the cache's names its own parts."""
    root = os.environ.get("MM_BATCH_ROOT")
    if not root:
        return [needed("fakeroot"), "--"]
    library = next(pathlib.Path(root).glob("usr/lib/*/libfakeroot/libfakeroot-sysv.so"))
    return [f"{root}/usr/bin/fakeroot-sysv", "--lib", library, "--faked", f"{root}/usr/bin/faked-sysv", "--"]


def ext4(image, mib, folder=None):
    """Makes an ext4 image, with the folder's files as root's."""
    need_space(mib, "a disk of the guest")
    image.parent.mkdir(parents=True, exist_ok=True)
    part = image.with_name(image.name + ".part")
    part.unlink(missing_ok=True)
    run([*(fakeroot() if folder else []), needed("mke2fs"), "-q", "-F", "-t", "ext4", "-m", "0", "-E", "root_owner=0:0",
         *(["-d", folder] if folder else []), part, f"{mib}M"], image.with_suffix(".log"), f"making {image.name}")
    part.replace(image)
    return image


def root_image(arch):
    """The root filesystem's image: made again when its packages change."""
    root = tree(arch)
    inputs = f"{root.with_name(root.name + '.complete').read_text()} {ROOT_MIB}"
    key = hashlib.sha256(inputs.encode()).hexdigest()[:12]
    image = IMAGES / f"{arch}-{key}.ext4"
    if not image.exists():
        for old in IMAGES.glob(f"{arch}-*.ext4"):
            old.unlink()
        ext4(image, ROOT_MIB, root)
    return image


def scratch_image(mib=SCRATCH_MIB):
    image = IMAGES / f"scratch-{mib}.ext4"
    return image if image.exists() else ext4(image, mib)


def slow_image():
    image = IMAGES / f"slow-{SLOW_MIB}.img"
    if not image.exists():
        IMAGES.mkdir(parents=True, exist_ok=True)
        image.touch()
    os.truncate(image, SLOW_MIB << 20)
    return image


def job_image(folder, job, modules=(), folders=None, files=None):
    """The job's disk, in the folder: init runs `job`, in sh. `folders` and `files`: name -> where from."""
    root = filled(folder / "job", job, modules, SCRIPTS.iterdir())
    for name, source in (folders or {}).items():
        shutil.copytree(source, root / name)
    for name, content in (files or {}).items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(content)
    return ext4(folder / "job.ext4", JOB_MIB, root)


def disks(arch, job):
    with alone("guest"):
        return [root_image(arch), job, scratch_image(), slow_image()]


def modules_of(build):
    """The kernel's own modules; of the test modules, those that this configuration has."""
    return sorted(build.out.glob("lib/*.ko")) + sorted(build.out.glob("mm/*.ko"))


def shell_command(build, modules):
    """QEMU's command line for a guest with a prompt on this terminal."""
    folder = build.base.work / f"{build.out.name}-shell"
    job = job_image(folder, SHELL, modules, {"selftests": upstream.programs(build, tree(build.arch))})
    # Control keys are for the guest's shell, not for QEMU.
    return qemu_command(build, f"{ARGUMENTS} {QUIET}", None, icount=False, console="mon:stdio",
                        drives=disks(build.arch, job), **SIZE)


def boot_guest(build, job, arguments="", icount=False, **more):
    """Boots with the job's disk; a job that fails says why."""
    ended = boot(build, f"{ARGUMENTS} {QUIET} {arguments}", icount=icount,
                 drives=disks(build.arch, job), finished=f"^{DONE}", **(SIZE | more))
    if ended.code == FAIL:
        ended.why = failure(ended)[1]
    return ended
