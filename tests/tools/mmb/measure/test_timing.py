# SPDX-License-Identifier: GPL-2.0
"""How sure a median is, and what a job of make time runs."""

import random
import statistics
import unittest
from unittest import mock

from mmb.measure import rows, timing, uml
from mmb.paths import PATHS
from mmb.paths.model import Boot, TimedRow

ROW = TimedRow("row", "run", Boot("kind", "x.sh"), path="a_path")
OTHER = TimedRow("other", "run it", Boot("kind", "x.sh"), path="a_path")
MODES = ("off", "c", "rust")


def modes_of(_):
    return MODES


def ran(row, mode, value):
    return f"RESULT {row.path} {row.workload} {mode} ns {value}"


class Interval(unittest.TestCase):
    def test_the_median_is_in_it_as_often_as_it_says(self):
        source = random.Random(1)
        for n in (6, 9, 20, 50):
            within = 0
            for _ in range(3000):
                low, high = timing.interval([source.expovariate(1) for _ in range(n)])
                within += low <= 0.6931 <= high
            self.assertGreaterEqual(within / 3000, 0.94, n)

    def test_it_becomes_narrow(self):
        self.assertEqual(timing.interval(range(6)), (0, 5))
        self.assertEqual(timing.interval(range(10)), (1, 8))
        self.assertEqual(timing.interval(range(100)), (39, 60))

    def test_one_that_has_1_in_it_says_neither(self):
        self.assertEqual(timing.Estimate.of([1.1, 1.2, 1.3, 1.2, 1.1, 1.2]).sign, "(I)")
        self.assertEqual(timing.Estimate.of([0.9] * 6).sign, "(R)")
        self.assertEqual(timing.Estimate.of([0.9, 1.1, 1.2, 1.2, 1.2, 1.2]).sign, "")


class Job(unittest.TestCase):
    def lines(self, seed=1, passes=8):
        first, *lines = uml.job([ROW, OTHER], modes_of, passes, 20, random.Random(seed)).splitlines()
        self.assertEqual(first, "remember_modes")
        return lines

    def counts(self, **how):
        return [line for line in self.lines(**how) if " count " in line]

    def test_a_pass_has_each_row_in_each_mode_once(self):
        counts = self.counts(passes=0)
        self.assertEqual(sorted(counts), sorted(f"default_modes; count {row.path} {row.workload} {mode} ns {row.command}"
                                                for row in (ROW, OTHER) for mode in MODES))

    def test_modes_of_a_row_follow_each_other(self):
        rows = [line.split()[3] for line in self.counts()]
        for at in range(0, len(rows), len(MODES)):
            self.assertEqual(len(set(rows[at:at + len(MODES)])), 1)

    def test_the_order_is_not_the_same_in_each(self):
        counts = self.counts(passes=20)
        size = 2 * len(MODES)
        self.assertGreater(len({tuple(counts[at:at + size]) for at in range(0, len(counts), size)}), 10)

    def test_the_first_reads_back(self):
        checks = [line for line in self.lines() if line.startswith("check=")]
        self.assertEqual(checks, ["check=check", *["check="] * 8])

    def test_time_ends_it_behind_enough_passes(self):
        lines = self.lines()
        first = next(at for at, line in enumerate(lines) if "uptime" in line)
        self.assertEqual(sum(line.startswith("check=") for line in lines[:first]), timing.AT_LEAST + 1)


class Values(unittest.TestCase):
    def test_the_first_pass_and_one_that_did_not_end_do_not_count(self):
        console = [ran(ROW, mode, 1000) for mode in MODES]
        console += [ran(ROW, mode, value) for value in range(1, 8) for mode in MODES]
        console.append(ran(ROW, "off", 1))
        line, = timing.timed([ROW], modes_of, uml.runs_of(console))
        self.assertEqual(line.values, {mode: list(range(1, 8)) for mode in MODES})

    def test_a_row_with_too_few_runs_is_none(self):
        console = [ran(ROW, mode, value) for value in range(timing.AT_LEAST) for mode in MODES]
        self.assertEqual(timing.timed([ROW], modes_of, uml.runs_of(console)), [])

    def test_runs_of_a_pass_are_compared(self):
        line = timing.Timed(ROW, {"off": [10, 20, 30, 40, 50, 60], "rust": [5, 10, 15, 20, 25, 30]})
        ratio = line.ratio("off", "rust")
        self.assertEqual((ratio.median, ratio.low, ratio.high), (2, 2, 2))
        self.assertIsNone(line.ratio("c", "rust"))
        self.assertEqual(line.estimate("off").median, statistics.median([10, 20, 30, 40, 50, 60]))

    def test_a_miss_is_sure(self):
        def problems(gain, off, mode="rust"):
            row = TimedRow("row", "run", ROW.boot, gain=gain, path="a_path")
            return list(timing.Timed(row, {"off": off, mode: [10] * len(off)}).problems())

        self.assertEqual(problems(1.25, [12.0, 12.1, 12.2, 12.3, 12.4, 12.4]),
                         ["row: off/Rust 1.23, by 95 % at most 1.24, is below 1.25"])
        # One is not sure of it; it is met; nothing is required; there is no Rust.
        self.assertEqual(problems(1.25, [12.0, 12.1, 12.2, 12.3, 12.4, 12.6]), [])
        self.assertEqual(problems(1.25, [13.0] * 6), [])
        self.assertEqual(problems(None, [9.0] * 6), [])
        self.assertEqual(problems(1.25, [9.0] * 6, "c"), [])



class Written(unittest.TestCase):
    """What tables and results.json have."""

    LINE = timing.Timed(ROW, {"off": [30.0] * 6, "c": [20.0] * 6, "rust": [10.0, 11.0, 9.0, 10.0, 10.0, 10.0]})

    def test_table(self):
        without = timing.Timed(OTHER, {"off": [30.0] * 6, "rust": [10.0] * 6})
        head, one, other = timing.table([self.LINE, without])
        self.assertEqual(head, ["row", "off", "C", "Rust", "off/Rust", "C/Rust"])
        self.assertEqual(one, ["row", "30.0", "20.0", "10.0", "3.00 ±10% (I)", "2.00 ±10% (I)"])
        self.assertEqual((other[2], other[5]), ("-", "-"))

    def test_of_two_kernels(self):
        build = mock.Mock(**{"base.version": "7.3.4", "toolchain.return_value": {}})
        data = uml.results(build, "a commit", [(ROW, self.LINE, self.LINE)], "short")
        self.assertEqual([(found["mode"], found["c"]) for found in data["results"]],
                         [(mode, head) for head in uml.KERNELS for mode in MODES])
        self.assertEqual([(ratio["over"], ratio["c"], ratio["median"]) for ratio in data["ratios"]],
                         [("off", "C", 3), ("c", "C", 2), ("off", "twin", 3), ("c", "twin", 2)])
        rust = data["results"][2]
        self.assertEqual([rust[name] for name in ("min", "median", "max", "low", "high", "runs", "metric")],
                         [9, 10, 11, 9, 11, 6, "ns"])
        self.assertIn("of 6 passes", uml.said(data))
        self.assertEqual(uml.table([(ROW, self.LINE, self.LINE)])[1][:6],
                         ["row", "30.0", "20.0", "20.0", "10.0", "3.00 ±10% (I)"])


class Rows(unittest.TestCase):
    def test_each_path_has_some(self):
        self.assertEqual({row.path for row in uml.timed_rows()}, set(PATHS))

    def test_instructions_beside_are_those_of_a_row_that_there_is(self):
        figures, declared = uml.Figures(uml.REPORTS["release"]), {row.workload: row for row in rows.ROWS}
        for row in uml.timed_rows():
            if row.counted:
                counted = declared[row.counted]
                self.assertIn(row.metric or counted.metric, (counted.metric, *counted.more), row.workload)
            if row.counted in figures.rows:
                self.assertGreater(uml.instructions(figures, row, "off"), 0, row.workload)
            else:
                self.assertIsNone(uml.instructions(figures, row, "off"), row.workload)

    def test_batches_have_instructions_beside(self):
        for row in PATHS["folio_batch"].timed:
            self.assertEqual(row.counted, row.workload)

    def test_required(self):
        required = {row.workload: row.gain for row in uml.timed_rows() if row.gain}
        self.assertEqual(required, {"batch-zero-4k": 1.25, "batch-data-4k": 1.15, "batch-anon-4k-forked": 1.25})


if __name__ == "__main__":
    unittest.main()
