# SPDX-License-Identifier: GPL-2.0
"""The kernel's own selftests, built for the guest out of the staged tree."""

import hashlib
import os
import re
import shutil

from ..base.cache import alone, write_atomically
from ..base.errors import Error
from ..base.process import run
from ..kernel.kbuild import make_command

TARGETS = ["mm", "cgroup"]
# Built like a selftest, though it is none.
TOOL = "tools/mm/thp_swap_allocator_test.c"
TRIPLES = {"x86_64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}
# What the tests are built from.
INPUTS = ["include/uapi", "arch/{arch}/include/uapi", "tools/include", "tools/testing/selftests/lib.mk",
          "tools/testing/selftests/Makefile", "tools/testing/selftests/kselftest*.h", "mm/gup_test.h", TOOL,
          *(f"tools/testing/selftests/{name}" for name in (*TARGETS, "clone3", "pidfd"))]
# What their build leaves in the tree.
LEFT = ["local_config.h_gen", "local_config.mk"]


def compiler(arch, sysroot):
    # Tests fill memory that nothing reads; clang knows malloc and would leave both out.
    return ["clang", "--no-default-config", f"--target={TRIPLES[arch]}", f"--sysroot={sysroot}", "-fuse-ld=lld",
            "-fno-builtin-malloc"]


def key_of(tree, arch, command, sysroot):
    """A hash of all that the build reads."""
    digest = hashlib.sha256(repr(command).encode())
    digest.update(sysroot.with_name(sysroot.name + ".complete").read_bytes())
    for pattern in INPUTS:
        for top in sorted(tree.glob(pattern.format(arch="x86" if arch == "x86_64" else arch))):
            for path in sorted(p for p in top.rglob("*") if p.is_file()) if top.is_dir() else [top]:
                if path.name not in LEFT:
                    digest.update(f"{path.relative_to(tree)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def failed(log):
    """Names of programs that did not build."""
    return sorted(set(re.findall(r"\*\*\* \[.*/kselftest/(\S+)\] Error", log.read_text(errors="replace"))))


def programs(build, sysroot, wanted=()):
    """The folder with the tests, an entry per target; built against the sysroot when any input changed.

    A program of `wanted` (mm/cow) that is not there afterwards is an error.
    """
    with alone(f"{build.arch}-selftests"):
        return built(build, build.base.work / f"{build.arch}-selftests", sysroot, wanted)


def built(build, out, sysroot, wanted):
    installed, stamp, log = out / "installed", out / "key", out / "build.log"
    compile_ = compiler(build.arch, sysroot)
    key = key_of(build.tree, build.arch, compile_, sysroot)
    if not stamp.exists() or stamp.read_text() != key:
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True)
        # The answers of the last probe, which may have been of another system.
        for name in LEFT:
            (build.tree / "tools/testing/selftests/mm" / name).unlink(missing_ok=True)
        run(make_command(build.tree, out, build.arch) + ["headers"], out / "headers.log",
            "making the kernel's headers")
        # Not page_frag, a module, which none of our paths sees. Every program is tried.
        command = ["make", "-k", "-C", build.tree / "tools/testing/selftests", f"O={out}", f"ARCH={build.arch}",
                   f"CC={' '.join(map(str, compile_))}", f"TARGETS={' '.join(TARGETS)}", "KDIR=/nowhere",
                   f"KSFT_INSTALL_PATH={out}/part", f"-j{os.cpu_count()}", "install"]
        run(command, log, "building the kernel's selftests")
        (out / "part/tools").mkdir()
        run([*compile_, "-O2", "-o", out / "part/tools/thp_swap_allocator_test", build.tree / TOOL],
            out / "tools.log", f"building {TOOL}")
        (out / "part").replace(installed)
        write_atomically(stamp, key)
    missing = sorted({*failed(log)} | {name for name in wanted if not (installed / name).exists()})
    if missing:
        raise Error(f"of the kernel's selftests, these were not built: {', '.join(missing)}", f"see {log}")
    return installed
