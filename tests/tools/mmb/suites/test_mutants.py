# SPDX-License-Identifier: GPL-2.0
"""Which of the kernel's mutants share a build, and what counts as a catch, tested on planted output."""

import contextlib
import io
import pathlib
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor
from unittest import mock

from mmb.base.errors import FAIL, PANIC, PASS, TIMEOUT, Error
from mmb.paths.model import KunitBoot
from mmb.guest.boot import Ended
from mmb.suites import mutants
from mmb.suites.mutants import Kernel, Mutant, Run, files_of, groups, judge, path_of, switched_off, verdict

CONTIG, FILE = "contig_free", "file_unmap"
PATHS = [CONTIG, FILE]


def patch(*files):
    return "".join(f"--- a/{f}\n+++ b/{f}\n@@ -1 +1 @@\n-a\n+b\n" for f in files)


def mutant(name, path, case="test_a"):
    return Mutant(name, f"mm_batch_{path or 'hooks'}", case, path)


def boot(body, code=PASS, why="powered off"):
    return Ended(code, why, ("KTAP version 1\n1..1\n    KTAP version 1\n" + body).split("\n"))


class PathOf(unittest.TestCase):
    def test_names(self):
        for file in ("patches/contig_free/0002-x.patch", "rust/mm_batch/glue/contig_free.rs",
                     "rust/mm_batch/contig_free.rs"):
            self.assertEqual(path_of(patch(file), "mm_batch_hooks"), CONTIG, file)
        self.assertEqual(path_of(patch("rust/mm_batch/glue/file_unmap.rs"), "mm_batch_file_unmap_as_c"), FILE)

    def test_what_paths_share(self):
        for files in (["rust/mm_batch/pages.rs"], ["patches/fixes/0001-x.patch"], ["rust/mm_batch/glue/file_unmap2.rs"],
                      ["rust/mm_batch/contig_free.rs", "rust/mm_batch/file_unmap.rs"],
                      ["rust/mm_batch/contig_free.rs", "rust/mm_batch/pages.rs"],
                      ["patches/contig_free/file_unmap.patch"], []):
            self.assertIsNone(path_of(patch(*files), "mm_batch_hooks"), files)

    def test_the_suite_of_another_path(self):
        self.assertIsNone(path_of(patch("rust/mm_batch/contig_free.rs"), "mm_batch_file_unmap"))


class FilesOf(unittest.TestCase):
    def test_files(self):
        self.assertEqual(files_of(patch("rust/x.rs", "mm/a.h")), ("mm/a.h", "rust/x.rs"))
        self.assertEqual(files_of(""), ())

    def test_of_a_patch_of_a_patch(self):
        text = (mutants.FOLDER / "helper-swap-no-warning.patch").read_text()
        self.assertTrue({"rust/helpers/mm_batch.c"} <= set(files_of(text)), files_of(text))
        for name, file in (("mprotect-forgets-dirty", "include/linux/pgtable.h"), ("dirty-off-hands-out", "mm/vmscan.c"),
                           ("swap-count-twice", "mm/swapfile.c"), ("glue-dirty-never-owed",
                                                                   "rust/mm_batch/glue/dirty_flush.rs")):
            text = (mutants.FOLDER / f"{name}.patch").read_text()
            self.assertEqual(files_of(text), (file,), name)


class Groups(unittest.TestCase):
    def test_order(self):
        def of(name, *files):
            return Mutant(name, "mm_batch_hooks", "test_a", None, files)

        found = [of("a", "mm/x.h"), of("b", "mm/y.c"), of("c", "mm/x.c"), of("d", "mm/x.h"), of("e", "mm/y.c")]
        self.assertEqual([m.name for group in groups(found) for m in group], ["c", "b", "e", "a", "d"])

    def test_one_of_each_path(self):
        found = [mutant("a", CONTIG), mutant("b", CONTIG), mutant("c", FILE), mutant("d", None), mutant("e", None),
                 mutant("f", FILE), mutant("g", FILE)]
        self.assertEqual([[m.name for m in group] for group in groups(found)],
                         [["a", "c"], ["b", "f"], ["g"], ["d"], ["e"]])

    def test_none(self):
        self.assertEqual(groups([]), [])

    def test_other_paths_are_off(self):
        self.assertEqual(switched_off(CONTIG, PATHS), "mm_batch.file_unmap=off")
        self.assertEqual(switched_off(None, PATHS), "")

    def test_ours(self):
        """Those of this tree: each is in one build, with nothing else of its path."""
        found = mutants.mutants("*")
        builds = groups(found)
        self.assertEqual(sorted(m.name for group in builds for m in group), sorted(m.name for m in found))
        for group in builds:
            paths = [m.path for m in group]
            self.assertTrue(len(group) == 1 or None not in paths and len(set(paths)) == len(paths), group)

    def test_no_such(self):
        with self.assertRaisesRegex(Error, "no mutant of the kernel is named none-such"):
            mutants.mutants("none-such")

    def test_a_first_line_without_a_case(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "x.patch").write_text("Caught-by: kunit mm_batch_hooks\n")
            with self.assertRaisesRegex(Error, "x.patch begins with"):
                mutants.mutants("*", folder)


class Judge(unittest.TestCase):
    HEAD = "    # Subtest: s\n    1..1\n"

    def word(self, body, *more):
        return judge(boot(body, *more), "s", "test_a").word

    def test_results(self):
        for line, word in (("not ok 1 test_a", "failed"), ("ok 1 test_a", "passed"),
                           ("ok 1 test_a # SKIP no folios", "skipped")):
            self.assertEqual(self.word(f"{self.HEAD}    {line}\n"), word)

    def test_of_parameters(self):
        body = "        # Subtest: test_a\n        not ok 1 first\n    not ok 1 test_a\n"
        self.assertEqual(self.word(self.HEAD + body), "failed")

    def test_another_case(self):
        for other in ("test_ab", "test", "test_b"):
            self.assertEqual(self.word(f"{self.HEAD}    not ok 1 {other}\n"), "no result")

    def test_another_suite(self):
        self.assertEqual(self.word("    # Subtest: s2\n    not ok 1 test_a\n"), "no result")

    def test_complaints(self):
        for line in ("WARNING: mm/x.c:3 at y", "BUG: Bad page state in process z", "Kernel panic - not syncing: x"):
            self.assertEqual(self.word(f"{self.HEAD}{line}\n    ok 1 test_a\n"), "complained")
            self.assertEqual(self.word(f"{self.HEAD}{line}\n    not ok 1 test_a\n"), "failed")
            self.assertEqual(self.word(f"{self.HEAD}{line}\n", PANIC, "Kernel panic"), "complained")
            self.assertTrue(judge(boot(f"{line}\n{self.HEAD}    not ok 1 test_a\n"), "s", "test_a").early
                            or "panic" in line, line)
            self.assertFalse(judge(boot(f"{self.HEAD}{line}\n    not ok 1 test_a\n"), "s", "test_a").early)
            # Before its suite and after its end is not in it.
            self.assertEqual(self.word(f"{line}\n{self.HEAD}    ok 1 test_a\n"), "passed")
            self.assertEqual(self.word(f"{self.HEAD}    ok 1 test_a\n{line}\n"), "passed")
            self.assertEqual(self.word(line, PANIC, "Kernel panic"), "no result")

    def test_no_end(self):
        outcome = judge(boot(self.HEAD, TIMEOUT, "no end after 180 s"), "s", "test_a")
        self.assertEqual((outcome.word, outcome.why), ("no result", "no end after 180 s"))
        self.assertEqual(judge(boot(""), "s", "test_a").why, "KUnit did not run it")

    def test_a_complaint_before_it_is_not_taken_in_company(self):
        outcome = mutants.Outcome("failed", early=True)
        self.assertIsNone(verdict(outcome, False))
        self.assertTrue(verdict(outcome, True))

    def test_verdicts(self):
        for word, company, alone in (("failed", True, True), ("complained", None, True), ("passed", None, False),
                                     ("skipped", None, False), ("no result", None, False)):
            outcome = mutants.Outcome(word)
            self.assertIs(verdict(outcome, False), company, word)
            self.assertIs(verdict(outcome, True), alone, word)


class FakeTree:
    """Builds nothing: an image's name says what is planted."""

    def __init__(self, folder, broken=()):
        self.work, self.broken, self.builds = pathlib.Path(folder), broken, []

    def build(self, name, planted):
        names = [m.name for m in planted]
        self.builds.append(names)
        if set(names) & set(self.broken):
            return None, "does not compile"
        image = self.work / ("+".join(names) or "none")
        image.write_text("")
        return Kernel(image, "x86_64", "release"), None


class Planting(unittest.TestCase):
    """In a copy of this tree, whose tools are replaced by a script."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.tree = mutants.Tree("x86_64", pathlib.Path(cls.folder.name))

    @classmethod
    def tearDownClass(cls):
        cls.tree.held.close()
        cls.folder.cleanup()

    def build(self, script, planted=()):
        (self.tree.tree / "tests/tools/fetch/with").write_text(f"#!/bin/sh\n{script}\n")
        return self.tree.build("name", planted)

    def test_each_group_applies_and_leaves_no_trace(self):
        def files():
            return {p: p.read_bytes() for p in self.tree.tree.rglob("*") if p.is_file() and ".git" not in p.parts}

        image = self.tree.work / "made"
        image.write_text("kernel")
        self.build(f"echo {image}")
        before = files()
        for group in groups(mutants.mutants("*")):
            kernel, why = self.tree.build("name", group)
            self.assertIsNone(why)
            self.assertEqual(kernel.image.read_text(), "kernel")
            self.assertEqual(files(), before)

    def test_it_is_planted_while_it_is_built(self):
        planted = mutants.mutants("glue-forgets-the-last-page")
        grep = "grep -q saturating_sub rust/mm_batch/glue/contig_free.rs"
        image = self.tree.work / "made"
        image.write_text("kernel")
        self.assertIsNone(self.build(f"{grep} && echo {image}", planted)[1])
        self.assertIsNone(self.build(f"{grep} || echo {image}")[1])

    def test_no_kernel(self):
        planted = mutants.mutants("glue-forgets-the-last-page")
        for said in "building the kernel failed (error[E0308]): see x", "x.patch does not apply to Linux 7.3 (y): z":
            kernel, why = self.build(f"echo 'mm_batch: error: {said}' >&2; exit 1", planted)
            self.assertIsNone(kernel)
            self.assertIn("does not compile", why)
        with self.assertRaisesRegex(Error, "no kernel was built .another mm_batch command"):
            self.build("echo another mm_batch command is building >&2; exit 1", planted)

    def test_one_does_not_apply(self):
        planted = mutants.mutants("glue-forgets-the-last-page")
        self.assertEqual(self.build("exit 1", planted * 2), (None, "glue-forgets-the-last-page does not apply"))
        self.assertIsNone(self.build("echo /dev/null", planted)[1])

    def test_one_at_a_time(self):
        with self.assertRaisesRegex(Error, "another run"):
            mutants.Tree("x86_64", pathlib.Path(self.folder.name))


class Runs(unittest.TestCase):
    """What is built and booted, and what it comes to."""

    FOUND = [mutant("a", CONTIG), mutant("b", CONTIG, "test_b"), mutant("c", FILE, "test_c")]

    def run_with(self, words, broken=()):
        """words: (planted, case) -> what becomes of the case there, where it does not fail with its own mutant."""
        def fake(kernel, mutant, paths, log):
            self.boots.append((kernel.image.name, mutant.case))
            own = mutant.name in kernel.image.name.split("+")
            return mutants.Outcome(words.get((kernel.image.name, mutant.case), "failed" if own else "passed"))

        self.boots = []
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(mutants, "try_case", fake), \
                ThreadPoolExecutor(2) as pool, contextlib.redirect_stdout(io.StringIO()) as out, \
                contextlib.redirect_stderr(io.StringIO()):
            self.tree = FakeTree(folder, broken)
            run = Run(self.tree, self.FOUND, PATHS, pool)
            code = run.all()
        self.out = out.getvalue()
        return code, sorted(name for name, caught in run.ended.items() if not caught)

    def test_all_caught(self):
        self.assertEqual(self.run_with({}), (PASS, []))
        self.assertEqual(self.tree.builds, [[], ["a", "c"], ["b"]])
        self.assertEqual(len(self.boots), 6)

    def test_one_passes(self):
        self.assertEqual(self.run_with({("b", "test_b"): "passed"}), (FAIL, ["b"]))
        self.assertIn("MISSED: kunit mm_batch_contig_free test_b: passed", self.out)

    def test_what_does_not_fail_in_company_is_planted_alone(self):
        for word in "complained", "no result", "passed", "skipped":
            self.assertEqual(self.run_with({("a+c", "test_c"): word}), (PASS, []), word)
            self.assertEqual(self.tree.builds, [[], ["a", "c"], ["b"], ["c"]])

    def test_alone_it_counts(self):
        both = {("a+c", "test_c"): "complained"}
        self.assertEqual(self.run_with(both | {("c", "test_c"): "complained"}), (PASS, []))
        self.assertEqual(self.run_with(both | {("c", "test_c"): "no result"}), (FAIL, ["c"]))

    def test_a_case_that_fails_without_it(self):
        for word in "failed", "skipped", "complained", "no result":
            self.assertEqual(self.run_with({("none", "test_a"): word}), (FAIL, ["a"]), word)
            self.assertEqual(self.tree.builds, [[], ["b", "c"]])

    def test_one_does_not_compile(self):
        self.assertEqual(self.run_with({}, broken=["c"]), (FAIL, ["c"]))
        self.assertEqual(self.tree.builds, [[], ["a", "c"], ["b"], ["a"], ["c"]])
        self.assertIn("MISSED: does not compile", self.out)

    def test_each_boot_without_mutants_is_as_with_them(self):
        kernel = Kernel(pathlib.Path("image"), "x86_64", "release")
        line = mutants.command_line(self.FOUND[0], kernel, PATHS)
        self.assertIn("kunit.filter_glob=mm_batch_contig_free.test_a ", line)
        self.assertTrue(line.endswith("mm_batch.file_unmap=off"), line)
        hook = Mutant("h", "mm_batch_hooks", "test_page_owner", None)
        self.assertTrue(mutants.command_line(hook, kernel, PATHS).endswith("page_owner=on"))

    def test_a_boot_that_runs_its_suite(self):
        kernel = Kernel(pathlib.Path("image"), "x86_64", "release")
        boots = {"release": [KunitBoot("one", "release", "a=1", only="mm_batch_hooks"),
                             KunitBoot("two", "release", "b=1", only="mm_batch_contig*", cpus=2)]}
        with mock.patch.object(mutants.kunit, "BOOTS", boots), \
                mock.patch.object(mutants, "boot", return_value=boot("")) as booted:
            mutants.try_case(kernel, self.FOUND[0], PATHS, None)
            self.assertEqual(booted.call_args.kwargs["cpus"], 2)
            self.assertIn(" b=1 ", booted.call_args.args[1])
            with self.assertRaisesRegex(Error, "not run, in every boot"):
                mutants.where(self.FOUND[2], kernel)


if __name__ == "__main__":
    unittest.main(verbosity=2)
