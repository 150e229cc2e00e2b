# SPDX-License-Identifier: GPL-2.0
"""make kselftest and the guest, themselves tested: each way a test can go wrong is seen as such."""

import os
import pathlib
import pty
import re
import select
import sys
import tempfile
import time
import unittest
from fnmatch import fnmatchcase
from unittest import mock

from mmb.kernel.built import built
from mmb import paths
from mmb.base.errors import FAIL, PANIC, PASS, TIMEOUT, Error
from mmb.kernel import tree
from mmb.guest import payload, rootfs, upstream
from mmb.suites import expected, kselftest, ktap
from mmb.suites.expected import DONE, GONE, HANG, KILLED, PANICKED, SPLAT, Result


def cases(ok, **others):
    """The subtests that are ok, or how else they ended: words, or a list."""
    return {(name, status): 1 for status, names in ({"ok": ok} | others).items()
            for name in (names.split() if isinstance(names, str) else names)}


OK3 = cases("a b c")


def row(name="t", ok=3, more="", seconds=10, run="ours/t.sh"):
    return f'[test.{name}]\nrun = "{run}"\npaths = ["contig_free"]\nseconds = {seconds}\nok = {ok}\n{more}\n'


def listed(more="", ok=3):
    return expected.parse(row(ok=ok, more=more))[0]["t"]


class Judging(unittest.TestCase):
    """Subtests against the list, and modes against `off`."""

    def judged(self, off, rust, test=None):
        runs = {"off": [Result(DONE, cases=c) for c in off], "rust": [Result(DONE, cases=c) for c in rust]}
        return [kselftest.judge(test or listed(), runs, mode) for mode in ("off", "rust")]

    def test_against_the_list(self):
        skips = cases("a b", skip="c")
        skip = 'skip = [{ count = 1, subtests = "c*" }]'
        for wanted, got in ((listed(), OK3), (listed(skip, 2), skips),
                            (listed('unstable = [{ subtests = "c", why = "its time varies" }]', 2), OK3),
                            (listed('unstable = [{ subtests = "c", why = "" }]', 2), cases("a b", fail="c"))):
            self.assertEqual(self.judged([got], [got], wanted), [([], None)] * 2)
        for got, wanted, problem in (
                (cases("a b c", fail="d"), listed(), "not ok: 'd'"),
                (cases("a b"), listed(), "2 subtests are ok, listed are 3"),
                (skips, listed(), "skipped, which is not listed: 'c'"),
                (OK3, listed(skip, 2), "0 subtests 'c*' are 'skip', listed are 1")):
            with self.subTest(problem=problem):
                self.assertIn(problem, self.judged([got], [got], wanted)[0][0][0])

    def test_by_a_symbol(self):
        """What is skipped without it, and what is there with it."""
        skip = """skip = [{ count = 1, subtests = "c* d", without = "CONFIG_X", why = "why" },
                         { count = 1, subtests = "e" }]"""
        for more, ok, lacks, has, wrong in (
                (skip, 2, cases("a b", skip=["c d", "e"]), cases("a b c", skip="e"), 2),
                ('more = [{ count = 1, with = "CONFIG_X" }]', 3, OK3, cases("a b c d"), 1)):
            for value in None, "y":
                test = listed(more, ok)
                test.in_kernel({"CONFIG_X": value}.get)
                for got, problems in (lacks, wrong if value else 0), (has, 0 if value else wrong):
                    self.assertEqual(len(self.judged([got], [got], test)[0][0]), problems)

    def test_differences(self):
        """As many are ok, so the list alone would not notice; a number in a name is none."""
        off, rust = self.judged([OK3], [cases("a b x")])
        self.assertEqual((off[0], rust[0]), ([], ["differs from off: 'c', 'x'"]))
        for one, other, found in (("pages 0 (0.0%)", "pages 4 (0.1%)", 0), ("pages 0", "frames 0", 1)):
            results = [Result(DONE, cases=cases([name])) for name in (one, other)]
            self.assertEqual(len(expected.differences(listed(), *results)), found)

    def test_three_runs(self):
        bad = {("a", "ok"): 1}
        self.assertEqual(self.judged([OK3] * 3, [bad, OK3, OK3])[1][0], [])
        self.assertIn("in 1 of 3 runs", self.judged([OK3] * 3, [bad, OK3, OK3])[1][1])
        self.assertTrue(self.judged([OK3] * 3, [bad, OK3, bad])[1][0])
        self.assertIn("unstable in off", self.judged([bad, OK3, OK3], [OK3])[0][0][0])

    def test_ends(self):
        for end, code in ((KILLED, TIMEOUT), (HANG, TIMEOUT), (SPLAT, FAIL), (PANICKED, PANIC), (GONE, FAIL)):
            runs = {"t": {"off": [Result(DONE, cases=OK3)], "rust": [Result(end, "why")]}}
            with mock.patch("builtins.print"):
                got = kselftest.verdict([listed()], ["off", "rust"], runs, "/nowhere")
            self.assertEqual(got, code, end)


class List(unittest.TestCase):
    def test_the_committed_list(self):
        tests, out = expected.parse(expected.LIST.read_text())
        self.assertFalse(set(tests) & set(out))
        self.assertLessEqual({p for t in tests.values() for p in t.paths}, set(paths.ORDER))
        for path in paths.ORDER:
            self.assertIn(path, tests[f"{path}_modes"].paths)
        self.assertTrue(any(t.quick for t in tests.values()))

    def test_what_the_gate_runs_is_run_or_left_out_with_a_reason(self):
        """Of mm-ci, which runs run_vmtests.sh, a group after the other: by program and arguments."""
        def without_folder(run):
            program, *arguments = run.split()
            return " ".join([pathlib.PurePath(program).stem, *arguments])

        tests, out = expected.parse(expected.LIST.read_text())
        script = (tree.Base().tree / "tools/testing/selftests/mm/run_vmtests.sh").read_text()
        # By -a alone.
        script, matrix = re.subn(r"^run_gup_matrix\(\) \{\n.*?^\}\n", "", script, flags=re.M | re.S)
        self.assertEqual(matrix, 1)
        for variable, value in ("${uffd_stress_bin}", "uffd-stress"), ("${SPLIT_HUGE_PAGE_TEST_XFS_PATH}", "/scratch"):
            script = script.replace(variable, value)
        gate = re.findall(r'CATEGORY="(\S+)" run_test (?:sudo -u nobody sh -c |bash )?(.+)', script)
        self.assertGreater(len({group for group, _ in gate}), 25)
        ours = {without_folder(test.run) for test in tests.values()}
        self.assertFalse(ours & set(out))
        self.assertTrue(all(out.values()))
        for group, run in gate:
            run = without_folder(run)
            self.assertTrue(run in ours or any(fnmatchcase(run, left) for left in out), f"{run} of {group}")

    def test_bad_rows(self):
        for text in ("[test.t", "[what]", "[test.t]\nok = 1", row(seconds='"x"'), row(more="quicker = true"),
                     row(more='boot = { fast = true }'), row(more='skip = [{ count = 1, glob = "*" }]'),
                     row() + "[more]\nx = 1\n"):
            with self.assertRaisesRegex(Error, "expected.toml.* is not understood"):
                expected.parse(text)
        with self.assertRaisesRegex(Error, "more than 5 unstable"):
            listed('unstable = [' + "".join(f'{{ subtests = "{n}", why = "why" }},' for n in range(6)) + "]")

    def test_boots(self):
        for given, wanted in (("", {"icount": False, "threads": False, "slower": 0}),
                              ("boot = { threads = true, cpus = 3, slower = 9 }",
                               {"icount": False, "threads": True, "slower": 9, "cpus": 3}),
                              ("boot = { in_step = true }", {"icount": "in step", "threads": False, "slower": 0})):
            boot = listed(given).boot
            self.assertEqual(boot.options("x86_64"), wanted)
            self.assertEqual(boot.options("arm64"), {k: v for k, v in wanted.items() if k not in ("threads", "slower")})

    def test_batches_are_for_tests_that_name_them(self):
        tests = expected.parse(row(more='before = "true"') + row("u") + row("v").replace(
            "contig_free", 'anon_unmap", "folio_batch'))[0]
        off = 'echo off >"$params/folio_batch"'
        self.assertEqual([kselftest.before(tests[name]) for name in "tuv"], [f"{off}\ntrue", off, ""])

    def test_choice(self):
        text = row(more="lasts = true", run="ours/t.sh a") + row("u")
        for given, modes in (({}, ["rust"]), ({"MODE": "off"}, ["off"])):
            with mock.patch.dict(os.environ, {"MINUTES": "2", "T": "", "QUICK": "", "MODE": ""} | given):
                found, got = kselftest.asked(text)
            self.assertEqual([(t.name, t.run, t.limit(6)) for t in found], [("t", "ours/t.sh a 120", 180)])
            self.assertEqual(got, modes)
        with mock.patch.dict(os.environ, {"MINUTES": "2", "T": "u"}), \
                self.assertRaisesRegex(Error, "T=u MINUTES=2 matches no test"):
            kselftest.asked(text)

    def test_what_an_architecture_alone_has(self):
        text = row(more='arch = "x86_64"') + row("u")
        for arch, wanted in (("", ["t", "u"]), ("x86_64", ["t", "u"]), ("arm64", ["u"])):
            with mock.patch.dict(os.environ, {"ARCH": arch, "T": "", "QUICK": "", "MINUTES": ""}):
                self.assertEqual([t.name for t in kselftest.asked(text)[0]], wanted)


class Output(unittest.TestCase):
    """What kunit.py's parser makes of selftests' output."""

    def subtests(self, text):
        with tempfile.TemporaryDirectory() as folder:
            return ktap.subtests(tree.Base().tree, text, pathlib.Path(folder) / "log")

    def test_verdicts(self):
        for text, found in (
                ("TAP version 13\n1..3\n# words\nok 1 a\nnot ok 2 b\nok 3 c # SKIP no\n",
                 ([("a", "ok"), ("b", "fail"), ("c", "skip")], None)),
                ("TAP version 13\n1..1\nok 1 # XFAIL of hugetlb\n", ([("XFAIL of hugetlb", "ok")], None)),
                # No version, and colours.
                ("1..1\n\x1b[32mok 1 a\x1b[0m\n", ([("a", "ok")], None)),
                ("Segmentation fault\n", ([], "no result")),
                ("TAP version 13\n1..0 # SKIP no zswap\n", ([], "1..0 # SKIP no zswap"))):
            self.assertEqual(self.subtests(text), found)
        self.assertIn("missing expected subtest", self.subtests("TAP version 13\n1..2\nok 1 a\n")[1])


# What a test of its own can do to the guest, and how that must end.
BAD = {
    "good": ("echo 1..1; echo ok 1 a", DONE),
    "off-only": ("echo 1..1; grep -q contig_free=off /proc/cmdline && echo ok 1 a || echo not ok 1 a", DONE),
    "splat": ("echo 1..1; echo ok 1 a; echo 'WARNING: at mm' >/dev/kmsg", SPLAT),
    "limit": ("sleep 1000", KILLED),
    "exit": ("echo 1..1; echo ok 1 a; exit 3", DONE),
    "hang": ("busybox killall -STOP timeout; sleep 1000", HANG),
    "panic": ("echo 2 >/proc/sys/vm/panic_on_oom; cd /sys/fs/cgroup; mkdir x; echo 4M >x/memory.max; "
              "echo 0 >x/memory.swap.max; echo 0 >x/cgroup.procs; head -c 64M /dev/zero | tail", PANICKED),
    "alone": ("echo 1..1; cd /sys/module/mm_batch/parameters; grep -q off folio_batch && echo ok 1 a || echo not ok 1",
              DONE),
    "last": ("echo 1..1; echo ok 1 a", DONE),
    "cpus": ("echo 1..1; [ $(nproc) = 4 ] && echo ok 1 a || echo not ok 1 a", DONE),
}


class Boots(unittest.TestCase):
    """Needs the built kernel: the guest, with tests that misbehave."""

    @classmethod
    def setUpClass(cls):
        cls.build = built(cls.addClassCleanup)

    def test_each_end(self):
        tests = list(expected.parse("".join(
            row(name, 1, "boot = { threads = true, cpus = 4 }" if name == "cpus" else "",
                3 if end in (KILLED, HANG) else 30, f"ours/{name}.sh") for name, (_, end) in BAD.items()))[0].values())
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as scripts:
            for name, (text, _) in BAD.items():
                script = pathlib.Path(scripts) / f"{name}.sh"
                script.write_text(f"#!/bin/bash\n{text}\n")
                script.chmod(0o755)
            with mock.patch.object(payload, "SELFTESTS", pathlib.Path(scripts)), \
                    mock.patch.object(kselftest, "SLACK", 20):
                guest = kselftest.Guest(self.build, [], tests, pathlib.Path(folder))
                off = guest.all(tests, "off", lambda *_: None)
                rust = guest.all([t for t in tests if t.name in ("off-only", "alone")], "rust", lambda *_: None)
        self.assertEqual({n: r.end for n, r in off.items()}, {n: end for n, (_, end) in BAD.items()})
        self.assertEqual(off["exit"].error, "exit code 3, though no subtest failed")
        for name in ("last", "cpus"):
            self.assertEqual(off[name].cases, {("a", "ok"): 1}, name)
        self.assertEqual(expected.differences(tests[1], off["off-only"], rust["off-only"]), ["differs from off: 'a'"])
        # It is of no path of batches.
        self.assertEqual(rust["alone"].cases, {("a", "ok"): 1})

    def test_a_program_of_ours_that_does_not_compile(self):
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as sources, \
                mock.patch.object(payload, "SELFTESTS", pathlib.Path(sources)):
            for text, error in (("int main(void) { return 0; }", None),
                                ("int main(void) { return no; }", "undeclared"),
                                ("int main(void) { int unused; }", "unused variable")):
                (pathlib.Path(sources) / "one.c").write_text(text)
                if not error:
                    kselftest.Guest(self.build, [], [], pathlib.Path(folder))
                    continue
                with self.assertRaisesRegex(Error, f"building one.c failed .*{error}.* see .*one.log"):
                    kselftest.Guest(self.build, [], [], pathlib.Path(folder))

    def test_job_that_fails(self):
        with tempfile.TemporaryDirectory() as folder:
            for job, why in (("false", "mm_batch: job failed: exit code 1"), ("exit 3", "job failed: init ended")):
                ended = rootfs.boot_guest(self.build, rootfs.job_image(pathlib.Path(folder), job), timeout=60)
                self.assertEqual(ended.code, FAIL)
                self.assertIn(why, ended.why)

    def test_disks_are_left_as_they_were(self):
        with tempfile.TemporaryDirectory() as folder:
            job = "[ ! -e /scratch/seen ] && [ ! -e /seen ] && : >/scratch/seen && : >/seen && sync"
            image = rootfs.job_image(pathlib.Path(folder), job)
            for _ in range(2):
                self.assertEqual(rootfs.boot_guest(self.build, image, timeout=60).code, PASS)


class Shell(unittest.TestCase):
    """Needs the built kernel, as a user of make shell does."""

    def test_shell(self):
        child, terminal = pty.fork()
        if not child:
            os.execvp(sys.executable, [sys.executable, "-m", "mmb", "shell"])
        # Each waits for what only the command prints: the terminal's echo of it may come before bash reads it.
        # What is to be interrupted says itself that it is there: bash may miss it between two commands.
        text = b""
        for send, wait in ((b"", b":~# "), (b"swapon --show; echo end$((1))\n", b"end1"), (b"", b":~# "),
                           (b"sh -c 'echo begin$((2)); exec sleep 600'\n", b"begin2"), (b"\x03", b":~# "),
                           (b"echo end$((2))\n", b"end2"), (b"", b":~# "), (b"exit\n", b"job done")):
            os.write(terminal, send)
            text = self.read(terminal, wait, text)
            self.assertIn(wait, text)
            # What came with it is for the next.
            text = text.partition(wait)[2]
        self.assertEqual(os.waitpid(child, 0)[1], 0)

    def read(self, terminal, until, text, seconds=120):
        end = time.monotonic() + seconds
        while until not in text and time.monotonic() < end:
            if select.select([terminal], [], [], 1)[0]:
                text += os.read(terminal, 65536)
        return text


class Upstream(unittest.TestCase):
    def test_names_of_what_does_not_compile(self):
        with tempfile.TemporaryDirectory() as folder:
            log = pathlib.Path(folder) / "log"
            log.write_text("droppable.c:1:1: error: no\n"
                           "make[1]: *** [../lib.mk:228: /x/selftests/kselftest/mm/droppable] Error 1\n"
                           "make: *** [Makefile:190: install] Error 2\n")
            self.assertEqual(upstream.failed(log), ["mm/droppable"])

    def test_what_the_probe_leaves(self):
        """Its answers are of another system: all of them are removed before a build."""
        makefile = (tree.Base().tree / "tools/testing/selftests/mm/Makefile").read_text()
        written = re.findall(r"^EXTRA_CLEAN \+= (.*local_config.*)$", makefile, re.M)
        self.assertEqual(sorted(" ".join(written).split()), sorted(upstream.LEFT))

    def test_a_program_that_is_not_built(self):
        build = built(self.addCleanup)
        with self.assertRaisesRegex(Error, "were not built: mm/none"):
            upstream.programs(build, rootfs.tree(build.arch), ["mm/none", "mm/cow"])
