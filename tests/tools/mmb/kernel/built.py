# SPDX-License-Identifier: GPL-2.0
"""For the tests that boot: the kernel that `make kernel` built."""

import os

from mmb.base.errors import Error
from mmb.kernel import tree
from mmb.kernel.kbuild import Build


def built(at_end):
    """Nobody else changes it until the test ends, which at_end() is told: a test's addCleanup, or a class's."""
    at_end(tree.let_go)
    base, staged = tree.stage()
    build = Build(base, staged, os.environ.get("ARCH") or "x86_64")
    tree.hold(build.out)
    if not build.image.exists():
        raise Error("no kernel is built", "make kernel")
    return build
