# SPDX-License-Identifier: GPL-2.0
"""The verdict on KTAP, and the suites that run after init, tested."""

import pathlib
import platform
import re
import subprocess
import tempfile
import unittest
from unittest import mock

from mmb.kernel.built import built
from mmb import paths
from mmb.base.cache import TOP
from mmb.base.errors import FAIL, PASS
from mmb.paths import model
from mmb.kernel import tree
from mmb.guest import initrd, rootfs, splats
from mmb.guest.boot import Ended
from mmb.suites import expected, ktap, kunit

KTAP_HEAD = "KTAP version 1\n1..1\n    KTAP version 1\n    # Subtest: s\n"


class Ktap(unittest.TestCase):
    def verdict(self, text, skips=None):
        with tempfile.TemporaryDirectory() as folder:
            log = pathlib.Path(folder) / "log"
            log.write_text(text)
            return ktap.verdict(tree.Base().tree, log, skips)

    def test_verdicts(self):
        one_skipped = "    1..2\n    ok 1 a\n    ok 2 b # SKIP no\nok 1 s\n"
        for text, skips, code, line in (
                ("    1..1\n    ok 1 a\nok 1 s\n", None, PASS, "^1 passed, 0 failed, 0 skipped$"),
                ("    1..1\n    not ok 1 a\nnot ok 1 s\n", None, FAIL, r"0 passed, 1 failed, 0 skipped \(s.a\)"),
                # Fewer than planned.
                ("    1..2\n    ok 1 a\nok 1 s\n", None, FAIL, "missing expected subtest"),
                ("    1..1\n    ok 1 a # SKIP no\nok 1 s # SKIP\n", None, FAIL, "only skips"),
                (one_skipped, {"s.b"}, PASS, "1 passed, 0 failed, 1 skipped"),
                (one_skipped, {"s.[bc]"}, PASS, "1 passed, 0 failed, 1 skipped"),
                (one_skipped, {"s.*"}, FAIL, "or not skipped: s.a$"),
                (one_skipped, {"s.b", "s.c"}, FAIL, "or not skipped: s.c$"),
                (one_skipped, set(), FAIL, "unexpectedly skipped, or not skipped: s.b$"),
                ("    1..2\n    ok 1 a\n    ok 2 b\nok 1 s\n", {"s.b"}, FAIL, "or not skipped: s.b$")):
            with self.subTest(text=text, skips=skips):
                got, said = self.verdict(KTAP_HEAD + text, skips)
                self.assertEqual(got, code)
                self.assertRegex(said, line)
        for text in "KTAP version 1\n1..0\n", "Linux version 7.3\n":
            self.assertEqual(self.verdict(text)[0], FAIL)

    def test_suites_of_debugfs(self):
        documents = [KTAP_HEAD + "    1..1\n    ok 1 a\nok 1 s\n",
                     KTAP_HEAD.replace(": s", ": t") + "    1..1\n    not ok 1 b\nnot ok 1 t\n"]
        self.assertEqual(self.verdict(ktap.merged(documents[:1]))[0], PASS)
        # The rest of a line that the kernel has printed meanwhile.
        self.assertEqual(ktap.merged(["\n" + documents[0]]), ktap.merged(documents[:1]))
        self.assertEqual(self.verdict(ktap.merged([""]))[0], FAIL)
        code, line = self.verdict(ktap.merged(documents))
        self.assertEqual(code, FAIL)
        self.assertIn("1 passed, 1 failed", line)


class Splats(unittest.TestCase):
    """What the kernel complains of fails a boot, whatever its tests say."""

    def verdict(self, line):
        with tempfile.TemporaryDirectory() as folder:
            log = pathlib.Path(folder) / "log"
            log.write_text(KTAP_HEAD + "    1..1\n    ok 1 a\nok 1 s\n")
            return ktap.judged(mock.Mock(tree=tree.Base().tree), "name", Ended(PASS, "finished", [line]), log)

    def test_splats(self):
        self.assertEqual(self.verdict("all is well")[0], PASS)
        for line in ("[    1.0] BUG: KASAN: use-after-free in x", "[    1.0] WARNING: mm/x.c:3 at y",
                     "[    1.0] WARNING: possible circular locking dependency detected",
                     "[    1.0] INFO: task sh:1 blocked for more than 120 seconds.",
                     "[    1.0] BUG: Bad page state in process sh  pfn:1",
                     "[    1.0] pagealloc: single bit error", "[    1.0] pagealloc: memory corruption",
                     "[    0.5] WARNING: arch/x86/kernel/smpboot.c:332 at topology_sane.isra.0+0x5e/0x70, CPU#1: swapper/1/0",
                     "[    1.0] Oops: general protection fault, probably for non-canonical address",
                     "[    1.0] ------------[ cut here ]------------ kernel BUG at mm/x.c:1!",
                     "[    1.0] watchdog: BUG: soft lockup - CPU#0 stuck", "[    1.0] inconsistent lock state",
                     "[    1.0] watchdog: CPU1: Watchdog detected hard LOCKUP on cpu 0"):
            code, text = self.verdict(line)
            self.assertEqual(code, FAIL, line)
            self.assertIn("complained", text)
        for line in ("[    0.0] Command line: panic=-1 oops=panic debug_pagealloc=on", "[    0.1] kasan: initialized",
                     "[    0.2] DEBUG: on", "KTAP version 1", "# mm_batch: warning"):
            self.assertEqual(self.verdict(line)[0], PASS, line)

    def test_grep_reads_the_list_alike(self):
        """Both guests' greps: what they find of lines, each of which is told from its neighbours."""
        lines = [pattern.replace("(^|[^A-Z])", "x ") for pattern in splats.PATTERNS if "|" not in pattern[10:]]
        lines += ["fine", "DEBUG: fine", "SPDX-License-Identifier: GPL-2.0", "possible recursive locking", "INFO: rcu_x"]
        expected_ = [line for line in lines if splats.SPLAT.search(line)]
        self.assertEqual(len(lines) - len(expected_), 3)
        with tempfile.TemporaryDirectory() as folder:
            listed = pathlib.Path(folder) / "splats"
            listed.write_text(splats.for_grep())
            for grep in (["grep"], [initrd.busybox(platform.machine()), "grep"]):
                found = subprocess.run([*grep, "-E", "-f", listed], input="\n".join(lines), capture_output=True, text=True)
                self.assertEqual(found.stdout.splitlines(), expected_)

    def test_the_guests_have_it(self):
        """By its name, and none of their own; they look at it before they say that the job is done."""
        run_tests, init = ((TOP / "tests/kernel/guest" / name).read_text() for name in ("run-tests", "init"))
        self.assertIn("grep -m1 -E -f /job/splats", init)
        self.assertNotRegex(run_tests + init, "WARNING|BUG")
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(rootfs, "ext4"):
            top = pathlib.Path(folder)
            initrd.archive(top, "true")
            rootfs.job_image(top, "true")
            self.assertEqual((top / "root/splats").read_text(), splats.for_grep())
            self.assertEqual((top / "job/splats").read_text(), splats.for_grep())
            self.assertIn(f"\n. /job\nworkload=\nno_complaint\necho \"{initrd.DONE}\"\n", (top / "root/init").read_text())


class InTheDebianGuest(unittest.TestCase):
    """What its init and run-tests do with what the kernel said while it booted."""

    def ended(self, log, job):
        run_tests, init = ((TOP / "tests/kernel/guest" / name).read_text() for name in ("run-tests", "init"))
        init = init[init.index("# What the kernel complained of"):]
        with tempfile.TemporaryDirectory() as folder:
            for name, text in (("splats", splats.for_grep()), ("log", log), ("tests", ""), ("job", job),
                               ("run-tests", run_tests.replace("cp -r /job/selftests /scratch/", ":"))):
                pathlib.Path(folder, name).write_text(text.replace("/job/", f"{folder}/"))
            script = f'off() {{ echo "mm_batch: $*"; exit 0; }}\ndmesg() {{ cat {folder}/log; }}\n{init}'
            script = script.replace("/job/", f"{folder}/").replace("trap - EXIT\n", "")
            return subprocess.run(["sh", "-c", script], capture_output=True, text=True).stdout.splitlines()

    def test_a_complaint(self):
        line = "[ 0.5] WARNING: arch/x86/kernel/smpboot.c:332 at topology_sane"
        log, said = f"[ 0.1] up\n{line}\n", f"mm_batch: the kernel complained: {line}"
        # A prompt is told; the selftests are not begun.
        self.assertEqual(self.ended(log, "echo prompt"), [said, "prompt", "mm_batch: job done"])
        self.assertEqual(self.ended(log, ". /job/run-tests"),
                         [said, f"mm_batch: job failed: the kernel complained: {line}"])
        self.assertEqual(self.ended("[ 0.1] up\n", ". /job/run-tests"), ["mm_batch: job done"])


class Boots(unittest.TestCase):
    """Which boots there are, and which cases each must skip: by the paths' declarations."""

    def skips(self, flavour, name):
        suites = next(s for s in kunit.BOOTS[flavour] if s.name == name)
        skipped = kunit.skips(mock.Mock(), suites) & set(paths.PATHS["contig_free"].conditions)
        return {case.split(".")[1].removeprefix("test_") for case in skipped}

    def test_skips(self):
        hooks = {"page_owner", "page_table_check", "page_poison", "init_on_free", "kasan", "alloc_tag", "no_locks",
                 "no_objects", "direct_map", "fault_prepare"}
        self.assertEqual(self.skips("release", "kunit"), hooks)
        self.assertEqual(self.skips("release", "kunit-page-owner"), hooks - {"page_owner"})
        self.assertEqual(self.skips("debug", "kunit"), {"init_on_free", "direct_map"})
        self.assertEqual(self.skips("debug", "kunit-init-on-free"), {"page_owner", "page_poison", "direct_map"})

    def test_a_boot_with_suites_of_its_own(self):
        """Only these must be there, and only theirs be skipped: at boot, and from debugfs."""
        own = model.KunitBoot("own", "release", cpus=2, only="mm_batch_hooks")
        late = model.KunitBoot("late", "release", cpus=2, only="guest_mm_batch", late=True)
        text = ["results: begin guest_mm_batch", *KTAP_HEAD.replace(": s", ": guest_mm_batch").splitlines(),
                "    1..1", "    ok 1 a", "ok 1 guest_mm_batch", "results: end", initrd.DONE]
        prepare = "mm_batch_contig_free.test_fault_prepare"
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(kunit, "boot") as booted, \
                mock.patch.object(kunit, "judged", return_value=(PASS, "passed")) as judged, \
                mock.patch.object(kunit, "boot_to_debugfs") as to_debugfs:
            build = mock.MagicMock(flavour="release")
            build.base.work, build.out.name = pathlib.Path(folder), "k"
            booted.return_value = Ended(PASS, "", ["    # Subtest: mm_batch_hooks"])
            to_debugfs.return_value = Ended(PASS, "", text)
            for run, boot, its, asked, all_of in (
                    (kunit.at_boot, booted, own, "kunit.filter_glob=mm_batch_hooks ", kunit.BOOTS["release"][0]),
                    (kunit.after_init, to_debugfs, late, "in guest_mm_batch; do", None)):
                self.assertEqual(run(build, its), (PASS, "passed"))
                self.assertEqual(boot.call_args.kwargs["cpus"], 2)
                self.assertIn(asked, " ".join(map(str, boot.call_args.args)))
                self.assertNotIn(prepare, judged.call_args.args[4])
                code, line = run(build, all_of)
                self.assertEqual((code, boot.call_args.kwargs["cpus"]), (FAIL, 1))
                self.assertIn("suites missing: mm_batch_pages", line)
                self.assertIn(prepare, judged.call_args.args[4])

    def test_a_boot_for_what_a_kernel_does_not_have(self):
        """It is left out, and said to be; no other is."""
        boots = {boot.name: boot for boot in kunit.BOOTS["release"]}
        build = mock.MagicMock(flavour="release")
        build.symbol.return_value = None
        with mock.patch.object(kunit, "boot") as booted:
            self.assertEqual(kunit.at_boot(build, boots["kunit-page-owner"]),
                             (PASS, "kunit-page-owner: left out, as CONFIG_PAGE_OWNER is not set"))
        booted.assert_not_called()
        self.assertEqual({name for name, boot in boots.items() if boot.symbol},
                         {"kunit-page-owner", "kunit-page-table-check", "kunit-late-2cpu"})

    def test_a_kernel_with_pages_of_16k(self):
        """It has other folios, splits them in front of their slots, and no programs."""
        build = mock.MagicMock(flavour="release", symbol={"CONFIG_ARM64_16K_PAGES": "y"}.get)
        boots = {boot.name: boot for boot in kunit.BOOTS["release"]}
        self.assertIn(" thp_anon=256K:always ", kunit.needs(build))
        self.assertIn("guest_mm_batch_anon_unmap_kept.*", kunit.skips(build, boots["kunit"]))
        self.assertNotIn("guest_mm_batch_anon_unmap_kept.*", kunit.skips(mock.Mock(), boots["kunit"]))
        self.assertEqual(kunit.after_init(build, boots["kunit-late-2cpu"]),
                         (PASS, "kunit-late-2cpu: left out, as CONFIG_THP_SWAP is not set"))
        self.assertEqual(kunit.selftests(build, [])[0], PASS)

    def test_selftests_are_run_once_in_the_debug_kernel(self):
        """Each of ours for modes is quick, or races, in make kselftest."""
        code, line = kunit.selftests(mock.Mock(flavour="debug", arch="x86_64", symbol={}.get), [])
        self.assertEqual((code, line), (PASS, "selftests: left out, as make kselftest DEBUG=1 runs them"))
        listed = expected.listed()
        for script in kunit.payload.SELFTESTS.glob("*.sh"):
            self.assertTrue(listed[script.stem].quick or listed[script.stem].lasts, script)

    def test_time_begins_anew_with_each_result(self):
        how = kunit.limit(mock.MagicMock(flavour="release", arch="x86_64"), 120)
        self.assertEqual(how["timeout"], 120)
        for line, more in (("ok 1 suite", 120), ("        not ok 2 rust", 120), ("not a result", None)):
            self.assertEqual(how["on_line"](line), more)

    def test_parts(self):
        """What is run late is no boot with suites at boot."""
        late = model.KunitBoot("late", "release", late=True)
        with mock.patch.dict(kunit.BOOTS, {"release": [*kunit.BOOTS["release"][:1], late]}), \
                mock.patch.object(kunit, "at_boot") as at_boot, mock.patch.object(kunit, "after_init") as after_init:
            for part in kunit.parts("release")[:-1]:
                part.run(None, [])
        self.assertEqual([call.args[1].name for call in at_boot.call_args_list], ["kunit"])
        self.assertEqual([call.args[1:] for call in after_init.call_args_list], [(late,), ()])

    def test_every_path_is_switched_off_for_the_selftests(self):
        with mock.patch.object(kunit, "boot") as booted, mock.patch.object(kunit.initrd, "archive"), \
                mock.patch.object(kunit, "judged"), mock.patch.object(kunit.payload, "selftests"), \
                mock.patch.object(kunit.initrd, "failure", return_value=None):
            kunit.selftests(mock.MagicMock(symbol={}.get), [])
        for name in paths.ORDER:
            self.assertIn(f" mm_batch.{name}=off", booted.call_args.args[1])


class AfterInit(unittest.TestCase):
    """Needs the built kernel: a suite that lacks what it needs fails, and says what."""

    def test_lacks(self):
        without_swap = re.sub("swap_on {large}\n|swapoff .*\n", "", kunit.LATE_JOB)
        self.assertEqual(kunit.LATE_JOB.count("swap"), without_swap.count("swap") + 3)
        code, line = kunit.after_init(built(self.addCleanup), job=without_swap)
        self.assertEqual(code, FAIL)
        self.assertIn("guest_mm_batch", line)
