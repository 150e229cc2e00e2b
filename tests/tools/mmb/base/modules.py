# SPDX-License-Identifier: GPL-2.0
"""Which of our modules import which: for what must know, or take along, all that one of them needs."""

import ast

from .cache import TOP

ROOT = TOP / "tests/tools"


def sources(module):
    """A module's file, or the files of one that is a folder."""
    path = ROOT / module.replace(".", "/")
    found = path.glob("*.py") if path.is_dir() else [path.with_suffix(".py")]
    return sorted(source for source in found if not source.name.startswith("test_"))


def imported(module):
    """The modules of ours that a module imports, as in mmb.guest.boot."""
    for source in sources(module):
        package = source.relative_to(ROOT).parent.parts
        for node in ast.walk(ast.parse(source.read_text())):
            if isinstance(node, ast.ImportFrom) and node.level:
                room = ".".join([*package[:len(package) - node.level + 1], *filter(None, [node.module])])
                modules = [f"{room}.{name.name}" for name in node.names]
                # What is imported of a room is a module of it; else it is what a module has.
                yield from [m for m in modules if sources(m)[0].is_file()] or [room]


def closure(modules):
    """These modules, and all that they import."""
    found, new = set(), {f"mmb.{name}" for name in modules}
    while new:
        found |= new
        new = {other for module in new for other in imported(module)} - found
    return sorted({source for module in found for source in sources(module)})
