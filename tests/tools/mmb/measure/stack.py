# SPDX-License-Identifier: GPL-2.0
"""How much stack reclaim has in use where it waits for the disk, and where it holds a page table lock: of the kernel
that is measured, by its code.

A frame is what a function pushes and subtracts; return addresses are not in it. What counts is the deepest chain of
calls from shrink_folio_list() among functions of a batch. Calls by pointer are not seen, but for the one of rmap walks.
"""

import re
import subprocess
from collections import defaultdict

from ..base.errors import Error
from ..paths.model import Limits

FROM = "shrink_folio_list"
FOLLOWED = re.compile(r"(shrink_|mm_batch_|ttu_folios_|try_to_unmap_folios|_*rmap_walk)\w*(\.\w+)*$"
                      r"|_R\w*8mm_batch|swap_writeout$")
WALKS, BY_POINTER = re.compile("_*rmap_walk"), "try_to_unmap_folios_one"
# What is said of it -> what is called then.
TO = {"to_write": "swap_writeout", "to_clear": "ttu_folios_clear"}
# gcc's frames are larger in all of reclaim, with or without batches.
AT_MOST = {"to_write": Limits(release=900, distro=None, noinline=900, better_c=900)}

HEAD = re.compile(r"[0-9a-f]+ <(\S+)>:$")
PUSHED = re.compile(r"\tpushq?\s+(\S+)")
TAKEN = re.compile(r"\t(?:subq?\s+\$|addq?\s+\$-)(\w+), %rsp")
CALLED = re.compile(r"\t(?:call|jmp)\w*\s.*<([^+>]+)>")


def parsed(lines):
    """Of a disassembly: function -> its frame, and function -> what it calls."""
    pushed, taken, calls, function = defaultdict(set), defaultdict(int), defaultdict(set), None
    for line in lines:
        if found := HEAD.match(line):
            function = found[1]
            calls.setdefault(function, set())
        elif found := PUSHED.search(line):
            # What is pushed in two branches is so once.
            pushed[function].add(found[1])
        elif found := TAKEN.search(line):
            taken[function] = max(taken[function], int(found[1], 0))
        elif found := CALLED.search(line):
            calls[function].add(found[1])
    for function, called in calls.items():
        if WALKS.match(function):
            called.add(BY_POINTER)
    return {function: 8 * len(pushed[function]) + taken[function] for function in calls}, calls


def deepest(frames, calls, function, to, path=()):
    """What is on the stack, from a function on, when `to` is called; None if it never is."""
    found = [0] if to in calls[function] else []
    found += [below for called in calls[function] if called in frames and called not in (to, function, *path)
              and (below := deepest(frames, calls, called, to, (*path, function))) is not None]
    return frames[function] + max(found) if found else None


def said_by(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def stack(build):
    """Bytes, by what is said of them: of shrink_folio_list() itself, and of the chains. None but on x86_64."""
    if build.arch != "x86_64":
        return None
    image = build.out / "vmlinux"
    chosen = ",".join(sorted(filter(FOLLOWED.match, set(said_by("llvm-nm", "--format=just-symbols", image)))))
    frames, calls = parsed(said_by("llvm-objdump", "-d", "--no-show-raw-insn", f"--disassemble-symbols={chosen}", image))
    if FROM not in frames:
        raise Error(f"the kernel has no {FROM}()", "mmb/measure/stack.py has to follow what mm/vmscan.c has")
    found = {what: deepest(frames, calls, FROM, to) for what, to in TO.items()}
    if lost := [TO[what] for what, value in found.items() if value is None]:
        raise Error(f"no chain of calls from {FROM}() to {', '.join(lost)}()",
                    "mmb/measure/stack.py has to follow what mm/vmscan.c has")
    return {FROM: frames[FROM], **found}


def said(found):
    return (f"Stack, with the meter: {FROM}() has a frame of {found[FROM]} bytes; from it on {found['to_write']} are "
            f"in use when {TO['to_write']}() is called, and {found['to_clear']} when {TO['to_clear']}() is.")


def problems(found, config):
    for what, limits in AT_MOST.items():
        if (limit := getattr(limits, config)) and found and found[what] > limit:
            yield f"stack: {found[what]} bytes from {FROM}() to {TO[what]}() are above {limit}"
