# SPDX-License-Identifier: GPL-2.0
"""For the tests that boot: the kernel that `make kernel` built."""

import os

from mmb import tree
from mmb.common import Error
from mmb.kbuild import Build


def built():
    base, staged = tree.stage()
    build = Build(base, staged, os.environ.get("ARCH", "x86_64"))
    if not build.image.exists():
        raise Error("no kernel is built", "make kernel")
    return build
