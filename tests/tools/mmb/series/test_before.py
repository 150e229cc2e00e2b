# SPDX-License-Identifier: GPL-2.0
"""What is compared with the kernel before the last path, and what of it is a miss."""

import os
import pathlib
import unittest
from unittest import mock

from mmb.base.errors import Error
from mmb.paths import ORDER
from mmb.series import before

ROW = before.known()[0]


def turns(*pairs):
    return [[{"row": one}, {"row": other}] for one, other in pairs]


class Compared(unittest.TestCase):
    def test_rows_that_both_kernels_have(self):
        self.assertEqual(before.LAST, ORDER[-1])
        self.assertIn("batch-zero-4k", [row.workload for row in before.known()])
        for row in before.known():
            self.assertEqual((row.command.split()[0], row.boot.script), ("remote", "remote.sh"))
        with mock.patch.dict(os.environ, {"ROW": "ext4-4k"}):
            self.assertEqual([row.workload for row in before.asked()], ["batch-ext4-4k-reclaim"])

    def test_a_job_sets_no_mode_of_the_last_path(self):
        runs = [line.split() for line in before.job([ROW], "short").splitlines() if line.startswith("row ")]
        self.assertEqual(runs, [["row", "dirty_flush", ROW.workload, "rust", ROW.metric, *ROW.command.split()]])
        self.assertEqual(before.values_of([f"RESULT dirty_flush {ROW.workload} rust insn_per_page 4520.5", "words"]),
                         {ROW.workload: 4520.5})

    def test_how_many_patches_are_before(self):
        patches = [pathlib.Path(folder, name) for folder, name in (
            ("fixes", "1"), ("fixes", "2"), ("dirty_flush", "1"), ("folio_batch", "1"), ("folio_batch", "2"))]
        self.assertEqual(before.first_of_last(patches), 3)
        with self.assertRaisesRegex(Error, "ends with dirty_flush"):
            before.first_of_last(patches[:3])

    def test_a_miss_is_sure(self):
        sure = before.compared(turns(*[(1000, value) for value in (1006, 1007, 1008, 1009, 1010, 1011)]))
        self.assertEqual(list(before.problems(sure)),
                         ["row: off/before 1.0085, by 95 % at least 1.0060, is above 1.005"])
        unsure = before.compared(turns(*[(1000, value) for value in (1004, 1007, 1008, 1009, 1010, 1011)]))
        self.assertEqual(list(before.problems(unsure)), [])

    def test_boots_of_a_turn_are_compared(self):
        found = before.compared(turns(*[(value, 1.01 * value) for value in (1000, 1030, 990, 1020, 1010, 1005)]))
        self.assertAlmostEqual(found["row"][2].low, 1.01)
        self.assertEqual(len(list(before.problems(found))), 1)
        self.assertEqual(before.table(found)[1], ["row", "1007.5", "1017.6", "1.0100 (1.0100 to 1.0100)", "1.005"])


if __name__ == "__main__":
    unittest.main()
