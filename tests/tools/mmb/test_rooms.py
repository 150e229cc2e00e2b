# SPDX-License-Identifier: GPL-2.0
"""The rooms of our tools: none knows one above its own, and docs/tools.md names each."""

import ast
import pathlib
import unittest

from mmb.base.cache import TOP

HERE = pathlib.Path(__file__).parent
# From the ground up.
ROOMS = ["base", "paths", "kernel", "guest", "suites", "measure", "series", "full"]
# Rooms that do not know each other, either way.
BESIDE = {frozenset({"suites", "measure"})}


def imports(source, folder=HERE):
    """(room of a module, room that it imports from), of what a room's file imports."""
    own = source.relative_to(folder).parts[0]
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level == 2:
            for name in [node.module] if node.module else [n.name for n in node.names]:
                yield own, name.split(".")[0]


def wrong(own, other):
    return ROOMS.index(other) > ROOMS.index(own) or frozenset({own, other}) in BESIDE


class Rooms(unittest.TestCase):
    def test_each_is_a_floor(self):
        self.assertEqual({folder.name for folder in HERE.iterdir() if (folder / "__init__.py").exists()}, set(ROOMS))

    def test_imports_point_down(self):
        found = [(str(source.relative_to(HERE)), other) for source in HERE.glob("*/*.py")
                 if not source.name.startswith("test_") for own, other in imports(source) if wrong(own, other)]
        self.assertEqual(found, [])

    def test_what_points_up_is_seen(self):
        self.assertTrue(wrong("base", "guest") and wrong("suites", "measure") and wrong("measure", "suites"))
        self.assertFalse(wrong("guest", "kernel") or wrong("full", "series") or wrong("paths", "paths"))
        self.assertIn(("guest", "kernel"), set(imports(HERE / "guest/upstream.py")))

    def test_the_page_names_them(self):
        page = (TOP / "docs/tools.md").read_text()
        for room in ROOMS:
            self.assertIn(f"| `{room}/` |", page)
