# SPDX-License-Identifier: GPL-2.0
"""Configurations other than the released one: mm/ and rust/ are built in each, and no more.

A configuration must be what its name says: a symbol that Kconfig drops beyond those listed is a failure.
"""

import contextlib
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

HERE = "tests/tools/mmb/series/configurations.py"
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
    becomes: dict = dataclasses.field(default_factory=dict)  # what Kconfig must make of it, as of the settings

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
    Variant("gcc for C", {"RUST_INLINE_HELPERS": "n"}, cc="cc", becomes={"CC_IS_GCC": "y"}),
    # 48 bits: with 52, arm64's headers leave the width of a section to the boot, which page flags cannot have.
    Variant("SPARSEMEM without VMEMMAP (arm64)", {"ARM64_VA_BITS_48": "y"},
            ("DEVICE_PRIVATE", "MEMORY_HOTPLUG", "MEMORY_HOTREMOVE", "TEST_HMM", "ZONE_DEVICE"), arch="arm64",
            edit=("arch/arm64/Kconfig", "\tselect SPARSEMEM_VMEMMAP_ENABLE\n", ""),
            becomes={"SPARSEMEM": "y", "SPARSEMEM_VMEMMAP": "n"}),
]


def altered(text, settings):
    """A fragment with other values in it."""
    for symbol, value in settings.items():
        text = re.sub(rf"^(CONFIG_{symbol}=.*|# CONFIG_{symbol} is not set)\n", "", text, flags=re.M)
        text += f"CONFIG_{symbol}={value}\n" if value != "n" else f"# CONFIG_{symbol} is not set\n"
    return text


def wrong(config, settings):
    """The settings that a .config does not have."""
    found = dict(re.findall(r"^CONFIG_(\w+)=(.*)$", config, re.M))
    return [f"{name}={found.get(name, 'n')}" for name, value in settings.items() if found.get(name, "n") != value]


def warned(log, tree, names):
    """What clang, gcc and rustc said of our files, and of these of the kernel's; the folder that the tree is in may be
    called like ours."""
    ours = rf"(?:\S*mm_batch\S*|(?:\.\.?/)?(?:{'|'.join(map(re.escape, sorted(names)))})\S*)"
    said = rf"^{ours}: warning: .*$|^warning: .*\n *--> {ours}$"
    return re.findall(said, log.replace(f"{tree}/", ""), re.M)


def configure(build, variant):
    """Sets .config; what is not as the name says is an error."""
    build.out.mkdir(parents=True, exist_ok=True)
    text = altered("" if variant.distribution else build.fragments(), variant.settings)
    dropped = {s.removeprefix("CONFIG_") for s in build.kconfig(text)}
    config = (build.out / ".config").read_text()
    if bad := sorted(dropped - set(variant.drops)) + wrong(config, variant.settings | variant.becomes):
        raise Error(f"{variant.name}: Kconfig dropped {', '.join(bad)}", f"correct {HERE}, or the configuration")


def build_variant(base, tree, variant):
    """Configures and builds a tree that has the whole series, in a folder of its own: code and a line."""
    if variant.distribution:
        base = copy.copy(base)
        base.config = pathlib.Path(brought("config"))
    build = Build(base, tree, variant.arch, variant.folder)
    # The compiler of C alone: the rest of the toolchain is the same.
    build.compiler = variant.cc or "clang"
    with edited(tree, *variant.edit):
        configure(build, variant)
        for name in OBJECTS:
            (build.out / name).unlink(missing_ok=True)
        run(build.command("mm/", "rust/"), build.log, f"building {variant.name}", on_line=objects_built())
    if absent := [name for name in OBJECTS if not (build.out / name).exists()]:
        return FAIL, f"not built: {', '.join(absent)}"
    warnings = warned(build.log.read_text(), tree, touched_by(series()))
    return (FAIL, warnings[0]) if warnings else (PASS, "mm/ and rust/ built")


@contextlib.contextmanager
def edited(tree, name=None, old="", new=""):
    """A file of the tree, changed for as long as this lasts."""
    if name:
        lend(tree, [name])
        before = (tree / name).read_text()
        if old not in before:
            raise Error(f"{tree / name} has no line {old.strip()!r}", f"correct {HERE}")
        replace(tree / name, before.replace(old, new, 1).encode())
    try:
        yield
    finally:
        if name:
            replace(tree / name, before.encode())
