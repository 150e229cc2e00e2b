# SPDX-License-Identifier: GPL-2.0
"""The paths' declarations, and that a path that is declared is known to all tools."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from mmb import paths
from mmb.base.cache import TOP
from mmb.paths import model
from mmb.kernel import kbuild
from mmb.measure import rows


class Declared(unittest.TestCase):
    """What the paths say of themselves."""

    def test_each_is_where_its_name_says(self):
        there = {p.stem for p in (TOP / "tests/tools/mmb/paths").glob("*_*.py")} - {"__init__", "test_paths"}
        self.assertEqual(there, set(paths.ORDER))
        for name, declared in paths.PATHS.items():
            self.assertEqual(declared.name, name)
            self.assertEqual({row.path for row in declared.rows}, {name})
        names = [row.workload for row in rows.ROWS]
        self.assertEqual(len(names), len(set(names)), "a row is there twice")

    def test_limits_are_for_what_can_be_chosen_and_stated(self):
        self.assertEqual(model.CONFIGURATIONS, ["release", *kbuild.NAMED])
        with self.assertRaises(TypeError):
            model.Limits(release=1.0, distro=None, noinline=None)

    def test_prose(self):
        for declared in paths.PATHS.values():
            for config in model.CONFIGURATIONS:
                text = declared.about.format(mib=32, anon_mib=64, stress_mib=128, head=declared.head(config),
                                             c=declared.what_c_is(config))
                self.assertNotRegex(text, "None|[{}]")


# No batch in C, a twin, and something of each kind.
NEW = """
from .model import NONE, Boot, KunitBoot, Limits, Path, Row
from .file_unmap import RECLAIM

PATH = Path(
    name="toy_unmap",
    about="`off` is by PTE{c}.",
    rows=(Row("toy-64k", "reclaim anon 64 {mib}", "insn_per_page_ttu", "page", RECLAIM, NONE,
              Limits(release=2, distro=None, noinline=None, better_c=None)),
          Row("toy-own", "own {loops}", "insn_per_page", "page", Boot("own", "own.sh"), NONE)),
    suites=("mm_batch_toy_unmap",),
    boot_needs="thp_anon={large}:always",
    conditions={"mm_batch_toy_unmap.test_two": "2cpu"},
    kunit_boots=(KunitBoot("kunit-toy", "release", on=frozenset({"2cpu"}), cpus=2, only="mm_batch_toy_unmap"),),
    c=None,
    twin=", of which C has a twin",
)
"""
# What each tool makes of it.
ASKED = r"""
from types import SimpleNamespace

from mmb import paths
from mmb.base import modules
from mmb.full import stamps, steps
from mmb.kernel import tree
from mmb.measure import profile, report, rows, verdict
from mmb.suites import kselftest, kunit

build = SimpleNamespace(symbol={"CONFIG_THP_SWAP": "y"}.get)
row, own = rows.ROWS[-2:]
assert (row.path, row.workload, own.workload) == ("toy_unmap", "toy-64k", "toy-own")
assert tree.SERIES[-1] == "toy_unmap"
assert "mm_batch_toy_unmap" in kunit.AT_BOOT and kunit.needs(build).endswith("thp_anon=64K:always")
assert kunit.BOOTS["release"][-1].cpus == 2 and kunit.BOOTS["debug"][-1].name != "kunit-toy"
assert "mm_batch_toy_unmap.test_two" in kunit.skips(build, kunit.BOOTS["release"][0])
assert "mm_batch_toy_unmap.test_two" not in kunit.skips(build, kunit.BOOTS["release"][-1])
assert kselftest.arguments("off", "release").endswith(" mm_batch.toy_unmap=off")
assert "toy_unmap" not in kselftest.arguments("c", "release")
assert kselftest.arguments("c", "better_c").endswith(" mm_batch.toy_unmap=c")
for config, modes in (("release", ["off", "rust", "off"]), ("better_c", ["c", "off", "rust", "c"])):
    job = rows.job([row], config, "short", 1, 1)
    runs = [line.split() for line in job.splitlines() if line.startswith("row ")]
    assert [run[3] for run in runs] == modes and runs[0][5:] == "reclaim anon 64 32".split(), runs
lines = [verdict.Line(row, {row.metric: {"off": [300e6], "rust": [200e6]}})]
assert list(lines[0].problems(True)) == ["toy-64k: off/Rust 1.50 is below 2"]
assert "\n\n`off` is by PTE, of which C has a twin.\n" in report.section("toy_unmap", lines, "better_c")
assert "| off | twin | Rust |" in report.section("toy_unmap", lines, "better_c")
step = next(s for s in steps.of_full() if s.name == "prove-fresh")
assert modules.ROOT / "mmb/paths/toy_unmap.py" in stamps.closure(step.judges)
assert "tests/kernel/workloads/own.sh" in stamps.files(step.files, step.prose)
assert "\nhere\n" in rows.job([own], "release", "short", 1, 1)
assert "echo UNITS $(own_units 3)" in profile.job(own, "rust", 3)
print("known")
"""


class NewPath(unittest.TestCase):
    """What adding-a-path.md promises: a declaration, its name in ORDER, and no tool is edited."""

    def test_all_tools_know_it(self):
        with tempfile.TemporaryDirectory() as folder:
            top = pathlib.Path(folder)
            for name in ("Makefile", "tests/tools", "tests/kernel", "tests/mutants"):
                (shutil.copytree if (TOP / name).is_dir() else shutil.copy)(TOP / name, top / name)
            subprocess.run(["git", "init", "-q", top], check=True)
            declared = top / "tests/tools/mmb/paths"
            (declared / "toy_unmap.py").write_text(NEW)
            first = (declared / "__init__.py").read_text()
            order = re.sub(r"^(ORDER = \[[^]]*)\]", r'\1, "toy_unmap"]', first, flags=re.M)
            self.assertNotEqual(order, first)
            (declared / "__init__.py").write_text(order)
            (top / "tests/kernel/workloads/own.sh").write_text("here\n")
            done = subprocess.run([sys.executable, "-c", ASKED], cwd=top, capture_output=True, text=True,
                                  env=os.environ | {"PYTHONPATH": f"{top}/tests/tools", "RECLAIM_MIB": ""})
        self.assertEqual((done.stdout, done.stderr), ("known\n", ""))
