# SPDX-License-Identifier: GPL-2.0
"""make full, itself tested: what makes a step stale, what does not, and what ninja is told."""

import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from dataclasses import replace
from unittest import mock

from mmb.base import modules
from mmb.base.cache import TOP
from mmb.base.errors import FAIL, PASS, Error
from mmb.full import lanes, stamps, steps
from mmb.kernel.kbuild import IMAGES


class Stamps(unittest.TestCase):
    """fresh, failed, stale, never run, or not known: of a step that boots a kernel."""

    STEP = steps.Step("s", "true", 1, ("release",), ("suites.judge",), ("tests/kernel/expected.toml",))
    FILES = {
        ".gitignore": "report/\nout/\n",
        "README.md": "1",
        "rust/mm_batch/x.rs": "// one\nfn f() {}\n",
        "patches/p/0001-x.patch": "Subject: x\n\nWhy.\n---\ndiff --git a/x b/x\n+int x;\n",
        "tests/kernel/expected.toml": "ok = 3  # a comment\n",
        "tests/tools/mmb/suites/judge.py": '"""What it is."""\nfrom ..base import errors\nONE = 1\n',
        "tests/tools/mmb/base/errors.py": "TWO = 2\n",
        "tests/tools/mmb/measure/report.py": "THREE = 3\n",
    }

    def setUp(self):
        self.top = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        subprocess.run(["git", "init", "-q", self.top], check=True)
        for name, text in self.FILES.items():
            (self.top / name).parent.mkdir(parents=True, exist_ok=True)
            (self.top / name).write_text(text)
        self.enterContext(mock.patch.object(modules, "ROOT", self.top / "tests/tools"))
        for module, given in ((stamps, {"REPORT": self.top / "report/full.json"}), (lanes, {"LOGS": self.top})):
            given |= {"TOP": self.top, "of_full": lambda: [self.STEP], "of_soak": list}
            self.enterContext(mock.patch.multiple(module, **given))
        self.build("image")

    def build(self, image, but_kunit="objects", programs="programs"):
        """The edge of the kernel, of which this image comes, and the rest of it."""
        runs = dict(zip(stamps.RUNS, (image + programs, but_kunit + programs)))
        runs["parts"] = {"image": image, "objects": but_kunit, "programs": programs}
        with mock.patch.object(lanes, "staged_build", return_value=(mock.Mock(), mock.Mock())), \
                mock.patch.object(lanes, "what_runs", return_value=runs), mock.patch.dict(os.environ):
            lanes.build_kernel("release")

    def change(self, name, old, new):
        text = (self.top / name).read_text()
        self.assertIn(old, text)
        (self.top / name).write_text(text.replace(old, new))

    def state(self):
        return stamps.states([self.STEP])[self.STEP]

    def test_from_never_run_to_failed(self):
        self.assertEqual(self.state(), "never run")
        self.assertEqual((lanes.run_step("s"), self.state()), (PASS, "fresh"))
        with mock.patch.object(lanes, "logged", return_value=(1, 2, 0.5)) as logged:
            self.assertEqual(lanes.run_step("s"), PASS)
            logged.assert_not_called()
            self.change("tests/kernel/expected.toml", "3", "4")
            self.assertEqual(self.state(), "stale")
            self.assertEqual((lanes.run_step("s"), self.state()), (FAIL, "failed"))

    def test_prose_leaves_it_fresh(self):
        lanes.run_step("s")
        for name, old, new in (("README.md", "1", "2"), ("tests/tools/mmb/measure/report.py", "3", "4"),
                               ("tests/tools/mmb/suites/judge.py", "What", "# That"),
                               ("tests/kernel/expected.toml", "a comment", "another")):
            self.change(name, old, new)
        self.build("image")
        self.assertEqual(self.state(), "fresh")
        for name, old, new in (("rust/mm_batch/x.rs", "one", "two"), ("patches/p/0001-x.patch", "Why.", "So.")):
            self.change(name, old, new)
            self.assertIn("not known, until release is built", self.state())
            self.build("image")
            self.assertEqual(self.state(), "fresh")

    def test_what_makes_it_stale(self):
        """An instruction, and what judges."""
        for name, old, new, image in (("rust/mm_batch/x.rs", "{}", "{ g() }", "another image"),
                                      ("tests/tools/mmb/suites/judge.py", "ONE = 1", "ONE = 2", None),
                                      ("tests/tools/mmb/base/errors.py", "2", "3", None)):
            self.assertEqual((lanes.run_step("s"), self.state()), (PASS, "fresh"))
            self.change(name, old, new)
            if image:
                self.build(image, image)
            self.assertEqual(self.state(), "stale", name)

    def test_a_build_that_is_not_the_same_again(self):
        """What differs is said. Of the same sources it is the same kernel; other programs in its guest are others."""
        lanes.run_step("s")
        with mock.patch.object(lanes, "say") as said:
            self.build("another image")
            said.assert_called_once_with("full: release: of the same sources, but not with the same image as recorded")
            self.assertEqual(self.state(), "fresh")
            self.build("image", programs="others")
            said.assert_called_with("full: release: of the same sources, but not with the same programs as recorded")
            self.assertEqual(self.state(), "stale")

    def test_a_comment_is_of_who_reads_it(self):
        """In user space, where sources count and no kernel."""
        some = [steps.Step("s", "true", 1, files=("rust/",), prose=prose) for prose in (False, True)]

        def changed(old, new):
            before = [stamps.inputs(step, {}, "") for step in some]
            self.change("rust/mm_batch/x.rs", old, new)
            return [was != stamps.inputs(step, {}, "") for was, step in zip(before, some)]

        self.assertEqual(changed("// one", "    //! two\n// three"), [False, True])
        self.assertEqual(changed("fn f() {}", "fn f() {} // four"), [True, True])
        self.assertEqual(changed("fn f() {}", "fn g() {}"), [True, True])

    def test_kunit_is_of_who_runs_it(self):
        """A suite that changes makes another image, of objects that are the same but for its own."""
        both = [self.STEP, replace(self.STEP, name="t", kunit=True)]
        with mock.patch.object(lanes, "of_full", lambda: both), mock.patch.object(stamps, "of_full", lambda: both):
            for step in both:
                lanes.run_step(step.name)
            self.change("rust/mm_batch/x.rs", "fn f", "fn g")
            self.build("another image")
            self.assertEqual(list(stamps.states(both).values()), ["fresh", "stale"])

    def test_a_row_of_the_list_is_of_who_runs_it(self):
        """What a selftest must show leaves steps fresh that do not run it."""
        row = '[test.{}]\nrun = "ours/x"\npaths = []\nseconds = 1\nok = {}\n'
        some = [steps.Step("s", "true", 1, files=("README.md",), tests=(test,)) for test in ("one", "two")]

        def inputs(ok):
            (self.top / "list.toml").write_text(row.format("one", 1) + row.format("two", ok))
            return [stamps.inputs(step, {}, "") for step in some]

        with mock.patch.object(stamps.expected, "LIST", self.top / "list.toml"):
            before, after = inputs(1), inputs(2)
        self.assertEqual(before[0], after[0])
        self.assertNotEqual(before[1], after[1])

    def test_what_changes_meanwhile(self):
        def command(*_):
            self.change("tests/kernel/expected.toml", "3", "5")
            return 0, 1, 0.1

        with mock.patch.object(lanes, "logged", command), self.assertRaisesRegex(Error, "changed while it ran"):
            lanes.run_step("s")

    def test_a_report_that_is_broken(self):
        (self.top / "report/full.json").write_text("{")
        with self.assertRaisesRegex(Error, "not readable"):
            self.state()

    def test_letters_are_for_who_reads_them(self):
        names = [f"patches/p/{name}" for name in ("0000-cover-letter.patch", "0001-x.patch", "takers.md")]
        for name in (names[0], names[2], "patches/versions.md"):
            (self.top / name).write_text("1")
        self.assertEqual(stamps.files(("patches/",), prose=False), [names[1]])
        self.assertEqual(stamps.files(("patches/",), prose=True), names)

    def test_no_repository(self):
        shutil.rmtree(self.top / ".git")
        with self.assertRaisesRegex(Error, "git does not list the files"):
            self.state()


class Declared(unittest.TestCase):
    """The steps as they are."""

    def test_each_is_a_verb_and_depends_on_what_is_there(self):
        makefile = (TOP / "Makefile").read_text()
        for step in steps.of_full():
            self.assertIn(f"\n{step.command.split()[1]}:", makefile)
            for name in step.files:
                self.assertTrue(stamps.files((name,), prose=True), f"{step.name}: {name}")
            for module in step.judges:
                self.assertTrue(modules.sources(f"mmb.{module}")[0].is_file(), f"{step.name}: {module}")
            self.assertTrue(step.kernels or step.files, step.name)

    def test_a_comment_in_rust_leaves_what_boots_fresh(self):
        """Such a step has the hash of a kernel for it; same-source compares the files themselves."""
        for step in steps.of_full():
            if step.kernels and step.name != "same-source":
                self.assertFalse([name for name in step.files if name.startswith("rust/")], step.name)

    def test_a_judge_is_judged_by_what_it_imports(self):
        found = {str(source.relative_to(TOP / "tests/tools/mmb")) for source in stamps.judging(("measure.evaluate",))}
        self.assertLessEqual({"measure/rows.py", "guest/rootfs.py", "base/process.py", "paths/file_unmap.py"}, found)
        self.assertFalse({name for name in found if name.startswith(("suites/", "series/", "base/progress"))
                          or "test_" in name})

    def test_only_what_is_planted_in_a_kernel_is_of_the_kernels(self):
        step = next(step for step in steps.of_full() if step.name == "mutants-kernel")
        names = {pathlib.Path(name).name for name in step.files}
        self.assertIn("gate-forgets-poisoning.patch", names)
        self.assertNotIn("section-ignored.patch", names)
        self.assertLessEqual({"unmap_flush", "folio_batch_pins_single"}, set(step.tests))

    def test_what_may_be_given(self):
        # What the help text says that there is.
        said = subprocess.run(["make", "-C", TOP, "help"], capture_output=True, text=True, check=True).stdout
        named = set(re.findall(r"\b(?!CONFIG_)([A-Z_]+)=", said))
        self.assertEqual(named - lanes.VARIABLES, {"MM_BATCH_CACHE", "MM_BATCH_TOOLS"})

    def test_what_chose_a_step_is_not_for_it(self):
        with mock.patch.dict(os.environ, {"STEP": "s", "MAKEFLAGS": " -- STEP=s", "RECLAIM_MIB": "9", "SCALE": "full",
                                          "MM_BATCH_TOOLS": "cache"}):
            self.assertFalse({"STEP", "MAKEFLAGS", "RECLAIM_MIB", "SCALE"} & set(lanes.environment()))
            self.assertIn("MM_BATCH_TOOLS", lanes.environment())


class Ninja(unittest.TestCase):
    """What ninja makes of the file: kernels first, failures stop nobody, two of what builds never at once."""

    def setUp(self):
        self.top = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        script = self.top / "tests/tools/fetch/with"
        script.parent.mkdir(parents=True)
        script.write_text(f"#!/bin/sh\nshift 4\necho begin $* >>{self.top}/said\nsleep 0.2\n"
                          f"echo end $* >>{self.top}/said\n[ $2 != fails ]\n")
        script.chmod(0o755)
        self.enterContext(mock.patch.multiple(lanes, TOP=self.top, LOGS=self.top, states=lambda steps: {}))

    def said(self):
        return (self.top / "said").read_text().splitlines()

    def test_order(self):
        some = [steps.Step("boots", "", 1, ("release", "debug")), steps.Step("builds", "", 1, builds=True),
                steps.Step("fails", "", 1, ("release",))]
        self.assertEqual(lanes.run("full", some), FAIL)
        said = self.said()
        self.assertEqual(len(said), 2 * 5)
        for kernel in "release", "debug":
            self.assertLess(said.index(f"end full-kernel {kernel}"), said.index("begin full-step boots"))
        building = 0
        for line in said:
            if "full-kernel" in line or line.endswith("builds"):
                building += 1 if line.startswith("begin") else -1
            self.assertLessEqual(building, 1, said)

    def test_two_at_once_run_what_each_was_asked_for(self):
        names = [f"step-{i}" for i in range(8)]
        with concurrent.futures.ThreadPoolExecutor(len(names)) as pool:
            ended = list(pool.map(lambda name: lanes.run("full", [steps.Step(name, "", 1)]), names))
        self.assertEqual(ended, [PASS] * len(names))
        self.assertEqual(sorted(line.split()[2] for line in self.said() if line.startswith("begin")), names)


class Rebuilt(unittest.TestCase):
    """Builds kernels. A comment that changes gives the same image, a KUnit suite the same objects but for its own, and
    an instruction of ours neither.
    """

    def build(self, top):
        done = subprocess.run([sys.executable, "-m", "mmb", "kernel"], cwd=top, capture_output=True, text=True,
                              env=os.environ | {"PYTHONPATH": f"{top}/tests/tools"})
        self.assertEqual(done.returncode, 0, done.stderr)
        image = done.stdout.split()[-1]
        out = pathlib.Path(image.removesuffix(IMAGES["x86_64"]))
        return [pathlib.Path(image).read_bytes()], [path.read_bytes() for path in stamps.objects(out)]

    def test_what_changes(self):
        before = self.build(TOP)
        self.addCleanup(self.build, TOP)
        self.assertGreater(len(before[1]), 1000)
        with tempfile.TemporaryDirectory() as name:
            top = pathlib.Path(name)
            for part in ("Makefile", "rust", "patches", "tests"):
                (shutil.copytree if (TOP / part).is_dir() else shutil.copy)(TOP / part, top / part)
            for name, old, new, same in (
                    ("rust/mm_batch/dirty_flush.rs", "\n//! ", "\n//! Said anew: ", [True, True]),
                    ("tests/kernel/kunit/mm_batch_dirty_flush_kunit.c", "KUNIT_EXPECT_EQ(", "KUNIT_EXPECT_LE(",
                     [False, True]),
                    ("rust/mm_batch/dirty_flush.rs", "nr_tried / 2", "nr_tried / 3", [False, False])):
                source = top / name
                text = source.read_text()
                self.assertIn(old, text)
                source.write_text(text.replace(old, new, 1))
                self.assertEqual([was == now for was, now in zip(before, self.build(top))], same, name)
                source.write_text(text)
