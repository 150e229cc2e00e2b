# SPDX-License-Identifier: GPL-2.0
"""User Mode Linux: every end of it told apart, nothing left behind, and what it may skip."""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

from mmb.base.cache import TOP
from mmb.base.errors import FAIL, PANIC, PASS, TIMEOUT, Error
from mmb.guest.boot import Ended, boot
from mmb.kernel import kbuild, tree
from mmb.paths import model
from mmb.suites import kunit

# What stands in for the kernel: a session of its own, as it has, with a process besides.
FAKE = "#!/bin/sh\nexec setsid sh -c '{job}'\n"
STUCK = "sleep 1000 & echo $! >{folder}/pid; echo stuck; wait"


def fake(folder, job):
    """A build whose image is a script."""
    image = pathlib.Path(folder) / "linux"
    image.write_text(FAKE.format(job=job.format(folder=folder)))
    image.chmod(0o755)
    return mock.Mock(arch="um", image=image, out=pathlib.Path(folder))


def gone(pid):
    """Whether a process ends, or has, within five seconds. What nobody has waited for has ended."""
    for _ in range(50):
        try:
            if pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except FileNotFoundError:
            return True
        time.sleep(0.1)
    return False


class Ends(unittest.TestCase):
    """Of a script in its place."""

    def ended(self, job, **how):
        with tempfile.TemporaryDirectory() as folder:
            return boot(fake(folder, job), **how)

    def test_ends(self):
        for job, code, why in (("echo hello", PASS, "powered off"),
                               ("echo Kernel panic - not syncing: VFS; kill -ABRT $$", PANIC, "not syncing: VFS"),
                               ("echo hello; exit 3", FAIL, "linux exited with 3: hello"),
                               ("echo hello; kill -SEGV $$", FAIL, "linux exited with -11: hello")):
            ended = self.ended(job)
            self.assertEqual(ended.code, code, job)
            self.assertIn(why, ended.why)

    def test_hang(self):
        with tempfile.TemporaryDirectory() as folder:
            ended = boot(fake(folder, STUCK), timeout=2)
            self.assertEqual((ended.code, ended.why), (TIMEOUT, "no end after 2 s; last line: stuck"))
            self.assertTrue(gone(int((pathlib.Path(folder) / "pid").read_text())))


class Built(unittest.TestCase):
    """Needs what `make uml` built."""

    @classmethod
    def setUpClass(cls):
        cls.addClassCleanup(tree.let_go)
        with mock.patch.dict(os.environ, {"METER": ""}):
            base, staged = tree.stage()
            cls.build = kbuild.Uml(base, staged)
        tree.hold(cls.build.out)
        if not cls.build.image.exists():
            raise Error("no User Mode Linux is built", "make uml")

    def left(self):
        """Its processes that run."""
        return [pid for pid in os.listdir("/proc") if pid.isdigit() and
                os.path.realpath(f"/proc/{pid}/exe") == str(self.build.image.resolve())]

    def test_panic(self):
        ended = boot(self.build, "kunit.enable=0", timeout=60)
        self.assertEqual(ended.code, PANIC)
        self.assertIn("Unable to mount root fs", ended.why)
        self.assertEqual(self.left(), [])

    def test_hang(self):
        ended = boot(self.build, "kunit.enable=0 root=/dev/none rootwait", timeout=5)
        self.assertEqual(ended.code, TIMEOUT)
        self.assertIn("/dev/none", ended.why)
        self.assertEqual(self.left(), [])

    def test_a_verb_that_is_killed(self):
        script = ("import pathlib, sys\nfrom unittest import mock\nfrom mmb.guest.boot import boot\n"
                  "image = pathlib.Path(sys.argv[1])\n"
                  "build = mock.Mock(arch='um', image=image, out=image.parent)\n"
                  "boot(build, 'kunit.enable=0 root=/dev/none rootwait')\n")
        verb = subprocess.Popen([sys.executable, "-c", script, self.build.image], cwd=TOP / "tests/tools")
        try:
            while not self.left():
                self.assertIsNone(verb.poll())
                time.sleep(0.1)
            pid, = self.left()
        finally:
            verb.send_signal(signal.SIGKILL)
            verb.wait()
        self.assertTrue(gone(pid))
        self.assertEqual(self.left(), [])

    def test_no_result(self):
        code, line = kunit.at_boot(self.build, model.KunitBoot("uml-none", "uml", only="none_such"))
        self.assertEqual(code, FAIL)
        self.assertIn("no test was run", line)

    def test_a_skip_that_is_not_declared(self):
        owner = model.KunitBoot("uml-owner", "uml", on=frozenset({"faults", "page_owner"}), only="mm_batch_hooks")
        code, line = kunit.at_boot(self.build, owner)
        self.assertEqual(code, FAIL)
        self.assertRegex(line, "unexpectedly skipped, or not skipped: mm_batch_hooks.test_page_owner ")

    def test_a_declared_skip_that_ran(self):
        with mock.patch.dict(kunit.PATHS["contig_free"].conditions, {"mm_batch_hooks.test_page_reset": "none"}):
            code, line = kunit.at_boot(self.build, model.KunitBoot("uml-ran", "uml", only="mm_batch_hooks"))
        self.assertEqual(code, FAIL)
        self.assertRegex(line, "not skipped: mm_batch_hooks.test_page_reset ")


class Declared(unittest.TestCase):
    """What it lacks is said by the paths, and true of it alone."""

    BOOT = model.KunitBoot("uml", "uml", on=frozenset({"faults"}))

    def test_lacks(self):
        self.assertIn("mm_batch_contig_free.test_cma", kunit.skips(self.BOOT))
        self.assertNotIn("mm_batch_contig_free.test_cma", kunit.skips(kunit.BOOTS["release"][0]))
        self.assertNotIn("mm_batch_file_unmap", kunit.skips(self.BOOT))

    def test_wanted(self):
        """A suite that it lacks need not be there; each other must."""
        there = [suite for suite in kunit.AT_BOOT if suite not in kunit.lacks(self.BOOT)]
        self.assertNotIn("mm_batch_file_unmap", there)
        for suites, code in (there, PASS), (there[1:], FAIL):
            with mock.patch.object(kunit, "boot") as booted, \
                    mock.patch.object(kunit, "judged", return_value=(PASS, "passed")):
                booted.return_value = Ended(PASS, "", [f"    # Subtest: {suite}" for suite in suites])
                self.assertEqual(kunit.at_boot(mock.MagicMock(arch="um", flavour="release"), self.BOOT)[0], code)
            self.assertTrue(booted.call_args.args[1].endswith(" kunit_shutdown=halt"))


class BuiltByKunit(unittest.TestCase):
    def test_a_dropped_symbol(self):
        """What kunit.py says of a configuration that cannot be had is one line."""
        said = "ERROR:root:Not all Kconfig options selected\nMissing: CONFIG_RUST=y\nNote: many options\n"
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(kbuild, "need_space"), \
                mock.patch.object(kbuild, "run", side_effect=Error("building failed", "see")), \
                mock.patch.dict(os.environ, {"CONFIG": ""}):
            os.environ.pop("EXTRA_CONFIG", None)
            build = kbuild.Uml(mock.Mock(work=pathlib.Path(folder)), pathlib.Path(folder))
            build.log.write_text("something else\n")
            with self.assertRaisesRegex(Error, "^building failed: see$"):
                build.make(None)
            build.log.write_text(said)
            with self.assertRaisesRegex(Error, "^the configuration dropped CONFIG_RUST=y: the kernel lacks"):
                build.make(None)


if __name__ == "__main__":
    unittest.main(verbosity=2)
