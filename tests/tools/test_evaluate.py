# SPDX-License-Identifier: GPL-2.0
"""make evaluate, itself tested: what a row's runs print, what is made of it, and what is refused."""

import dataclasses
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest
from unittest import mock

from built import built
from mmb import evaluate, report, rows
from mmb.common import TOP, Error

ROW = rows.Row("file_unmap", "w", "m", "", 1, limit=0.75, gain=4, more=("n",))


def result(mode, metric, value, workload="w"):
    return f"RESULT file_unmap {workload} {mode} {metric} {value}"


def console(**by_mode):
    """What a boot prints: of each mode, the values of m; those of n are ten times as large."""
    return [line for mode, values in by_mode.items() for value in values
            for line in (result(mode, "m", f"{value:.3f}"), "words", result(mode, "n", f"{10 * value:.3f}"))]


def written(lines, config="release", limits=True, scale="short"):
    """results.json and the report."""
    build = mock.Mock(arch="x86_64", named=config)
    build.base.version = "7.2.0"
    build.symbol.return_value = "y"
    build.toolchain.return_value = {"rustc": "1", "clang": "2", "llvm_match": True, "inline_helpers": True}
    with mock.patch.object(report.subprocess, "run", return_value=mock.Mock(stdout="version 7.2.1")):
        data = report.results(build, "commit", lines, scale, "icount")
    return data, report.markdown(build, lines, data, "icount", limits)


class Results(unittest.TestCase):
    def lines(self, text, of=ROW):
        return report.lines_of([of], report.collect(text))

    def problems(self, off=(1000,), **by_mode):
        (line,), missing = self.lines(console(off=off, **by_mode))
        self.assertEqual(missing, [])
        return list(line.problems(icount=True))

    def test_limit_and_noise(self):
        self.assertEqual(self.problems(c=[100, 100.1], rust=[75.1]), [])
        self.assertEqual(len(self.problems(c=[100, 100], rust=[75.2])), 1)
        self.assertEqual(len(self.problems(c=[100, 101], rust=[50.0])), 1)

    def test_gain(self):
        self.assertEqual(self.problems(off=[280], c=[100], rust=[70]), [])
        self.assertEqual(self.problems(off=[279], c=[100], rust=[70]), ["w: off/Rust 3.99 is below 4"])

    def test_several_metrics(self):
        (line,), _ = self.lines(console(c=[100, 101, 100], off=[500], rust=[70]))
        self.assertEqual(line.by_mode, {"c": [100, 101, 100], "off": [500], "rust": [70]})
        self.assertEqual(line.more, {"n": {"c": [1000, 1010, 1000], "off": [5000], "rust": [700]}})

    def test_what_is_missing(self):
        text = console(c=[100], off=[500], rust=[70])
        for gone, missing in ((" rust n ", "w has no n"), (" off m ", "w has no m"), (" n ", "w has no n")):
            self.assertEqual(self.lines([line for line in text if gone not in line]), ([], [missing]))

    def test_another_rows_results(self):
        text = [line.replace(" w ", " x ") for line in console(c=[100], off=[500], rust=[70])]
        self.assertEqual(self.lines(text), ([], ["w has no m", "w has no n"]))

    def test_written_down(self):
        (line,), _ = self.lines(console(c=[100, 102], off=[500], rust=[70]))
        found = written([line])[0]["results"]
        self.assertEqual([(r["metric"], r["mode"], r["median"]) for r in found],
                         [("m", "off", 500), ("m", "c", 101), ("m", "rust", 70),
                          ("n", "off", 5000), ("n", "c", 1010), ("n", "rust", 700)])


class Written(unittest.TestCase):
    """The report, of all rows."""

    def lines(self, of=rows.ROWS):
        values = {"c": [100e6, 102e6], "off": [500e6], "rust": [70e6]}
        return [report.Line(row, values, {metric: values for metric in row.more}) for row in of]

    def test_a_table_for_each_path(self):
        first, *sections = written(self.lines())[1].split("\n## ")
        self.assertIn("one CPU (two: ext4-64k-2cpu), NUMA on", first)
        self.assertEqual([s.split()[0] for s in sections], ["contig_free", "file_unmap"])
        for text, path in zip(sections, ("contig_free", "file_unmap")):
            named = [line.split(" | ")[0].removeprefix("| ") for line in text.splitlines() if line.startswith("| ")]
            here = [row for row in rows.ROWS if row.path == path]
            self.assertEqual(named, ["row", *(r.workload for r in here)] + (
                ["row, in millions", *(r.workload for r in here)] if path == "file_unmap" else []))
        self.assertIn("| ext4-64k | insn_total | 500.000 | 101.000 | 70.000 | 0.693 | 7.14 |", sections[1])
        self.assertIn("32 MiB of clean pages", sections[1])

    def test_the_command_that_wrote_it(self):
        self.assertIn("`make evaluate`", written(self.lines())[1])
        self.assertIn("`make evaluate SCALE=full`", written(self.lines(), scale="full")[1])

    def test_some_rows(self):
        text = written(self.lines([rows.ROWS[0]]))[1]
        self.assertIn("one CPU, NUMA on", text)
        self.assertNotIn("file_unmap", text)
        self.assertNotIn("in millions", text)

    def test_no_limits_in_another_configuration(self):
        data, text = written(self.lines(), "distro", limits=False)
        self.assertEqual(data["configuration"], "distro")
        self.assertIn("with tests/kernel/config/distro.config: shown, without limits", text)
        self.assertIn("`make evaluate CONFIG=distro`", text)
        self.assertIn("shown, without limits.\nThe release kernel with what Debian's", text)
        self.assertIn("are in the release kernel as well.)\nHooks", text)
        self.assertIn("| 0.693 | - | - | 7.14 |", text)
        self.assertNotIn("| 1.02 |", text)
        bad = report.Line(ROW, {"c": [100, 100], "rust": [99], "off": [100]})
        self.assertEqual((len(list(bad.problems(True))), list(bad.problems(True, limits=False))), (2, []))
        # That a figure is no figure is another matter.
        noisy = report.Line(ROW, {"c": [100, 110], "rust": [70], "off": [500]})
        self.assertEqual(len(list(noisy.problems(True, limits=False))), 1)


class RowsOfTheTable(unittest.TestCase):
    def test_each_has_a_boot_and_a_unit(self):
        for row in rows.ROWS:
            self.assertIn(row.boot, rows.BOOTS)
            self.assertIn(row.metric, report.UNITS)

    def test_a_job_has_one_kind_of_boot_and_every_mode(self):
        for row in rows.ROWS:
            runs = [line for line in rows.job([row], "short", 3, 1).splitlines() if line.startswith("row ")]
            self.assertEqual([line.split()[3] for line in runs], rows.modes(3))
            self.assertEqual({line.split()[4] for line in runs}, {",".join((row.metric, *row.more))})

    def test_longer_is_longer(self):
        for row in rows.ROWS:
            self.assertNotEqual(rows.job([row], "short", 3, 1), rows.job([row], "short", 3, 4))
            self.assertNotEqual(rows.job([row], "short", 3, 1), rows.job([row], "full", 3, 1))


    def test_what_is_mapped_fits(self):
        for given, memory, disk in (("", 2048, 2048), ("32", 2048, 2048), ("10240", 13824, 12800)):
            with mock.patch.dict(os.environ, {"RECLAIM_MIB": given}), \
                    mock.patch.object(rows, "scratch_image", lambda mib: mib):
                guest = rows.BOOTS["reclaim"].guest()
            self.assertEqual((guest["memory"], guest["drives"]), (memory, [disk]))
            self.assertIn(" init_on_alloc=0", guest["arguments"])

    def test_the_size_reaches_the_workload(self):
        for given, mib in (("", "32"), ("10240", "10240")):
            with mock.patch.dict(os.environ, {"RECLAIM_MIB": given}):
                text = rows.job([r for r in rows.ROWS if r.boot == "reclaim"], "full", 1, 4)
            self.assertEqual({line.split()[8] for line in text.splitlines() if line.startswith("row ")}, {mib})
            self.assertIn(f"\nswap_on {max(512, int(mib))}\n", text)


class InTheGuest(unittest.TestCase):
    """lib.sh's row() in a shell of the host's, whose PATH has what it needs and no more."""

    def row(self, workload, metrics, idle="echo 0"):
        with tempfile.TemporaryDirectory() as path:
            for tool in ("awk", "sh"):
                os.symlink(shutil.which(tool), f"{path}/{tool}")
            script = f""". {TOP}/tests/kernel/lib.sh
set_mode() {{ :; }}
settle() {{ settled=$((settled + 1)); }}
poweroff() {{ exit 9; }}
idle() {{ {idle}; }}
n=0
workload() {{ n=$((n + 1)); {workload}; }}
parts=2
row p w c {metrics} workload
"""
            done = subprocess.run([f"{path}/sh", "-c", script], env={"PATH": path}, capture_output=True, text=True)
        return done.stdout.splitlines(), done.returncode

    def test_mean_of_the_parts(self):
        # Of three, the first does not count.
        self.assertEqual(self.row('value="$n.5"', "m"), (["RESULT p w c m 3.000"], 0))

    def test_nothing_is_left_of_the_last_row(self):
        self.assertEqual(self.row("value=$((settled - n))", "m"), (["RESULT p w c m 0.000"], 0))

    def test_several_metrics(self):
        self.assertEqual(self.row('value="$n $((n * 100))"', "m,n"),
                         (["RESULT p w c m 2.500", "RESULT p w c n 250.000"], 0))

    def test_an_idle_part_is_repeated(self):
        self.assertEqual(self.row("value=$n; ticks=$((n >= 2))", "m", idle="echo ${ticks:-0}"),
                         (["REPEAT p w c: idle for 1 ticks", "RESULT p w c m 3.500"], 0))

    def test_always_idle(self):
        lines, code = self.row("value=$n", "m", idle='echo "$n"')
        self.assertEqual((len(lines), code), (5, 9))
        self.assertEqual(lines[-1], "mm_batch: job failed: w, mode c: too much idle time")

    def test_a_failure_names_the_row(self):
        self.assertEqual(self.row("fail 'no luck'", "m"), (["mm_batch: job failed: w, mode c: no luck"], 9))


class Boots(unittest.TestCase):
    """Needs the built kernel, with the meter: rows that must be refused."""

    @classmethod
    def setUpClass(cls):
        cls.build = built()
        cls.row = next(r for r in rows.ROWS if r.workload == "ext4-64k")

    def refused(self, why, row=None):
        with tempfile.TemporaryDirectory() as folder:
            programs = [self.build.program(TOP / "tests/kernel/workloads/reclaim.c")]
            boots = evaluate.Boots(self.build, [], programs, pathlib.Path(folder), mock.Mock())
            with self.assertRaisesRegex(Error, why), mock.patch.dict(os.environ, {"RECLAIM_MIB": "8"}):
                boots.run([row or self.row], "short", 1, 1)

    def test_folios_of_another_size(self):
        # A tmpfs has folios of one page.
        other = rows.RECLAIM.replace("-t ext4 /dev/vda", "-t tmpfs none")
        self.assertNotEqual(other, rows.RECLAIM)
        kind = dataclasses.replace(rows.BOOTS["reclaim"], begin=other)
        with mock.patch.dict(rows.BOOTS, {"reclaim": kind}):
            self.refused("ext4-64k, mode c: reclaim: 0 of 2048 pages are in folios of 64 KiB, less than 95 %")

    def test_no_scratch_disk(self):
        kind = dataclasses.replace(rows.BOOTS["reclaim"], scratch=False)
        with mock.patch.dict(rows.BOOTS, {"reclaim": kind}):
            self.refused("job failed: no scratch disk")

    def test_a_metric_is_missing(self):
        self.refused("^ext4-64k has no insn_none: ", dataclasses.replace(self.row, more=("insn_total", "insn_none")))


if __name__ == "__main__":
    unittest.main(verbosity=2)
