# SPDX-License-Identifier: GPL-2.0
"""make same-source: the kernel and user space compiled the same files, by what their builds say they read.

kbuild keeps what rustc read in mm/mm_batch/.mm_batch.o.cmd, cargo in the .d file beside the crate. Each file
there is hashed, and must be older than the build that read it.
"""

import hashlib
import json
import pathlib
import re

from ..base.cache import TOP
from ..base.errors import FAIL, PASS, Error

# What only a kernel has: the side of the crate that calls C.
KERNEL_ONLY = re.compile(r"^glue(\.rs$|/)")


def read(what, dependencies, paths, root, mend):
    """The files of a crate that a build read: name below the crate's folder -> SHA-256."""
    built = dependencies.stat().st_mtime_ns
    for path in paths:
        if not path.exists():
            raise Error(f"{what} read {path}, which is gone", mend)
        if path.stat().st_mtime_ns > built:
            raise Error(f"{path} is newer than what {what} made of it", mend)
    if not paths:
        raise Error(f"{dependencies} names no file of {root}", mend)
    return {str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def kernel_read(tree, out):
    """By the kernel build: kbuild's list of what mm_batch.o depends on."""
    root, dependencies = tree.resolve() / "mm/mm_batch", out / "mm/mm_batch/.mm_batch.o.cmd"
    if not dependencies.exists():
        raise Error("no kernel is built", "make kernel")
    names = re.findall(r"(\S*mm/mm_batch/\S+\.rs)\b", dependencies.read_text())
    return read("the kernel", dependencies, {(out / name).resolve() for name in names}, root, "make kernel")


def cargo_artifact(messages, root):
    """Where cargo has built the crate, by its messages: the dependency file."""
    for line in messages:
        message = json.loads(line)
        if message.get("reason") == "compiler-artifact" and message["target"]["src_path"].startswith(str(root)):
            # lib<name>-<hash>.rmeta, of which rustc says what it read in <name>-<hash>.d.
            file = next(pathlib.Path(f) for f in message["filenames"] if f.endswith(".rmeta"))
            return file.with_name(file.stem.removeprefix("lib") + ".d")
    raise Error("cargo says of no crate where it is", "tests/tools/same-source runs it")


def user_read(what, root, dependencies, top):
    """By cargo: rustc's list of what the crate depends on, in paths from the workspace."""
    first = dependencies.read_text().split("\n", 1)[0].partition(": ")[2]
    paths = [top / name for name in first.split() if name.endswith(".rs")]
    return read(what, dependencies, [path for path in paths if path.is_relative_to(root)], root, "make test")


def compare(reads):
    """One list of what builds read, of which the first is the kernel's: (code, lines)."""
    code, lines = PASS, []
    kernel, *users = reads
    for name in sorted(set().union(*reads.values())):
        found = {what: hashes.get(name) for what, hashes in reads.items()}
        absent = [what for what in found if not found[what]]
        if len(set(found.values())) == 1:
            state = "the same in " + ", ".join(found)
        elif KERNEL_ONLY.match(name) and absent == users:
            state = "kernel only"
        else:
            code = FAIL
            state = f"MISSING in {', '.join(absent)}" if absent else "DIFFERENT: " + ", ".join(
                f"{value[:12]} in {what}" for what, value in found.items())
        lines.append(f"{found[kernel] or 64 * '-'}  {name:<32} {state}")
    if not any("the same" in line for line in lines):
        return FAIL, [*lines, "no file is in all of them"]
    return code, lines


def same_source(build, messages):
    """The verb: `messages` are cargo's, of each build in user space."""
    root, reads = TOP / "rust/mm_batch", {"the kernel": kernel_read(build.tree, build.out)}
    for what, file in (pair.split("=", 1) for pair in messages):
        reads[what] = user_read(what, root, cargo_artifact(pathlib.Path(file).read_text().splitlines(), root), TOP)
    code, lines = compare(reads)
    print("\n".join(lines))
    print(f"same-source: {'what both compile is the same' if code == PASS else 'the builds differ'}")
    return code
