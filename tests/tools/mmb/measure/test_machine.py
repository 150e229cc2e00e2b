# SPDX-License-Identifier: GPL-2.0
"""mm-batch-measure without a kernel that has mm_batch: what it refuses, runs, prints and keeps."""

import argparse
import contextlib
import io
import json
import pathlib
import random
import tempfile
import unittest
from unittest import mock

from mmb.base.errors import FAIL, PASS, Error
from mmb.measure import kept, machine, putback, timing

PAGES = 100
# What a row of each kind takes per page, by mode.
TAKES = {"off": 30, "c": 20, "rust": 10}


class Machine(unittest.TestCase):
    """A folder with what the kernel has in /sys and /proc, and programs of shell."""

    def setUp(self):
        self.top = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        for path in machine.PATHS:
            self.file(f"modes/{path}", "off\n")
        self.file("cgroup/cgroup.controllers", "cpu memory\n")
        self.file("cgroup/cgroup.subtree_control", "memory\n")
        bench = mock.Mock(**{"read_text.return_value": "3000 100\n"})
        self.file("thp/defrag", "always [madvise] never\n")
        self.file("thp/khugepaged/scan_sleep_millisecs", "10000\n")
        for kind in ("enabled", "shmem_enabled"):
            self.file(f"thp/hugepages-64kB/{kind}", "always inherit [never]\n")
        (self.top / "cache").mkdir()
        group = self.top / "cgroup/mm-batch-measure"
        self.enterContext(mock.patch.multiple(
            machine, HERE=self.top, MODES=self.top / "modes", BENCH=bench, CGROUPS=group.parent,
            GROUP=group, THP=self.top / "thp", FILES=self.top / "cache/files", SWAPS={"zram": lambda _: None},
            Changes=lambda: putback.Changes(self.top / "run"), remove_group=self.removed_group(group)))
        self.enterContext(mock.patch.object(machine.os, "geteuid", lambda: 0))
        takes = "".join(f"{mode}) ns={ns} ;; " for mode, ns in TAKES.items())
        # The mode of the only path that is not off, or off.
        mode = f"case $(grep -hvx off {self.top}/modes/* || echo off) in {takes}esac; "
        self.program("remote", mode + f'[ -d "$7" ] && [ ! -e "$6" ] || exit 9; : >"$6"; echo "$*" >>{self.top}/ran; '
                                      f'echo ns $((ns * {PAGES})) pages {PAGES} cycles $((ns * {PAGES} * 3))')
        self.program("victim", mode + f"echo VICTIM alone 100 meanwhile 50 interrupts {PAGES} pages {PAGES} "
                                      f"ns $((ns * {PAGES}))")

    def removed_group(self, group):
        def remove_group(folder):
            group.rmdir()
        self.enterContext(mock.patch.dict(putback.UNDO, remove_group=remove_group))
        return remove_group

    def file(self, name, text):
        (self.top / name).parent.mkdir(parents=True, exist_ok=True)
        (self.top / name).write_text(text)

    def program(self, name, script):
        self.file(name, f"#!/bin/sh\n{script}\n")
        (self.top / name).chmod(0o755)

    def measured(self, row=None, passes=6):
        args = argparse.Namespace(row=row, passes=passes, swap="zram", out=self.top / "out")
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(io.StringIO()):
            self.assertEqual(machine.measure(args), PASS)
        return said.getvalue()


class Refused(Machine):
    def refused(self, why):
        with self.assertRaisesRegex(Error, why):
            machine.refuse()
        self.assertFalse((self.top / "run").exists())

    def test_nothing_to_refuse(self):
        machine.refuse()

    def test_another_kernel(self):
        with mock.patch.object(machine, "MODES", self.top / "gone"):
            self.refused("^this kernel, .*, has no mm_batch: boot the one that make deb made")

    def test_another_user(self):
        with mock.patch.object(machine.os, "geteuid", lambda: 1000):
            self.refused("are root's to change: sudo mm-batch-measure")

    def test_no_controller(self):
        self.file("cgroup/cgroup.controllers", "cpu\n")
        self.refused("has no memory controller of cgroup v2")

    def test_little_memory(self):
        with mock.patch.object(machine, "memory_mib", lambda: 100):
            self.refused("768 MiB of memory must be available, and 100 are")

    def test_little_disk(self):
        with mock.patch.object(machine.shutil, "disk_usage", lambda _: mock.Mock(free=1 << 20)):
            self.refused("needs 320 MiB free, and has 1")

    def test_one_line_and_no_trace(self):
        """As it is run: on this machine, whose kernel has none."""
        if pathlib.Path("/sys/module/mm_batch").exists():
            self.skipTest("this kernel has mm_batch")
        with mock.patch.object(machine, "MODES", pathlib.Path("/sys/module/mm_batch/parameters")), \
                mock.patch("sys.argv", ["mm-batch-measure"]), contextlib.redirect_stderr(io.StringIO()) as said, \
                mock.patch.object(machine.signal, "signal"):
            self.assertEqual(machine.main(), FAIL)
        self.assertRegex(said.getvalue(), r"^mm_batch: error: this kernel[^\n]*\n$")

    def test_passes(self):
        self.assertEqual(machine.passes("6"), 6)
        for text in ("5", "1001", "-7", "x", ""):
            with self.assertRaisesRegex(argparse.ArgumentTypeError, "is no number of passes"):
                machine.passes(text)


class Rows(Machine):
    def test_each_is_one_that_can_be_run(self):
        names = [row.workload for row in machine.known()]
        self.assertEqual(len(names), len(set(names)))
        self.assertEqual({row.path for row in machine.known()}, set(machine.PATHS))
        self.assertEqual({row.command.split()[0] for row in machine.known()}, set(machine.WORKLOADS))

    def test_one_that_does_not_exist(self):
        with self.assertRaisesRegex(Error, "--row=nothing matches no row"):
            self.measured("nothing")

    def test_one_of_each_kind(self):
        text = self.measured("^(order9|ext4-64k|zero-64k|victim-4cpu)$")
        data = json.loads((self.top / "out/results.json").read_text())
        self.assertEqual({found["workload"] for found in data["results"]},
                         {"order9", "ext4-64k", "zero-64k", "victim-4cpu"})
        self.assertEqual(data["left_out"], {})
        self.assertEqual((self.top / "out/table.txt").read_text(), text)
        zero, = [line for line in text.splitlines() if line.startswith("zero-64k ") and "cycles" not in line]
        self.assertEqual(zero.split(), ["zero-64k", "30.0", "-", "10.0", "3.00", "±0%", "(I)", "-"])
        cycles, = [line for line in text.splitlines() if line.startswith("ext4-64k ") and "cycles" in line]
        self.assertEqual(cycles.split()[1:], ["cycles", "90.000", "60.000", "30.000", "3.00"])
        ratio, = [r for r in data["ratios"] if (r["workload"], r["over"]) == ("ext4-64k", "c")]
        self.assertEqual((ratio["median"], ratio["low"], ratio["high"], ratio["under"]), (2, 2, 2, "rust"))

    def test_the_machine_is_as_it_was(self):
        self.measured("^zero-64k$")
        self.assertEqual((self.top / "thp/defrag").read_text(), "madvise")
        self.assertEqual((self.top / "thp/khugepaged/scan_sleep_millisecs").read_text(), "10000")
        self.assertEqual({file.read_text() for file in (self.top / "modes").iterdir()}, {"off"})
        self.assertEqual((self.top / "thp/hugepages-64kB/enabled").read_text(), "never")
        self.assertFalse((self.top / "cache/files").exists() or (self.top / "cgroup/mm-batch-measure").exists())

    def test_what_a_program_is_given(self):
        self.measured("^zero-64k$")
        first, *others = (self.top / "ran").read_text().splitlines()
        where = f"{self.top}/cache/files/file {self.top}/cgroup/mm-batch-measure"
        self.assertEqual(first, f"anon 64 16 zero pageout {where} check")
        self.assertEqual((len(others), others[-1]), (13, f"anon 64 16 zero pageout {where}"))

    def test_a_row_that_fails_is_left_out_with_its_reason(self):
        self.program("victim", "echo victim: no CPU 1 >&2; exit 1")
        text = self.measured("^(zero-64k|victim-4cpu)$")
        self.assertRegex(text, r"left out: victim-4cpu, mode (off|rust): victim: no CPU 1\n$")
        self.assertEqual(list(json.loads((self.top / "out/results.json").read_text())["left_out"]), ["victim-4cpu"])

    def test_all_rows_fail(self):
        self.program("remote", "exit 7")
        with self.assertRaisesRegex(Error, "no row came to its end"):
            self.measured("^zero-64k$")
        self.assertEqual((self.top / "thp/defrag").read_text(), "madvise")

    def test_no_counters(self):
        self.program("remote", f"echo ns 500 pages {PAGES}")
        text = self.measured("^zero-64k$")
        self.assertIn("Not there: perf's counters", text)
        self.assertNotIn("counted", text)

    def test_a_mode_that_somebody_else_sets(self):
        with mock.patch.object(machine, "put_text"), self.assertRaisesRegex(Error, "the mode of anon_unmap is off"):
            machine.set_mode("anon_unmap", "rust")

    def test_what_root_wrote_is_the_users(self):
        with mock.patch.dict(machine.os.environ, SUDO_UID="7", SUDO_GID="8"), \
                mock.patch.object(machine.os, "chown") as chown:
            self.measured("^zero-64k$")
        self.assertEqual({call.args[1:] for call in chown.call_args_list}, {(7, 8)})
        self.assertIn(self.top / "out/results.json", [call.args[0] for call in chown.call_args_list])

    def test_other_paths_keep_their_mode(self):
        """A row finds what the machine has, and not what the row before it left."""
        self.file("modes/dirty_flush", "rust\n")
        row = next(row for row in machine.known() if row.workload == "zero-64k")
        machine.GROUP.mkdir()
        self.program("remote", f"grep -h . {self.top}/modes/* | tr '\\n' ' ' >{self.top}/found; echo ns 1 pages 1")
        self.assertEqual(machine.run(row, "rust", False), {"ns": 1})
        rust = {"anon_unmap", "dirty_flush"}
        self.assertEqual((self.top / "found").read_text().split(),
                         ["rust" if name in rust else "off" for name in sorted(machine.PATHS)])
        self.assertEqual((self.top / "modes/anon_unmap").read_text(), "off")

    def test_time_that_is_left(self):
        runs = machine.Runs([row for row in machine.known() if row.workload == "zero-64k"])
        with contextlib.redirect_stderr(io.StringIO()) as said, \
                mock.patch.object(machine, "monotonic", iter(range(0, 10000, 10)).__next__):
            machine.GROUP.mkdir()
            runs.all(6, random.Random(1))
        self.assertRegex(said.getvalue(), r"  pass 3 of 6, \d runs \(about \d+ (s|min) left\)")


class Kept(unittest.TestCase):
    def test_with_a_plot_and_without(self):
        row = machine.known()[0]
        lines = [timing.Timed(row, {mode: [ns + 0.1 * n for n in range(8)] for mode, ns in TAKES.items()})]
        data = {"cpu": "a CPU", "ratios": [entry for line in lines for entry in timing.quotients(line)]}
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name) / "out"
            with mock.patch.dict("sys.modules", {"mmb.measure.plots": None}):
                self.assertEqual(kept.keep(folder, data, "text"), ["results.json", "table.txt"])
            self.assertEqual((folder / "table.txt").read_text(), "text\n")
            try:
                import matplotlib  # noqa: F401
            except ImportError:
                self.skipTest("no matplotlib")
            self.assertEqual(kept.keep(folder, data, "text")[2:], ["times.svg"])
            self.assertIn("<svg", (folder / "times.svg").read_text())


if __name__ == "__main__":
    unittest.main()
