# SPDX-License-Identifier: GPL-2.0
"""The kernel after each patch of the series: built, booted, and what it leaves behind when it is off.

A tree of its own takes each state in turn, and its build folder builds what changed.
"""

import hashlib
import json
import re
import shutil
import subprocess
from types import SimpleNamespace

from ..base.cache import write_atomically
from ..base.errors import FAIL, PASS, Error
from ..base.process import run
from ..base.progress import known, objects_built
from ..kernel.kbuild import CONFIG, tool_versions
from ..kernel.tree import put_back
from ..guest import initrd
from ..guest.boot import boot
from ..suites import kunit
from ..suites.ktap import verdict

UP = "cat /sys/module/mm_batch/parameters/* 2>/dev/null\n"


class States:
    """A repository's commits, as states of a tree."""

    def __init__(self, build, git):
        self.build, self.git = build, git
        self.commits = ["base", *git("rev-list", "--reverse", "base..HEAD").split()]
        self.last = len(self.commits) - 1
        self.names = git("diff", "--name-only", "base", "HEAD").split()
        self.stamp = build.base.work / f"{build.out.name}-states.json"
        self.passed = known(self.stamp)
        self.new_symbols = None  # of Kconfig, by the series
        self.tools = tool_versions()

    def enter(self, index):
        """Gives the tree the content that it has after so many patches."""
        self.git("checkout", "-q", self.commits[index])
        put_back(self.git.folder, self.build.tree, self.names)

    def fragments(self, index, what):
        """What a state is configured by: a small kernel, but for the last, and for what is compared with that."""
        small = index < self.last and what != "off"
        return self.build.fragments() + ((CONFIG / "states.config").read_text() if small else "")

    def key(self, index, what):
        """Changes with anything that decides what is built."""
        parts = [what, self.build.arch, self.build.base.version, self.fragments(index, what), self.tools,
                 self.git("rev-parse", f"{self.commits[index]}^{{tree}}")]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    def is_done(self, index, what):
        """Whether it has passed, or what does more."""
        return any(self.key(index, one) in self.passed for one in (what, "booted" if what == "built" else what))

    def mark(self, index, what):
        self.passed[self.key(index, what)] = True
        write_atomically(self.stamp, json.dumps(self.passed, indent=1))

    def configure(self, index, on=True, what="booted"):
        """Configures a state, with or without what the series adds. Only what it adds later may be dropped."""
        text = self.fragments(index, what)
        if not on:
            text = re.sub(r"^CONFIG_\w*MM_BATCH\w*=.*$", "", text, flags=re.M) + "# CONFIG_MM_BATCH is not set\n"
        dropped = set(self.build.kconfig(text))
        if index == 0:
            self.new_symbols = dropped
            return
        later = self.new_symbols if on and index < self.last else set()
        if bad := dropped - later:
            raise Error(f"the configuration dropped {', '.join(sorted(bad))} after patch {index}",
                        "see what the patch does to Kconfig")

    def make(self, *targets):
        log = self.build.base.work / f"{self.build.out.name}-states.log"
        run(self.build.command(*targets), log, "building " + " ".join(targets), on_line=objects_built())

    def compile(self, index, whole=False, on=True, what="booted"):
        """Builds a state, the image or only what the series is about: code and a line."""
        self.enter(index)
        self.configure(index, on, what)
        self.make(*([self.build.image.name] if whole else ["mm/", "rust/"]))
        return PASS, "mm/ and rust/ built"

    def boot(self, index):
        """Builds a state; returns what boots it to init with its KUnit suites on: code and a line."""
        self.compile(index, whole=True)
        folder = self.build.base.work / "series-boot"
        archive = initrd.archive(folder, UP)
        kernel = self.kept(index, folder)
        tested = self.build.symbol("CONFIG_MM_BATCH_KUNIT_TEST") == "y"
        return lambda: self.booted(kernel, archive, folder / f"{index:04}.log", tested)

    def kept(self, index, folder):
        """The kernel that was built, as boot() takes it, while the next state is built."""
        kernel = SimpleNamespace(arch=self.build.arch, flavour=self.build.flavour, image=folder / f"{index:04}.image")
        shutil.copy2(self.build.image, kernel.image)
        return kernel

    def booted(self, kernel, archive, log, tested):
        ended = boot(kernel, f"kunit.enable=1 kunit.autorun=1 kunit.filter_glob=mm_batch* {kunit.needs(self.build)}",
                     initrd=archive, icount=False, timeout=300, log=log, finished=initrd.ENDED)
        kernel.image.unlink()
        if failed := initrd.failure(ended):
            return failed[0], f"{failed[1]} (console: {log})"
        if not tested:
            return PASS, "booted"
        code, line = verdict(self.build.tree, log)
        return code, f"booted, KUnit: {line}" + ("" if code == PASS else f" (console: {log})")

    def off(self):
        """What the whole series without its option has of what it adds with it: code and a line."""
        found = []
        for index, on in (self.last, True), (self.last, False), (0, True):
            self.compile(index, whole=True, on=on, what="off")
            found.append(self.symbols())
        plain = self.added_by_plain_patches()
        return left_over(*found, lambda symbol: symbol.partition(".")[0] in plain or self.named_by_base(symbol))

    def added_by_plain_patches(self):
        """The words of what patches add that know nothing of mm_batch: fixes and refactoring, always there."""
        words = set()
        for commit in self.commits[1:]:
            added = "\n".join(re.findall(r"^\+.*", self.git("show", "--format=", commit), re.M))
            if "mm_batch" not in added:
                words |= {re.sub(r"\d+", "N", word) for word in re.findall(r"\w+", added)}
        return words

    def named_by_base(self, symbol):
        """Whether the base's headers, or what of it the series touches, has it: a function of the kernel's own, which
        the compiler now puts out of line."""
        tree = self.build.base.tree
        folders = [tree / "include", *tree.glob("arch/*/include")]
        touched = [tree / name for name in self.names if (tree / name).exists()]
        command = ["grep", "-rqwF", "--include=*.[ch]", "-e", symbol, *folders, *touched]
        return subprocess.run(command).returncode == 0

    def symbols(self):
        """The names in page_alloc.o and vmlinux, without the numbers that compilers add."""
        found = {}
        for name in ("mm/page_alloc.o", "vmlinux"):
            listed = subprocess.run(["llvm-nm", "--format=just-symbols", self.build.out / name],
                                    capture_output=True, text=True, check=True).stdout
            found[name] = sorted({re.sub(r"\d+", "N", symbol) for symbol in listed.split()})
        return found


def left_over(on, off, unpatched, is_kernels):
    """What a kernel without the option has of the series: code and a line. Each maps a file to its symbols."""
    ours = {name: set(on[name]) - set(unpatched[name]) for name in on}
    new = {s for name in off for s in set(off[name]) - set(unpatched[name])}
    more = sorted(s for s in new if not is_kernels(s))
    if not all(ours.values()):
        return FAIL, "the series adds no symbol where it is on: nothing was compared"
    if more:
        return FAIL, f"{len(more)} symbols left: {', '.join(more[:5])}"
    return PASS, ", ".join(f"{name}: 0 of {len(ours[name])} symbols" for name in sorted(ours))
