# SPDX-License-Identifier: GPL-2.0
"""User Mode Linux: every end of it told apart, nothing left behind, and what it may skip."""

import contextlib
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

    def test_ends(self):
        for job, code, why in (("echo hello", PASS, "powered off"),
                               ("echo Kernel panic - not syncing: VFS; kill -ABRT $$", PANIC, "not syncing: VFS"),
                               ("echo hello; exit 3", FAIL, "linux exited with 3: hello"),
                               ("echo hello; kill -SEGV $$", FAIL, "linux exited with -11: hello"),
                               (STUCK, TIMEOUT, "no end after 2 s; last line: stuck")):
            with self.subTest(job=job), tempfile.TemporaryDirectory() as folder:
                ended = boot(fake(folder, job), timeout=2 if job == STUCK else 300)
                self.assertEqual(ended.code, code)
                self.assertIn(why, ended.why)
                if job == STUCK:
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
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            # It may have ended, or be another's.
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/{pid}/exe") == str(self.build.image.resolve()):
                    found.append(pid)
        return found

    def test_ends(self):
        for arguments, timeout, code, why in (("", 60, PANIC, "Unable to mount root fs"),
                                              (" root=/dev/none rootwait", 5, TIMEOUT, "/dev/none")):
            ended = boot(self.build, f"kunit.enable=0{arguments}", timeout=timeout)
            self.assertEqual(ended.code, code)
            self.assertIn(why, ended.why)
            self.assertEqual(self.left(), [])

    def test_a_verb_that_is_killed(self):
        script = ("import pathlib, sys\nfrom unittest import mock\nfrom mmb.guest.boot import boot\n"
                  "image, log = map(pathlib.Path, sys.argv[1:])\n"
                  "build = mock.Mock(arch='um', image=image, out=image.parent)\n"
                  "boot(build, 'kunit.enable=0 root=/dev/none rootwait', log=log)\n")
        with tempfile.TemporaryDirectory() as folder:
            log = pathlib.Path(folder) / "log"
            verb = subprocess.Popen([sys.executable, "-c", script, self.build.image, log], cwd=TOP / "tests/tools")
            try:
                # Not in the milliseconds in which it tries ptrace: the child that it stops for this would stay.
                while not log.exists() or "Linux version" not in log.read_text():
                    self.assertIsNone(verb.poll())
                    time.sleep(0.1)
                pid, = self.left()
            finally:
                verb.send_signal(signal.SIGKILL)
                verb.wait()
        self.assertTrue(gone(pid))
        self.assertEqual(self.left(), [])

    def test_verdicts(self):
        """No result; a skip that is not declared; a declared one that ran."""
        owner = frozenset({"faults", "page_owner"})
        for only, on, conditions, line in (
                ("none_such", frozenset(), {}, "no test was run"),
                ("mm_batch_hooks", owner, {}, "unexpectedly skipped, or not skipped: mm_batch_hooks.test_page_owner "),
                ("mm_batch_hooks", frozenset(), {"mm_batch_hooks.test_page_reset": "none"},
                 "not skipped: mm_batch_hooks.test_page_reset ")):
            with self.subTest(line=line), mock.patch.dict(kunit.PATHS["contig_free"].conditions, conditions):
                code, said = kunit.at_boot(self.build, model.KunitBoot("uml-odd", "uml", on=on, only=only))
                self.assertEqual(code, FAIL)
                self.assertIn(line, said)


class Declared(unittest.TestCase):
    """What it lacks is said by the paths, and true of it alone."""

    BOOT = model.KunitBoot("uml", "uml", on=frozenset({"faults"}))

    def test_lacks(self):
        self.assertIn("mm_batch_contig_free.test_cma", kunit.skips(mock.Mock(), self.BOOT))
        self.assertNotIn("mm_batch_contig_free.test_cma", kunit.skips(mock.Mock(), kunit.BOOTS["release"][0]))
        self.assertNotIn("mm_batch_file_unmap", kunit.skips(mock.Mock(), self.BOOT))

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
