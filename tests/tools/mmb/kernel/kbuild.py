# SPDX-License-Identifier: GPL-2.0
"""Configuring and building the staged tree."""

import hashlib
import os
import re
import shutil
import subprocess
import sys

from ..base.cache import CACHE, TOP, need_space, write_atomically
from ..base.errors import Error
from ..base.process import run
from ..base.progress import Steps, objects_built
from .tree import BETTER_C, changed, hold, metered, planted, stage, timed

CONFIG = TOP / "tests/kernel/config"
IMAGES = {"x86_64": "arch/x86/boot/bzImage", "arm64": "arch/arm64/boot/Image", "um": "linux"}
# Configurations beside the release one: the compiler of each. A distribution's kernel is built by gcc, which the tools
# have as cc; the rest of the toolchain, and what runs on the host, stays LLVM's.
NAMED = {"distro": "cc", "noinline": "clang", BETTER_C: "clang"}
LACKS = "the kernel lacks a dependency of it, or the toolchain does; see make doctor"
OBJECTS = 2000  # of a first build, for its progress


# What no module may reach: the batches' way to page tables and rmap. Where helpers are not inlined, rust/exports.c
# exports those of rust/helpers/.
OURS_IN_C = re.compile(r"^0x[0-9a-f]+\t(rust_helper_mm_batch_\w+)\t", re.M)


# The same sources make the same image, whenever and wherever they are built.
REPRODUCIBLE = ["KBUILD_BUILD_TIMESTAMP=Thu Jan  1 00:00:00 UTC 2026", "KBUILD_BUILD_VERSION=1", "KBUILD_BUILD_USER=mm",
                "KBUILD_BUILD_HOST=batch"]


def cached(compiler):
    """A compiler that is asked once for what is the same in several builds: mostly all that is C."""
    return f"ccache {compiler}" if shutil.which("ccache") else compiler


def make_command(tree, out, arch):
    return ["make", "-C", tree, "LLVM=1", f"ARCH={arch}", f"O={out}", f"-j{os.cpu_count()}", *REPRODUCIBLE]


def tool_versions():
    tools = ["rustc", "-vV"], ["clang", "--version"], ["cc", "--version"], ["bindgen", "--version"]
    return "".join(subprocess.run(tool, capture_output=True, text=True, check=True).stdout for tool in tools)


def exported(symvers):
    """Our helpers that a kernel exports, by its Module.symvers."""
    text = symvers.read_text() if symvers.exists() else ""
    if not re.search(r"^0x[0-9a-f]+\t\w+\t", text, re.M):
        raise Error(f"{symvers} has no symbol", "run the same command again; the build may have been killed")
    return OURS_IN_C.findall(text)


def flavour():
    """The kernel to build: "release", or "debug" with DEBUG=1."""
    return "debug" if os.environ.get("DEBUG") == "1" else "release"


def settings(text):
    """Symbol -> value, of a fragment or a .config."""
    return dict(re.findall(r"^(CONFIG_\w+)=(.*)$", text, re.M))


def without(text):
    """The symbols that a fragment, in which the last mention counts, wants not to be set."""
    last = dict(re.findall(r"^(?:# )?(CONFIG_\w+)(=.*| is not set)$", text, re.M))
    return [name for name, how in last.items() if not how.startswith("=")]


def named_config():
    """The file of CONFIG=, which is added to the release configuration, or None."""
    name = os.environ.get("CONFIG")
    return CONFIG / f"{name}.config" if name else None


def folder_name(arch, flavour):
    """Beside each other, for to compare two is what they are for."""
    extra = os.environ.get("EXTRA_CONFIG")
    parts = [arch, flavour, os.environ.get("CONFIG"), extra and hashlib.sha256(extra.encode()).hexdigest()[:8],
             metered() and "meter", planted() and "planted",
             timed() and "timed"]
    return "-".join(filter(None, parts))


class Build:
    """One configuration of one architecture. Flavours are release, debug, and clippy and series (as release)."""

    def __init__(self, base, tree, arch, flavour="release"):
        self.base, self.tree, self.arch, self.flavour = base, tree, arch, flavour
        self.named = named_config().stem if named_config() else flavour
        self.compiler, self.variables = NAMED.get(self.named, "clang"), []
        # Within the tree, kbuild gives the compiler paths that are relative: so are those of every other tree.
        self.out = tree / folder_name(arch, flavour)
        self.log = base.work / f"{self.out.name}.log"

    @property
    def image(self):
        return self.out / IMAGES[self.arch]

    def command(self, *targets):
        return [*make_command(self.tree, self.out, self.arch), f"CC={cached(self.compiler)}", *self.variables, *targets]

    def fragments(self):
        names = ["common", self.arch, self.flavour == "debug" and "debug", os.environ.get("CONFIG")]
        more = ["CONFIG_MM_BATCH_METER=y"] if metered() else []
        more += filter(None, os.environ.get("EXTRA_CONFIG", "").split(","))
        return "".join((CONFIG / f"{name}.config").read_text() for name in names if name) + "".join(
            f"{line}\n" for line in more)

    def configure(self):
        """Sets .config, and proves that nothing asked for was dropped."""
        text = self.fragments()
        self.out.mkdir(parents=True, exist_ok=True)
        stamp = self.out / "mm_batch.configured"
        kconfigs = ("mm/mm_batch/Kconfig", "mm/Kconfig", "mm/Kconfig.debug", "lib/Kconfig.debug")
        key = text + self.compiler + "".join((self.tree / name).read_text() for name in kconfigs)
        key += self.base.config.read_text() if self.base.config else ""
        if stamp.exists() and stamp.read_text() == key and (self.out / ".config").exists():
            return
        if missing := self.kconfig(text):
            raise Error(f"the configuration dropped {', '.join(missing)}", LACKS)
        if self.compiler == "cc" and not self.symbol("CONFIG_CC_IS_GCC"):
            raise Error("cc is no gcc, by which a distribution builds its kernel", "MM_BATCH_TOOLS=cache has one")
        if anyway := [s for s in without(text) if self.symbol(s)]:
            raise Error(f"the configuration has {', '.join(anyway)}, which is not to be set",
                        "something selects it: correct the fragments in tests/kernel/config")
        write_atomically(stamp, key)

    def kconfig(self, text):
        """Makes .config of a fragment; returns what the fragment asks for and Kconfig dropped."""
        (self.out / "mm_batch.configured").unlink(missing_ok=True)
        fragment = self.out / "mm_batch.config"
        write_atomically(fragment, text)
        if self.base.config:
            (self.out / ".config").write_text(self.base.config.read_text() + text)
            run(self.command("olddefconfig"), self.log, "configuring")
        else:
            run(self.command("allnoconfig"), self.log, "configuring",
                env=os.environ | {"KCONFIG_ALLCONFIG": str(fragment)})
        got = settings((self.out / ".config").read_text())
        refused = re.findall(r"^(?:# )?(CONFIG_\w+)(?: is not set|=n)$", text, re.M)
        return [symbol for symbol in settings(text) if symbol not in got and symbol not in refused]

    def key(self):
        """Changes with anything that decides what is built."""
        digest = hashlib.sha256(repr((self.base.version, self.fragments(), self.compiler, REPRODUCIBLE)).encode())
        digest.update(tool_versions().encode())
        for name in sorted(changed(self.tree)):
            digest.update(f"\0{name}\0".encode() + (self.tree / name).read_bytes())
        return digest.hexdigest()

    def build(self, steps=None):
        """Builds what is not built yet, and has it stay so until this process ends."""
        lock, stamp, key = hold(self.out), self.out / "mm_batch.built", self.key()
        # A user's tree may have changed anywhere.
        if self.image.exists() and stamp.exists() and stamp.read_text() == key and not self.base.users:
            return
        with lock:
            stamp.unlink(missing_ok=True)
            self.make(steps)
            write_atomically(stamp, key)

    def make(self, steps):
        need_space(4000, "a kernel build")
        self.configure()
        target = os.path.basename(IMAGES[self.arch])
        run(self.command(target, "modules"), self.log, "building the kernel",
            on_line=objects_built(steps, OBJECTS))
        if bad := exported(self.out / "Module.symvers"):
            raise Error(f"the kernel exports {', '.join(bad[:3])} to modules ({len(bad)} of our helpers)",
                        "keep them out of what rust/exports.c exports")

    def clippy(self):
        """What clippy, run as the kernel runs it, and the object say against our crate.

        In a build of its own: the flag rebuilds all Rust.
        """
        hold(self.out).alone()
        self.configure()
        crate = self.out / "mm/mm_batch/mm_batch.o"
        crate.unlink(missing_ok=True)
        run(self.command("CLIPPY=1", "mm/mm_batch/"), self.log, "clippy")
        found = re.findall(r"^warning: .*(?:\n.*){0,3}", self.log.read_text(), re.M)
        wants = subprocess.run(["llvm-nm", "-u", crate], capture_output=True, text=True, check=True).stdout
        return found + [f"a panicking path: {s}" for s in wants.split() if "panic" in s]

    def symbol(self, name):
        """The value of a configuration symbol, or None."""
        return settings((self.out / ".config").read_text()).get(name)

    def toolchain(self):
        def version(*command):
            out = subprocess.run(command, capture_output=True, text=True).stdout
            return re.search(r"\d+\.\d+\.\d+", out).group(0)

        return {
            "rustc": version("rustc", "--version"),
            "clang": version("clang", "--version"),
            "gcc": version("cc", "--version") if self.symbol("CONFIG_CC_IS_GCC") == "y" else None,
            "llvm_match": self.symbol("CONFIG_RUSTC_CLANG_LLVM_COMPATIBLE") == "y",
            "inline_helpers": self.symbol("CONFIG_RUST_INLINE_HELPERS") == "y",
        }


class Uml(Build):
    """The kernel as a process of the host, configured by kunit.py and mm/mm_batch/.kunitconfig, as its users do it."""

    def __init__(self, base, tree):
        super().__init__(base, tree, "um")
        # ld.lld does not link it: .dynamic would be apart from what else is made read-only. clang, which calls the
        # linker, fails where it is told of one and need not call it.
        self.variables = ["LD=ld.bfd"]
        self.compiler += " --start-no-unused-arguments -fuse-ld=bfd --end-no-unused-arguments"

    def fragments(self):
        """What is given, and what stack traces need there, as page_owner does; the rest is in the tree."""
        return ",".join(filter(None, ["CONFIG_FRAME_POINTER=y", os.environ.get("EXTRA_CONFIG")]))

    def configure(self):
        command = [sys.executable, "tools/testing/kunit/kunit.py", "config", "--kunitconfig=mm/mm_batch",
                   f"--build_dir={self.out}", *(f"--kconfig_add={line}" for line in self.fragments().split(",")),
                   *(f"--make_options={option}" for option in ("LLVM=1", f"CC={self.compiler}", *self.variables))]
        try:
            run(command, self.log, "configuring", cwd=self.tree)
        except Error:
            if dropped := re.search(r"^Missing: (.*)$", self.log.read_text(), re.M):
                raise Error(f"the configuration dropped {dropped[1]}", LACKS) from None
            raise

    def make(self, steps):
        need_space(1000, "a build of User Mode Linux")
        self.configure()
        # Kconfig may have changed, and kunit.py asks for what its file asks for alone.
        run(self.command("olddefconfig", "linux"), self.log, "building User Mode Linux", on_line=objects_built())


class TimedUml(Uml):
    """The same, but to be measured: configured by our fragment, and with modules."""

    def fragments(self):
        return (CONFIG / "um.config").read_text()

    def configure(self):
        if self.base.config:
            raise Error("KDIR= has the configuration of a machine, and this is a process", "give it as KSRC=")
        Build.configure(self)

    def make(self, steps):
        need_space(1000, "a build of User Mode Linux")
        self.configure()
        run(self.command("linux", "modules"), self.log, "building User Mode Linux", on_line=objects_built())


def staged_build(arch, what, more=None):
    """The staged tree, built: what every verb that boots begins with. And the steps that are left."""
    kind = flavour()
    first = not list(CACHE.glob(f"build/*/linux*/{folder_name(arch, kind)}/{IMAGES[arch]}"))
    stage_step, build_step = (f"{arch} {kind} {'first ' if first else ''}{name}" for name in ("stage", "build"))
    guess = {"release": 600, "debug": 1200}[kind]
    steps = Steps(what, {stage_step: 60 if first else 5, build_step: guess if first else 30} | (more or {}))
    steps.start(stage_step, "the kernel source and the series")
    base, tree = stage()
    build = (TimedUml if timed() else Uml)(base, tree) if arch == "um" else Build(base, tree, arch, kind)
    # What it leaves is beside the build, by its name.
    hold(base.work / f"{build.out.name}-{what}").alone()
    steps.start(build_step, f"building the {kind} kernel")
    build.build(steps)
    return build, steps
