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


LAST = before.CHANGES[-1]


class Compared(unittest.TestCase):
    def test_rows_that_both_kernels_have(self):
        self.assertEqual(before.LAST, ORDER[-1])
        self.assertLessEqual({row for change in before.CHANGES for row in change.rows},
                             {row.workload for row in before.known()})
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
            ("1-fixes", "0001-a.patch"), ("2-reclaim_c", "0001-b.patch"), ("2-reclaim_c", "0002-c.patch"),
            ("7-folio_batch", "0001-d.patch"), ("7-folio_batch", "0002-e.patch"))]
        for name, states in ("folio_batch", (3, 5)), ("c.patch", (2, 3)):
            self.assertEqual(before.Change(name, ()).states(patches), states)
        with self.assertRaisesRegex(Error, "has nothing of folio_batch"):
            LAST.states(patches[:3])

    def test_a_miss_is_sure(self):
        sure = before.compared(turns(*[(1000, value) for value in (1006, 1007, 1008, 1009, 1010, 1011)]))
        self.assertEqual(list(before.problems(LAST, sure)), [
            "folio_batch, row: 1.0085 of the kernel before, by 95 % at least 1.0060, is above 1.005"])
        self.assertEqual(list(before.problems(before.CHANGES[0], sure)), [])
        unsure = before.compared(turns(*[(1000, value) for value in (1004, 1007, 1008, 1009, 1010, 1011)]))
        self.assertEqual(list(before.problems(LAST, unsure)), [])

    def test_boots_of_a_turn_are_compared(self):
        found = before.compared(turns(*[(value, 1.01 * value) for value in (1000, 1030, 990, 1020, 1010, 1005)]))
        self.assertAlmostEqual(found["row"][2].low, 1.01)
        self.assertEqual(len(list(before.problems(LAST, found))), 1)
        self.assertEqual(before.table(LAST, found)[1], ["row", "1007.5", "1017.6", "1.0100 (1.0100 to 1.0100)", "1.005"])


if __name__ == "__main__":
    unittest.main()
