# SPDX-License-Identifier: GPL-2.0
"""That a machine is as it was, however a run of mm-batch-measure ends."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

from mmb.base.errors import Error
from mmb.measure import putback

# A run that is killed, or interrupted, in its middle.
RUN = """
import pathlib, signal, sys, time
from mmb.measure.putback import Changes, put_text, remove_folder
top = pathlib.Path(sys.argv[1])
signal.signal(signal.SIGTERM, signal.default_int_handler)
try:
    with Changes(top / "run") as changes:
        changes.set(top / "setting", "mine")
        changes.about_to(remove_folder, top / "files")
        (top / "files").mkdir()
        print("middle", flush=True)
        time.sleep(60)
except KeyboardInterrupt:
    sys.exit(130)
"""


class Machine(unittest.TestCase):
    def setUp(self):
        self.top = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.setting, self.files, self.list = self.top / "setting", self.top / "files", self.top / "run/changes.json"
        self.setting.write_text("always defer [madvise] never\n")

    def changes(self):
        return putback.Changes(self.top / "run")

    def is_as_it_was(self):
        self.assertEqual(self.setting.read_text(), "madvise")
        self.assertFalse(self.files.exists() or self.list.exists())

    def change(self, changes):
        changes.set(self.setting, "mine")
        changes.about_to(putback.remove_folder, self.files)
        self.files.mkdir()

    def started(self):
        child = subprocess.Popen([sys.executable, "-c", RUN, self.top], stdout=subprocess.PIPE, text=True)
        self.addCleanup(child.stdout.close)
        self.assertEqual(child.stdout.readline(), "middle\n")
        self.assertEqual((self.setting.read_text(), self.files.exists()), ("mine", True))
        return child


class PutBack(Machine):
    def setUp(self):
        super().setUp()
        # A shell without job control has it ignored in what runs in the background.
        self.addCleanup(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.default_int_handler))

    def test_at_the_end(self):
        with self.changes() as changes:
            self.change(changes)
            self.assertTrue(self.list.exists())
        self.is_as_it_was()

    def test_after_a_failure(self):
        with self.assertRaisesRegex(Error, "no: mend"), self.changes() as changes:
            self.change(changes)
            raise Error("no", "mend")
        self.is_as_it_was()

    def test_the_last_change_first(self):
        with self.changes() as changes:
            changes.set(self.setting, "1")
            changes.set(self.setting, "2")
        self.is_as_it_was()

    def test_after_signals(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            child = self.started()
            child.send_signal(number)
            self.assertEqual(child.wait(30), 130)
            self.is_as_it_was()
            self.setting.write_text("always defer [madvise] never\n")

    def test_a_second_interrupt_is_not_to_leave_half_of_it(self):
        def interrupted(folder):
            os.kill(os.getpid(), signal.SIGINT)
            putback.remove_folder(folder)

        with mock.patch.dict(putback.UNDO, remove_folder=interrupted), self.changes() as changes:
            self.change(changes)
        self.is_as_it_was()
        self.assertEqual(signal.getsignal(signal.SIGINT), signal.default_int_handler)

    def test_by_the_next_run_after_a_kill(self):
        child = self.started()
        child.kill()
        child.wait(30)
        self.assertEqual(self.setting.read_text(), "mine")
        with self.changes():
            self.is_as_it_was()

    def test_one_that_runs_is_left_alone(self):
        child = self.started()
        with self.assertRaisesRegex(Error, "another mm-batch-measure is running"), self.changes():
            self.fail("two at once")
        self.assertEqual(self.setting.read_text(), "mine")
        child.kill()
        child.wait(30)

    def test_what_was_not_made_yet(self):
        """A run that is killed between the list and the change."""
        with self.changes() as changes:
            for undo, argument in ((putback.remove_folder, self.files), (putback.remove_group, self.files),
                                   (putback.swap_off, self.files), (putback.remove_zram, "99999"),
                                   (putback.unload, "no_such_module"), (putback.unload_all, "no_such_module")):
                changes.about_to(undo, argument)
        self.assertFalse(self.list.exists())

    def test_what_cannot_be_put_back_stays_for_the_next(self):
        with self.assertRaisesRegex(Error, "1 of the machine's settings could not"), self.changes() as changes:
            changes.about_to(putback.put_text, self.top / "gone/file", "x")
            self.change(changes)
        self.assertEqual(json.loads(self.list.read_text()), [["put_text", str(self.top / "gone/file"), "x"]])
        self.assertEqual((self.setting.read_text(), self.files.exists()), ("madvise", False))
        (self.top / "gone").mkdir()
        with self.changes():
            self.assertEqual((self.top / "gone/file").read_text(), "x")
        self.assertFalse(self.list.exists())


class Command(unittest.TestCase):
    def test_a_failure_is_one_line(self):
        with self.assertRaisesRegex(Error, r"^sh -c echo no >&2; exit 3 failed \(no\)"):
            putback.command("sh", "-c", "echo no >&2; exit 3")
        with self.assertRaisesRegex(Error, "no no-such-program here"):
            putback.command("no-such-program")

    def test_where_root_has_programs(self):
        path = os.environ["PATH"]
        self.addCleanup(os.environ.__setitem__, "PATH", path)
        os.environ["PATH"] = "/bin:/usr/bin"
        self.assertIn("/sbin", putback.command("sh", "-c", "echo $PATH"))


if __name__ == "__main__":
    unittest.main()
