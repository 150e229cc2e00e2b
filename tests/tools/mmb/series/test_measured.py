# SPDX-License-Identifier: GPL-2.0
"""Figures in the messages of performance patches."""

import pathlib
import tempfile
import unittest
from unittest import mock

from mmb.base.cache import TOP
from mmb.base.errors import Error
from mmb.kernel.tree import unnumbered
from mmb.series import measured

PATCH = """\
From 0 Mon Sep 17 00:00:00 2001
Subject: [PATCH 1/1] mm: faster

Why.

Assisted-by: somebody
Signed-off-by: A <a@b>
---
 mm/rmap.c | 1 +
"""


def names_of(path):
    return [unnumbered(patch) for patch in (TOP / "patches" / path).rglob("[0-9]*.patch")]


class Messages(unittest.TestCase):
    def test_each_is_a_patch_of_ours(self):
        for path, what in measured.MEASURED.items():
            self.assertIn(what.patch, names_of(path))
        for path, patches in measured.EVERYWHERE.items():
            self.assertLessEqual(set(patches), set(names_of(path)))

    def test_figures_stand_in_front_of_the_trailers(self):
        for path, what in measured.MEASURED.items():
            with tempfile.TemporaryDirectory() as folder:
                patch = pathlib.Path(folder, f"0003-{what.patch}")
                patch.write_text(PATCH)
                measured.with_figures(path, pathlib.Path(folder))
                text = patch.read_text()
            head, _, tail = text.partition("\n\nAssisted-by: somebody\n")
            self.assertTrue(tail.startswith("Signed-off-by: A <a@b>\n---\n mm/rmap.c"), text)
            self.assertIn("\nWhy.\n\n", head)
            for row in what.rows + tuple(row for row, _ in what.rates):
                self.assertIn(f"\n  {row}", head)
            self.assertLessEqual(max(map(len, head.splitlines())), 75, text)

    def test_a_message_that_nobody_has_signed(self):
        with tempfile.TemporaryDirectory() as folder:
            what = measured.MEASURED["anon_unmap"]
            patch = pathlib.Path(folder, f"0003-{what.patch}")
            patch.write_text(PATCH.replace("Assisted-by: somebody\nSigned-off-by: A <a@b>\n", ""))
            measured.with_figures("anon_unmap", pathlib.Path(folder))
            self.assertRegex(patch.read_text(), r"\n\nWhy.\n\nGuest [^-]*\n\n(  .*\n)+---\n mm")

    def test_a_kernel_for_each_mode(self):
        def figures(folder):
            found = mock.Mock(rows={"row": {"metrics": {"m": {}}}})
            found.median.side_effect = {"x86_64": lambda *_: 30, "x86_64-better_c": lambda *_: 10}[folder]
            return found

        what = measured.Measured("x.patch", ("row",), modes=("c", "c"), reports=("release", "twins"))
        with mock.patch.object(measured, "Figures", figures):
            self.assertEqual(measured.lines_of(what)[-1].split(), ["row", "30", "10", "3.00"])

    def test_what_every_mode_has(self):
        name = "mm-page_io-look-for-zeroes-eight-words-at-a-time.patch"
        rows = [{"workload": "batch-zero-4k", "before": 5000.2, "with": 4000.4, "ratio": 0.8}]
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(measured, "changes", return_value={name: rows}):
            patch = pathlib.Path(folder, f"0001-{name}")
            patch.write_text(PATCH)
            measured.with_figures("reclaim_c", pathlib.Path(folder))
            self.assertRegex(patch.read_text(), r"\n  batch-zero-4k +5000 +4000 +1.25\n\nAssisted-by")

    def test_what_a_path_costs_where_it_is_off(self):
        rows = [{"workload": "batch-zero-4k", "before": 4376.6, "with": 4389.4, "ratio": 1.0048}]
        with mock.patch.object(measured, "changes", return_value={"folio_batch": rows}):
            text, = measured.paragraphs("folio_batch").values()
        self.assertRegex(text, r"\n\nWhole calls before this series[^\n]*\n\n.*\n  batch-zero-4k +4377 +4389 +1\.0048")
        self.assertLessEqual(max(map(len, text.splitlines())), 75, text)

    def test_another_folder_is_left(self):
        with tempfile.TemporaryDirectory() as folder:
            measured.with_figures("fixes", pathlib.Path(folder))

    def test_a_patch_that_was_renamed(self):
        with tempfile.TemporaryDirectory() as folder, self.assertRaisesRegex(Error, "has no patch"):
            measured.with_figures("anon_unmap", pathlib.Path(folder))


if __name__ == "__main__":
    unittest.main()
