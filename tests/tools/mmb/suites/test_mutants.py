# SPDX-License-Identifier: GPL-2.0
"""What is built and booted for the kernel's mutants, and what counts as a catch, tested on planted output."""

import contextlib
import io
import pathlib
import re
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor
from unittest import mock

from mmb.base import cache
from mmb.base.errors import FAIL, PANIC, PASS, TIMEOUT, Error
from mmb.paths.model import KunitBoot
from mmb.guest.boot import Ended
from mmb.suites import expected, kunit, mutants, planted
from mmb.suites.mutants import Kernel, Mutant, Run, judge
from mmb.suites.test_planted import with_one_on

SYMBOL = {"CONFIG_THP_SWAP": "y"}.get
KERNEL = Kernel(pathlib.Path("image"), "x86_64", "release", SYMBOL)
A = Mutant("a", "mm_batch_contig_free", "test_a", 1)
B = Mutant("b", "mm_batch_contig_free", "test_b", 2)
C = Mutant("c", "mm_batch_file_unmap", "test_c", 3)


def boot(body, code=PASS, why="powered off"):
    return Ended(code, why, ("KTAP version 1\n1..1\n    KTAP version 1\n" + body).split("\n"))


class Found(unittest.TestCase):
    def test_numbers(self):
        """A mutant's number is the same whichever are planted."""
        found = mutants.mutants("*")
        numbers = {m.name: m.number for m in found}
        self.assertEqual(list(numbers.values()), [*range(1, len(numbers) + 1)])
        self.assertEqual({m.number for m in found}, set(numbers.values()))
        last = found[-1]
        self.assertEqual(mutants.mutants(last.name), [last])
        self.assertEqual(mutants.mutants("glue-*"), [m for m in found if m.name.startswith("glue-")])

    def test_caught_by_several(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            for file, text in (("x", "Caught-by: kunit s test_a\nCaught-by: kselftest t\nIt is wrong.\n"),
                               ("y", "Caught-by: kselftest t\nIt is wrong.\n"), ("z", "Caught-by: test t\n")):
                (folder / f"{file}.patch").write_text(text)
            found = mutants.mutants("*", folder)
        self.assertEqual([(m.name, m.what, m.number) for m in found],
                         [("x", "kunit s test_a", 1), ("x", "kselftest t", 1), ("y", "kselftest t", 2)])

    def test_cases_are_of_their_suites(self):
        cases = {}
        for file in (cache.TOP / "tests/kernel/kunit").glob("*.c"):
            text = file.read_text()
            for suite in re.findall(r'\.name = "(\w+)"', text):
                cases.setdefault(suite, set()).update(re.findall(r"KUNIT_CASE\w*\((\w+)", text))
        for mutant in filter(lambda m: not m.selftest, mutants.mutants("*")):
            self.assertIn(mutant.case, cases.get(mutant.suite, ()), mutant.name)

    def test_selftests_are_of_the_list(self):
        tests = expected.parse(expected.LIST.read_text())[0]
        for mutant in filter(lambda m: m.selftest, mutants.mutants("*")):
            self.assertIn(mutant.case, tests, mutant.name)

    def test_no_such(self):
        with self.assertRaisesRegex(Error, "no mutant of the kernel is named none-such"):
            mutants.mutants("none-such")
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "x.patch").write_text("Caught-by: kunit mm_batch_hooks\n")
            with self.assertRaisesRegex(Error, "x.patch begins with"):
                mutants.mutants("*", folder)


class Judge(unittest.TestCase):
    def test_words(self):
        head = "    # Subtest: s\n    1..1\n"
        for body, word in (
                (f"{head}    not ok 1 test_a\n", "failed"), (f"{head}    ok 1 test_a\n", "passed"),
                (f"{head}    ok 1 test_a # SKIP no folios\n", "skipped"),
                (f"{head}        # Subtest: test_a\n        not ok 1 first\n    not ok 1 test_a\n", "failed"),
                # Another case, and another suite.
                *((f"{head}    not ok 1 {other}\n", "no result") for other in ("test_ab", "test", "test_b")),
                ("    # Subtest: s2\n    not ok 1 test_a\n", "no result")):
            self.assertEqual(judge(boot(body), "s", "test_a").word, word, body)
        for line in ("WARNING: mm/x.c:3 at y", "BUG: Bad page state in process z", "Kernel panic - not syncing: x"):
            for body, word in ((f"{head}{line}\n    ok 1 test_a\n", "complained"), (f"{head}{line}\n", "complained"),
                               (f"{head}{line}\n    not ok 1 test_a\n", "failed"),
                               # Before its suite and after its end is not in it.
                               (f"{line}\n{head}    ok 1 test_a\n", "passed"),
                               (f"{head}    ok 1 test_a\n{line}\n", "passed"), (line, "no result")):
                self.assertEqual(judge(boot(body, PANIC, "Kernel panic"), "s", "test_a").word, word, body)
        self.assertEqual(judge(boot(head, TIMEOUT, "no end after 180 s"), "s", "test_a"),
                         ("no result", "no end after 180 s"))
        self.assertEqual(judge(boot(""), "s", "test_a").why, "KUnit did not run it")


class Selftest(unittest.TestCase):
    def test_words(self):
        for body, word in (("ok 1 x\n# Totals: pass:1 fail:0", "passed"), ("ok 1 x\nnot ok 2 y", "failed"),
                           ("WARNING: mm/x.c:3 at y\nnot ok 1 x", "complained"), ("ok 1 x", "no result")):
            self.assertEqual(judge(boot(body), mutants.SELFTEST, "t").word, word, body)

    def test_a_boot_of_its_own(self):
        mutant = Mutant("d", mutants.SELFTEST, "folio_batch_pins_single", 4)
        self.assertEqual(mutants.boot_key(mutant, KERNEL), ("folio_batch_pins_single",))
        ended = boot(f"{planted.said(4, 'd')}\nnot ok 1 x")
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(mutants, "Base"), \
                mock.patch.object(mutants, "Build"), \
                mock.patch.object(mutants.kselftest.Guest, "__init__", return_value=None), \
                mock.patch.object(mutants.kselftest.Guest, "boot", return_value=ended) as booted:
            self.assertEqual(mutants.try_case(mutant, KERNEL, pathlib.Path(folder, "log"), True).word, "failed")
        (test,), mode, _ = booted.call_args.args
        self.assertEqual((test.name, mode, booted.call_args.kwargs), (
            "folio_batch_pins_single", "rust", {"kernel": KERNEL, "more": "loglevel=7 mm_batch_mutant=4"}))


class Boots(unittest.TestCase):
    """What a case is booted with."""

    def setUp(self):
        boots = {"release": [KunitBoot("one", "release", "a=1", only="mm_batch_hooks"),
                             KunitBoot("two", "release", "b=1", only="mm_batch_contig*", cpus=2)]}
        for name, value in ("BOOTS", boots), ("AT_BOOT", ["mm_batch_hooks", A.suite]):
            patched = mock.patch.object(mutants.kunit, name, value)
            patched.start()
            self.addCleanup(patched.stop)

    def test_a_boot_that_runs_its_suite(self):
        for switched, ends in (False, " b=1"), (True, " b=1 mm_batch_mutant=1"):
            with mock.patch.object(mutants, "boot", return_value=boot("")) as booted:
                mutants.try_case(A, KERNEL, None, switched)
            self.assertEqual(booted.call_args.kwargs["cpus"], 2)
            line = booted.call_args.args[1]
            self.assertTrue(line.endswith(ends), line)
            self.assertIn(f"kunit.filter_glob={A.suite}.test_a ", line)
        with mock.patch.object(mutants.kunit, "AT_BOOT", [C.suite]), \
                self.assertRaisesRegex(Error, "not run, in every boot"):
            mutants.where(C, KERNEL)
        # Named by a glob, as what needs CONFIG_THP_SWAP is.
        swaps = Mutant("d", "guest_mm_batch_anon_unmap", "test_swap_whole", 4)
        self.assertEqual(mutants.where(swaps, KERNEL).name, "one")
        with self.assertRaisesRegex(Error, "is skipped"):
            mutants.where(swaps, KERNEL._replace(symbol={}.get))

    def test_a_kernel_without_the_bug_catches_nothing(self):
        body = f"    # Subtest: {A.suite}\n    1..1\n    not ok 1 test_a\n"
        for line, word in (("", "no result"), ("mm_batch: mutant 2 planted: b\n", "no result"),
                           (f"[ 0.1] {planted.said(1, 'a')}\n", "failed")):
            with mock.patch.object(mutants, "boot", return_value=boot(line + body)):
                self.assertEqual(mutants.try_case(A, KERNEL, None, True).word, word)
        with mock.patch.object(mutants, "boot", return_value=boot(body)):
            self.assertEqual(mutants.try_case(A, KERNEL, None, False).word, "failed")

    def test_a_selftest_that_passes_is_run_again(self):
        selftest, case = Mutant("d", mutants.SELFTEST, "unmap_flush", 4), A
        for mutant, words, last, tries in (
                (selftest, ["passed", "passed", "failed"], "failed", 3), (case, ["passed", "failed"], "passed", 1),
                (selftest, ["no result", "failed"], "no result", 1),
                (selftest, ["passed"] * 9, "passed", mutants.TRIES)):
            with self.subTest(words=words), mock.patch.object(
                    mutants, "try_case", side_effect=[mutants.Outcome(word, "") for word in words]) as tried:
                self.assertEqual(mutants.tried(mutant, KERNEL, None, True).word, last)
                self.assertEqual(tried.call_count, tries)

    def test_a_suite_to_a_user_space_ends_with_the_case(self):
        with mock.patch.object(kunit.initrd, "archive"), mock.patch.object(kunit, "boot") as booted:
            mutants.boot_for(C, KERNEL, pathlib.Path("log"), last=["^ *(not )?ok 1 test_c$"])
            ends = booted.call_args.kwargs["finished"]
        for line, does in (("    ok 1 test_c", True), ("mm_batch: job done", True), ("mm_batch: job failed: x", True),
                           ("", False), ("    ok 1 test_cd", False), ("# test_c", False)):
            self.assertEqual(bool(mutants.re.search(ends, line)), does, line)

    def test_cases_of_a_suite_in_a_user_space_share_the_boot_with_none_on(self):
        other = Mutant("d", C.suite, "test_d", 4)
        self.assertEqual(mutants.boot_key(C, KERNEL), mutants.boot_key(other, KERNEL))
        self.assertNotEqual(mutants.boot_key(A, KERNEL), mutants.boot_key(B, KERNEL))

    def test_cases_that_want_another_number_of_cpus_do_not(self):
        other = Mutant("d", C.suite, "test_d", 4)
        with mock.patch.object(mutants, "where", side_effect=lambda m, _: KunitBoot("x", "release", cpus=m.number)):
            self.assertNotEqual(mutants.boot_key(C, KERNEL), mutants.boot_key(other, KERNEL))


class Planting(unittest.TestCase):
    """In copies of this tree, whose tools are replaced by a script."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.enterClassContext(mock.patch.object(cache, "CACHE", pathlib.Path(cls.folder.name, "cache")))
        cls.tree = mutants.Tree("x86_64", pathlib.Path(cls.folder.name))

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def built(self, script):
        (self.tree.planted / "tests/tools/fetch").mkdir(parents=True, exist_ok=True)
        (self.tree.planted / "tests/tools/fetch/with").write_text(f"#!/bin/sh\n{script}\n")
        (self.tree.planted / "tests/tools/fetch/with").chmod(0o755)
        return self.tree.built("name")

    def test_ours(self):
        """Of this tree: each with its number on is what its patch leaves, with none on there is none; nothing else is
        changed by looking at them.
        """
        def files():
            return {p: p.read_bytes() for p in self.tree.tree.rglob("*") if p.is_file() and ".git" not in p.parts}

        before, found = files(), mutants.mutants("*")
        self.tree.look(found)
        self.assertEqual(files(), before)
        self.assertEqual([str(why) for why in self.tree.alone.values() if isinstance(why, Error)], [])
        plain = self.tree.plain
        for file in {file for bodies in self.tree.switched.values() for file in bodies}:
            of = {number: bodies[file] for number, bodies in self.tree.switched.items() if file in bodies}
            text = planted.switched(file, plain[file], of)
            for number in 0, *self.tree.switched:
                left = planted.pieces(file, with_one_on(text, number))
                between, bodies = planted.pieces(file, plain[file])
                bodies = [of.get(number, {}).get(n, body) for n, body in enumerate(bodies)]
                self.assertEqual(left, (between, bodies), f"{file} {self.tree.names.get(number)}")

    def test_a_kernel(self):
        image = self.tree.work / "made"
        image.write_text("kernel")
        (self.tree.work / ".config").write_text("CONFIG_THP_SWAP=y\n")
        kernel, why = self.built(f"[ $PLANTED = 1 ] && echo {image}")
        self.assertIsNone(why)
        self.assertEqual((kernel.image.read_text(), kernel.symbol("CONFIG_THP_SWAP")), ("kernel", "y"))

    def test_no_kernel(self):
        for said in "building the kernel failed (error[E0308]): see x", "x.patch does not apply to Linux 7.3 (y): z":
            kernel, why = self.built(f"echo 'mm_batch: error: {said}' >&2; exit 1")
            self.assertIsNone(kernel)
            self.assertIn("does not compile", why)
        with self.assertRaisesRegex(Error, "no kernel was built .another mm_batch command"):
            self.built("echo another mm_batch command is building >&2; exit 1")

    def test_how_one_is_planted(self):
        """By a switch, with a build of its own, or not at all."""
        mutant, = mutants.mutants("glue-forgets-the-last-page")
        text = "int x;\nint f(int a)\n{\n\treturn a;\n}\n"
        for old, new, switched, name, line in (("return a", "return 0", [mutant], "switched", "return 0;"),
                                               ("int x", "int y", [], mutant.name, "+int y;")):
            sources = mock.Mock(plain={"mm/x.c": text})
            sources.differing.return_value = {"mm/x.c": text.replace(old, new)}
            with mock.patch.object(planted, "Sources", return_value=sources), mock.patch.object(mutants, "Base"), \
                    mock.patch.object(self.tree, "built") as built:
                self.assertEqual(self.tree.look([mutant]), switched)
                self.tree.build(None if switched else mutant)
            built.assert_called_with(name)
            self.assertIn(line, (self.tree.planted / "patches/planted/0001-planted.patch").read_text())
        sources.differing.side_effect = Error("x does not apply", "y")
        with mock.patch.object(planted, "Sources", return_value=sources), mock.patch.object(mutants, "Base"):
            self.assertEqual(self.tree.look([mutant]), [])
        self.assertEqual(self.tree.build(mutant), (None, "x does not apply: y"))

    def test_one_that_does_not_apply_or_changes_nothing(self):
        sources = mock.Mock(top=self.tree.tree, plain={"rust/x": "1"})
        sources.files.return_value = sources.plain
        sources.touched.return_value = set()
        patch = self.tree.work / "x.patch"
        sources.apply = lambda *given: planted.Sources.apply(sources, *given)
        for text, why in (("--- a/none\n+++ b/none\n@@ -1 +1 @@\n-a\n+b\n", "x does not apply"),
                          ("--- /dev/null\n+++ b/none\n@@ -0,0 +1 @@\n+b\n", "x leaves the kernel as it is")):
            patch.write_text(text)
            with self.assertRaisesRegex(Error, why):
                planted.Sources.differing(sources, patch)
            self.assertFalse((self.tree.tree / "none").exists())

    def test_one_at_a_time(self):
        with self.assertRaisesRegex(Error, "another mm_batch command"):
            mutants.Tree("x86_64", pathlib.Path(self.folder.name))


class FakeTree:
    """Builds nothing: an image's name says what is planted."""

    def __init__(self, folder, alone, broken):
        self.work, self.alone, self.broken, self.builds = pathlib.Path(folder), alone, broken, []

    def look(self, found):
        return [m for m in found if m.name not in self.alone]

    def build(self, mutant=None):
        name = mutant.name if mutant else "switched"
        self.builds.append(name)
        if name in self.broken:
            return None, "does not compile"
        image = self.work / name
        image.write_text("")
        return Kernel(image, "x86_64", "release", SYMBOL), None


class Runs(unittest.TestCase):
    """What is built and booted, and what it comes to."""

    def run_with(self, words, alone=(), broken=()):
        """words: (image, case, whether the bug is on) -> what becomes of it, where that is not what should."""
        def fake_boot(mutant, kernel, _log):
            return kernel, mutant

        def fake_judge(ended, _suite, case):
            return mutants.Outcome(words.get((ended[0].image.name, case, False), "passed"))

        def fake_case(mutant, kernel, _log, switched):
            self.boots.append((kernel.image.name, mutant.case, switched))
            return mutants.Outcome(words.get((kernel.image.name, mutant.case, True), "failed"))

        self.boots = []
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(mutants, "try_case", fake_case), \
                mock.patch.object(mutants, "boot_for", fake_boot), mock.patch.object(mutants, "judge", fake_judge), \
                ThreadPoolExecutor(2) as pool, contextlib.redirect_stdout(io.StringIO()) as out, \
                contextlib.redirect_stderr(io.StringIO()):
            self.tree = FakeTree(folder, alone, broken)
            run = Run(self.tree, [A, B, C], pool)
            code = run.all()
            self.assertEqual([p.name for p in pathlib.Path(folder).iterdir()], [], "an image is left")
        self.out = out.getvalue()
        return code, sorted(mutant.name for mutant, caught in run.caught.items() if not caught)

    def test_all_caught(self):
        self.assertEqual(self.run_with({}), (PASS, []))
        self.assertEqual(self.tree.builds, ["switched"])
        self.assertEqual(sorted(self.boots), [("switched", f"test_{x}", True) for x in "abc"])
        self.assertIn("3 caught, 0 missed", self.out)
        self.assertEqual(self.run_with({("switched", "test_b", True): "complained"}), (PASS, []))
        self.assertIn("in which the kernel complained", self.out)

    def test_one_that_cannot_be_switched(self):
        self.assertEqual(self.run_with({}, alone="b"), (PASS, []))
        self.assertEqual(self.tree.builds, ["switched", "b"])
        self.assertIn(("b", "test_b", False), self.boots)

    def test_what_is_no_catch(self):
        for word in "passed", "skipped", "no result":
            self.assertEqual(self.run_with({("switched", "test_b", True): word}), (FAIL, ["b"]))
            self.assertIn(f"MISSED: kunit mm_batch_contig_free test_b: {word}", self.out)
        self.assertEqual(self.run_with({}, alone="c", broken="c"), (FAIL, ["c"]))
        self.assertIn("not built (does not compile)", self.out)
        for word in "failed", "skipped", "complained", "no result":
            self.assertEqual(self.run_with({("switched", "test_a", False): word}), (FAIL, ["a"]), word)
            self.assertEqual(len(self.boots), 2)

    def test_the_one_with_switches_does_not_compile(self):
        with self.assertRaisesRegex(Error, "T=<name> plants one"):
            self.run_with({}, broken=["switched"])
