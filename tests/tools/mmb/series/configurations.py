# SPDX-License-Identifier: GPL-2.0
"""Configurations other than the released one: mm/ and rust/ are built in each, and no more.

A configuration must be what its name says: a symbol that Kconfig drops beyond those listed is a failure.
"""

import copy
import dataclasses
import pathlib
import re

from ..base.cache import brought
from ..base.errors import FAIL, PASS, Error
from ..base.process import run
from ..base.progress import objects_built
from ..kernel.kbuild import Build
from ..kernel.tree import lend, replace, series, touched_by

OBJECTS = ["mm/page_alloc.o", "mm/mm_batch_modes.o", "mm/mm_batch/mm_batch.o", "rust/bindings.o"]


@dataclasses.dataclass(frozen=True)
class Variant:
    name: str
    settings: dict
    drops: tuple = ()  # of the released configuration, by consequence
    arch: str = "x86_64"
    cc: str = ""
    distribution: bool = False
    edit: tuple = ()  # file, text, replacement: for what no Kconfig allows

    @property
    def folder(self):
        # One for all that differ in symbols only: what does not depend on them is built once.
        return "distribution" if self.distribution else f"variant-{self.cc}" if self.cc else "variant"


DISTRIBUTION = Variant("Debian's amd64 configuration", {"RUST": "y", "MM_BATCH": "y"}, distribution=True)

FULL = [
    Variant("no NUMA", {"NUMA": "n"}, ("NUMA_BALANCING", "NUMA_MIGRATION", "NUMA_EMU", "X86_64_ACPI_NUMA")),
    Variant("NO_PAGE_MAPCOUNT", {"NO_PAGE_MAPCOUNT": "y"}),
    Variant("no LRU_GEN", {"LRU_GEN": "n"}),
    Variant("LRU_GEN, on at boot", {"LRU_GEN_ENABLED": "y"}),
    Variant("no SWAP", {"SWAP": "n"}, ("ZSWAP", "CRYPTO_LZO")),
    Variant("no THP", {"TRANSPARENT_HUGEPAGE": "n"}, ("TRANSPARENT_HUGEPAGE_MADVISE", "TEST_HMM")),
    Variant("no MEMCG", {"MEMCG": "n"}),
    Variant("no RUST_INLINE_HELPERS", {"RUST_INLINE_HELPERS": "n"}),
    Variant("PREEMPT_RT", {"PREEMPT_RT": "y"},
            ("TRANSPARENT_HUGEPAGE", "TRANSPARENT_HUGEPAGE_MADVISE", "NUMA_BALANCING", "TEST_HMM")),
    Variant("gcc for C", {"RUST_INLINE_HELPERS": "n"}, cc="cc"),
    # 48 bits: with 52, arm64's headers leave the width of a section to the boot, which page flags cannot have.
    Variant("SPARSEMEM without VMEMMAP (arm64)", {"ARM64_VA_BITS_48": "y"},
            ("DEVICE_PRIVATE", "MEMORY_HOTPLUG", "MEMORY_HOTREMOVE", "TEST_HMM", "ZONE_DEVICE"), arch="arm64",
            edit=("arch/arm64/Kconfig", "\tselect SPARSEMEM_VMEMMAP_ENABLE\n", "")),
]


def altered(text, settings):
    """A fragment with other values in it."""
    for symbol, value in settings.items():
        text = re.sub(rf"^(CONFIG_{symbol}=.*|# CONFIG_{symbol} is not set)\n", "", text, flags=re.M)
        text += f"CONFIG_{symbol}={value}\n" if value != "n" else f"# CONFIG_{symbol} is not set\n"
    return text


def wrong(config, settings):
    """The settings that a .config does not have."""
    bad = []
    for symbol, value in settings.items():
        found = re.search(rf"^CONFIG_{symbol}=(.*)$", config, re.M)
        if (found.group(1) if found else "n") != value:
            bad.append(f"{symbol}={found.group(1) if found else 'n'}")
    return bad



def warned(log, tree, names):
    """What clang, gcc and rustc said of our files, and of these of the kernel's; the folder that the tree is in may be
    called like ours."""
    ours = rf"(?:\S*mm_batch\S*|(?:\./)?(?:{'|'.join(map(re.escape, sorted(names)))})\S*)"
    said = rf"^{ours}: warning: .*$|^warning: .*\n *--> {ours}$"
    return re.findall(said, log.replace(f"{tree}/", ""), re.M)


class VariantBuild:
    """A configuration in a folder of its own, of a tree that has the whole series."""

    def __init__(self, base, tree, variant):
        self.variant = variant
        if variant.distribution:
            base = copy.copy(base)
            base.config = distribution_config()
        self.build = Build(base, tree, variant.arch, variant.folder)
        # The compiler of C alone: the rest of the toolchain is the same.
        self.build.compiler = variant.cc or "clang"

    def configure(self):
        """Sets .config; what is not as the name says is an error."""
        variant, build = self.variant, self.build
        build.out.mkdir(parents=True, exist_ok=True)
        text = altered("" if variant.distribution else build.fragments(), variant.settings)
        dropped = {s.removeprefix("CONFIG_") for s in build.kconfig(text)}
        config = (build.out / ".config").read_text()
        bad = sorted(dropped - set(variant.drops)) + wrong(config, variant.settings)
        if variant.cc and not re.search(r"^CONFIG_CC_IS_GCC=y$", config, re.M):
            bad.append("CC_IS_GCC")
        if variant.edit and not re.search(r"^CONFIG_SPARSEMEM=y$", config, re.M):
            bad.append("SPARSEMEM")
        if variant.edit and re.search(r"^CONFIG_SPARSEMEM_VMEMMAP=y$", config, re.M):
            bad.append("SPARSEMEM_VMEMMAP=y")
        if bad:
            raise Error(f"{variant.name}: Kconfig dropped {', '.join(bad)}",
                        "correct tests/tools/mmb/series/configurations.py, or the configuration")

    def make(self):
        """Configures and builds: code and a line."""
        try:
            with Edited(self.build, self.variant.edit):
                self.configure()
                for name in OBJECTS:
                    (self.build.out / name).unlink(missing_ok=True)
                run(self.build.command("mm/", "rust/"), self.build.log, f"building {self.variant.name}", on_line=objects_built())
        except Error as error:
            return FAIL, str(error)
        absent = [name for name in OBJECTS if not (self.build.out / name).exists()]
        if absent:
            return FAIL, f"not built: {', '.join(absent)}"
        warnings = warned(self.build.log.read_text(), self.build.tree, touched_by(series()))
        return (FAIL, warnings[0]) if warnings else (PASS, "mm/ and rust/ built")


class Edited:
    """A file of the tree, changed for as long as this lasts."""

    def __init__(self, build, edit):
        self.edit = edit
        if edit:
            lend(build.tree, edit[0])
            self.file = build.tree / edit[0]
            self.before = self.file.read_bytes()

    def __enter__(self):
        if self.edit:
            _, old, new = self.edit
            if old.encode() not in self.before:
                raise Error(f"{self.file} has no line {old.strip()!r}", "correct tests/tools/mmb/series/configurations.py")
            replace(self.file, self.before.replace(old.encode(), new.encode(), 1))

    def __exit__(self, *_):
        if self.edit:
            replace(self.file, self.before)


def distribution_config():
    """Debian's configuration, fetched."""
    return pathlib.Path(brought("config"))
