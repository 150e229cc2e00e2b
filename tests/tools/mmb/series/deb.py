# SPDX-License-Identifier: GPL-2.0
"""make deb: the patched kernel as a Debian package, by the reader's own configuration, and what measures it as another.

The kernel's own scripts/package/builddeb fills the package's folder. What bindeb-pkg puts around it, debhelper and a
source package, is not needed for that.
"""

import copy
import os
import pathlib
import platform
import re
import shutil
import subprocess

from ..base.cache import TOP, brought, need_space
from ..base.errors import PASS, Error, say
from ..base.modules import ROOT, closure
from ..base.process import run
from ..base.progress import Steps, objects_built
from ..kernel.kbuild import Build, flavour, named_config, settings
from ..kernel.tree import stage
from ..guest import payload
from ..guest.initrd import DEBIAN

OUT = TOP / "out/deb"
DATA = TOP / "tests/kernel/machine"
LOCALVERSION = "-mmbatch"
MEASURE = "mm-batch-measure"
OBJECTS = 12000  # of a distribution's configuration
TRIMMED_OBJECTS = 4000
LOADED = pathlib.Path("/proc/modules")
# What mm-batch-measure swaps to, and may not be loaded yet.
KEPT = "drivers/block/zram"
# What the reader's configuration is given. No symbol versions: they would want debugging information for Rust, and the
# modules are of one build. No keys: the distribution's are not here.
SETTINGS = """CONFIG_EXPERT=y
CONFIG_RUST=y
CONFIG_RUST_INLINE_HELPERS=y
CONFIG_MM_BATCH=y
# CONFIG_MODVERSIONS is not set
# CONFIG_MODULE_SIG_FORCE is not set
# CONFIG_MODULE_SIG_ALL is not set
CONFIG_MODULE_SIG_KEY=""
CONFIG_SYSTEM_TRUSTED_KEYS=""
CONFIG_SYSTEM_REVOCATION_KEYS=""
# CONFIG_MODULE_COMPRESS is not set
CONFIG_LOCALVERSION=""
# CONFIG_LOCALVERSION_AUTO is not set
"""
# Types for BPF are made of debugging information, by pahole, from this version on also where there is Rust. Nothing
# else of it is in the package.
PAHOLE = (1, 24)
NO_DEBUG_INFO = "# CONFIG_DEBUG_INFO_BTF is not set\nCONFIG_DEBUG_INFO_NONE=y\n"
# What CONFIG_RUST does not go with, and may be in a configuration.
REFUSES = {"CONFIG_RANDSTRUCT_FULL": "RANDSTRUCT_FULL", "CONFIG_RANDSTRUCT_PERFORMANCE": "RANDSTRUCT_PERFORMANCE",
           "CONFIG_GCC_PLUGIN_RANDSTRUCT": "GCC_PLUGIN_RANDSTRUCT", "CONFIG_LTO_CLANG": "LTO_CLANG with DEBUG_INFO_BTF"}

KERNEL_CONTROL = """Package: {package}
Version: {version}
Architecture: {arch}
Maintainer: mm_batch developers <mm_batch@localhost>
Section: kernel
Priority: optional
Recommends: initramfs-tools | linux-initramfs-tool
Description: Linux {release}, with the batching paths of mm_batch
 It is installed beside the kernels that are there, one of which stays the
 default. All paths are in it, and no mode is another than Linux {kernel}'s.
"""
MEASURE_CONTROL = """Package: {package}
Version: {version}
Architecture: {arch}
Maintainer: mm_batch developers <mm_batch@localhost>
Section: kernel
Priority: optional
Depends: python3 (>= 3.9), util-linux, kmod
Suggests: python3-matplotlib
Description: measures mm_batch on a machine that has booted it
 The command mm-batch-measure times reclaim and freeing in each mode, and says
 what is better or worse for sure.
"""
# -I would leave PYTHONPATH out, by which the modules are found.
LAUNCHER = f"""#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
PYTHONPATH=/usr/lib/{MEASURE} PYTHONDONTWRITEBYTECODE=1 exec /usr/bin/python3 -s -m mmb.measure.machine "$@"
"""


def readers_config():
    """KCONFIG=, or what the machine's own kernel was built with, or Debian's."""
    if given := os.environ.get("KCONFIG"):
        return pathlib.Path(given).expanduser()
    own = pathlib.Path(f"/boot/config-{platform.release()}")
    return own if own.is_file() else pathlib.Path(brought("config"))


def asked(arch):
    """The configuration, if it is one."""
    if arch != "x86_64":
        raise Error("make deb is of x86_64", "leave ARCH= out, or build it by hand: docs/build.md")
    if named_config() or flavour() == "debug":
        raise Error("make deb has the configuration of KCONFIG=", "leave CONFIG= and DEBUG= out, or give EXTRA_CONFIG=")
    # Refuses a list without modules before anything is built.
    loaded()
    config = readers_config()
    try:
        text = config.read_text()
    except (OSError, UnicodeDecodeError):
        text = ""
    if "CONFIG_X86_64=y" not in text.splitlines():
        raise Error(f"KCONFIG={config} is no configuration of a kernel for x86_64",
                    "give one as in KCONFIG=/boot/config-6.1.0-40-amd64")
    return config


def has_pahole():
    """Whether there is one that is new enough."""
    if not shutil.which("pahole"):
        return False
    said = subprocess.run(["pahole", "--version"], capture_output=True, text=True).stdout
    found = re.match(r"v(\d+)\.(\d+)", said)
    return bool(found) and tuple(map(int, found.groups())) >= PAHOLE


def lsmod():
    """The list of modules by which the configuration is trimmed, as lsmod prints it; None: it is not."""
    if given := os.environ.get("LSMOD"):
        return pathlib.Path(given).expanduser().absolute()
    return LOADED if os.environ.get("LOCALMODCONFIG") == "1" else None


def loaded():
    """The modules that it has."""
    listed = lsmod()
    if not listed:
        return []
    if listed == LOADED and not listed.exists():
        raise Error("the kernel of this machine has no modules, by which LOCALMODCONFIG=1 goes",
                    "leave it out, or give LSMOD= what lsmod prints on the machine that it is for")
    try:
        lines = listed.read_text().splitlines()
    except (OSError, UnicodeDecodeError):
        lines = []
    names = sorted(line.split()[0] for line in lines if re.match(r"\w+ +\d+ +\d+", line))
    if not names:
        raise Error(f"{listed} lists no modules", "give LSMOD= what lsmod prints on the machine that it is for")
    return names


def refusal(config):
    """Why a configuration has no MM_BATCH, of which Kconfig has made this."""
    has = settings(config)
    if "CONFIG_RUST" in has:
        return "MM_BATCH is not offered", "give the source of the series by KSRC=, or leave KSRC= and KDIR= out"
    if found := [name for symbol, name in REFUSES.items() if symbol in has]:
        return f"Rust does not go with {', '.join(found)}, which it has", "give KCONFIG= a copy without"
    return "Kconfig finds no Rust", "see make doctor; MM_BATCH_TOOLS=cache has a toolchain that fits"


class Package(Build):
    """The kernel of the package: the reader's configuration, with what mm_batch needs."""

    def __init__(self, base, tree, config):
        base = copy.copy(base)
        base.config = config
        super().__init__(base, tree, "x86_64", "deb")
        self.variables = [f"LOCALVERSION={LOCALVERSION}"]

    def fragments(self):
        """And what says that another one is to be built."""
        more = [line for line in os.environ.get("EXTRA_CONFIG", "").split(",") if line]
        return SETTINGS + ("" if has_pahole() else NO_DEBUG_INFO) + "".join(
            f"{line}\n" for line in (f"# for: {' '.join(loaded())}", *more))

    def configure(self):
        self.out.mkdir(parents=True, exist_ok=True)
        self.kconfig(self.fragments())
        if listed := lsmod():
            # Questions get no answer, which is their default.
            run(self.command("localmodconfig"), self.log, "localmodconfig",
                env=os.environ | {"LSMOD": str(listed), "LMC_KEEP": KEPT})
        text = (self.out / ".config").read_text()
        if self.symbol("CONFIG_MM_BATCH") != "y":
            what, mend = refusal(text)
            raise Error(f"{self.base.config} gives no kernel with mm_batch: {what}", mend)
        if self.symbol("CONFIG_RUST_INLINE_HELPERS") != "y":
            say("rustc and clang have different LLVMs, so Rust's helpers are not inlined: see docs/decide.md")

    def key(self):
        """Anew whenever another configuration is given."""
        return super().key() + self.base.config.read_text()

    def make(self, steps):
        need_space(30000 if has_pahole() else 12000, "a kernel of a distribution's size")
        if not has_pahole():
            say("no pahole 1.24 or newer (apt-get install dwarves): without BTF and debugging information")
        self.configure()
        run(self.command("bzImage", "modules"), self.log, "building the kernel",
            on_line=objects_built(steps, TRIMMED_OBJECTS if lsmod() else OBJECTS))

    @property
    def release(self):
        return (self.out / "include/config/kernel.release").read_text().strip()


def packed(folder, log, control, **about):
    """Makes a package of a folder; returns the file."""
    (folder / "DEBIAN").mkdir(exist_ok=True)
    (folder / "DEBIAN/control").write_text(control.format(**about))
    # Whatever umask it was made with.
    run(["chmod", "-R", "go=rX,u+rwX", folder], log, "setting permissions")
    file = OUT / "{package}_{version}_{arch}.deb".format(**about)
    run(["dpkg-deb", "--root-owner-group", "-Zxz", "-z1", "--build", folder, file], log, f"packing {file.name}")
    return file


def kernel_package(build, about):
    package = f"linux-image-{build.release}"
    folder = build.out / "debian" / package
    shutil.rmtree(folder, ignore_errors=True)
    run(build.command("run-command", f"KBUILD_RUN_COMMAND=+$(srctree)/scripts/package/builddeb {package}"),
        build.log, "filling the package")
    if not (folder / "lib/modules" / build.release / "modules.dep").exists():
        raise Error("no depmod has run, so no module would be found", "apt-get install kmod, or MM_BATCH_TOOLS=cache")
    defaults = folder / "etc/default/grub.d"
    defaults.mkdir(parents=True)
    shutil.copy(DATA / "mm-batch.cfg", defaults)
    (folder / "DEBIAN/conffiles").write_text("/etc/default/grub.d/mm-batch.cfg\n")
    return packed(folder, build.log, KERNEL_CONTROL, package=package, release=build.release,
                  kernel=build.base.version, **about)


def bench_module(build):
    """The module for rows that free pages in the kernel, or None where the configuration lacks what it calls."""
    try:
        module = payload.module(build, payload.BENCH, "mm_batch_bench")
        run(["llvm-strip", "--strip-debug", module], build.log, "stripping the module")
        return module
    except Error as error:
        say(f"left out: the rows of contig_free ({error})")
        return None


def filled(folder, programs, module, release):
    """The files of the package that measures."""
    shutil.rmtree(folder, ignore_errors=True)
    library = folder / "usr/lib" / MEASURE
    for source in closure(["measure.machine"]):
        target = library / source.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
    for program in programs:
        shutil.copy(program, library)
    if module:
        (library / release).mkdir()
        shutil.copy(module, library / release)
    launcher = folder / "usr/sbin" / MEASURE
    launcher.parent.mkdir(parents=True)
    launcher.write_text(LAUNCHER)
    launcher.chmod(0o755)
    return folder


def measure_package(build, about):
    programs = [payload.program(build, payload.WORKLOADS / f"{name}.c") for name in ("remote", "victim")]
    folder = filled(build.out / "debian" / MEASURE, programs, bench_module(build), build.release)
    return packed(folder, build.log, MEASURE_CONTROL, package=MEASURE, **about)


def make_deb(arch):
    """The verb."""
    config = asked(arch)
    listed = lsmod()
    building = f"deb build {config.name}" + (" trimmed" if listed else "")
    steps = Steps("deb", {"deb stage": 60, building: 2400 if listed else 7200, "deb pack": 300})
    steps.start("deb stage", "the kernel source and the series")
    base, tree = stage("linux-deb")
    build = Package(base, tree, config)
    steps.start(building, f"building by {config}" + (f", with the modules of {listed}" if listed else ""))
    build.build(steps)
    steps.start("deb pack", "packing")
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    about = {"version": f"{base.version}-1", "arch": DEBIAN[arch]}
    files = [kernel_package(build, about), measure_package(build, about)]
    steps.done()
    print(*files, sep="\n")
    say(f"to install: sudo dpkg -i {OUT.relative_to(TOP)}/*.deb; then, for one boot of it, docs/build.md")
    return PASS
