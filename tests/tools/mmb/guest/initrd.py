# SPDX-License-Identifier: GPL-2.0
"""The small user space of a boot: busybox, our modules, and a job for its shell."""

import os
import pathlib
import platform
import re
import shutil
import subprocess

from ..base.cache import TOP, brought
from ..base.errors import FAIL, PASS, Error
from . import splats

DEBIAN = {"x86_64": "amd64", "arm64": "arm64"}
# Whose programs User Mode Linux runs.
PROGRAMS = {"um": "x86_64"}
DONE = "mm_batch: job done"
FAILED = "mm_batch: job failed"
ENDED = f"^{DONE}|^{FAILED}"

INIT = """#!/bin/busybox sh
/bin/busybox mkdir -p /proc /sys /dev /tmp /usr/bin /sbin
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mount -t debugfs debugfs /sys/kernel/debug
export PATH=/bin:/usr/bin
. /lib.sh
. /job
workload=
no_complaint
echo "{done}"
poweroff -f
"""


def tree(arch):
    """The root filesystem's folder, which is also what programs for the guest are built against."""
    return pathlib.Path(brought("guest", DEBIAN[arch]))


def busybox(arch):
    """A static busybox of the guest's architecture."""
    root = os.environ.get("MM_BATCH_ROOT")
    if arch != platform.machine():
        root = tree(arch)
    found = f"{root}/usr/bin/busybox" if root else shutil.which("busybox")
    if not found or not os.path.exists(found):
        raise Error("no busybox", "apt-get install busybox-static, or MM_BATCH_TOOLS=cache")
    return pathlib.Path(found).resolve()


def failure(ended):
    """Why a boot ended without its job being done: a code, and what the job said of it or what became of the guest; or
    None.
    """
    said = next((line for line in ended.lines if line.startswith(FAILED)), None)
    if ended.code == PASS and not said and any(line.startswith(DONE) for line in ended.lines):
        return None
    return ended.code or FAIL, said or ended.why


def with_libraries(arch, program):
    """A program of the guest's packages, and what its loader would open for it: (where in the guest, the file)."""
    root = tree(arch)
    libraries = f"{root}/usr/lib/{arch}-linux-gnu"
    binary = root / "usr/bin" / program
    loader, = root.glob("usr/lib64/ld-linux-*.so.*")
    listed = subprocess.run([loader, "--library-path", libraries, "--list", binary], capture_output=True, text=True)
    lost = re.findall(r"^\s*(\S+) => not found", listed.stdout, re.M)
    if listed.returncode or lost:
        raise Error(f"{program} lacks {', '.join(lost) or 'a loader'}",
                    f"remove {root}, and run the same command again")
    found = {pathlib.Path(name) for name in re.findall(rf"=> ({re.escape(libraries)}/\S+)", listed.stdout)}
    return [(pathlib.PurePath("lib64") / loader.name, loader),
            *((file.relative_to(root), file) for file in [binary, *sorted(found)])]


def filled(root, job, modules=(), files=()):
    """An empty folder with what each guest has: a job, our modules, what a kernel complains of; and files."""
    shutil.rmtree(root, ignore_errors=True)
    (root / "modules").mkdir(parents=True)
    (root / "job").write_text(job)
    (root / "splats").write_text(splats.for_grep())
    for source in files:
        shutil.copy(source, root)
    for module in modules:
        shutil.copy(module, root / "modules")
    return root


def archive(folder, job, modules=(), files=(), arch="x86_64", debian=()):
    """A cpio archive with `job` as what init runs, in the folder, which is made. `debian`: programs of packages."""
    arch = PROGRAMS.get(arch, arch)
    root = filled(folder / "root", job, modules, [TOP / "tests/kernel/lib.sh", *files])
    (root / "init").write_text(INIT.format(done=DONE))
    (root / "init").chmod(0o755)
    for name, source in [("bin/busybox", busybox(arch)), *(found for program in debian
                                                          for found in with_libraries(arch, program))]:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, root / name)
    names = sorted(str(p.relative_to(root)) for p in root.rglob("*"))
    cpio = folder / "initrd.cpio"
    with open(cpio, "wb") as out:
        made = subprocess.run(["cpio", "--quiet", "-o", "-H", "newc", "-R", "0:0"], cwd=root,
                              input="\n".join(names).encode(), stdout=out, stderr=subprocess.PIPE)
    if made.returncode:
        raise Error(f"cpio failed ({made.stderr.decode().strip()})", "check the disk's free space")
    return cpio
