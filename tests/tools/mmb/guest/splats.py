# SPDX-License-Identifier: GPL-2.0
"""What a kernel complains of: the one list, for the host and for the guests."""

import re

from ..base.cache import TOP

LIST = TOP / "tests/kernel/splats"
PATTERNS = [line for line in LIST.read_text().splitlines() if not line.startswith("#")]
SPLAT = re.compile("|".join(f"(?:{pattern})" for pattern in PATTERNS))


def first(lines):
    """The first line that is one, or None."""
    return next((line.strip() for line in lines if SPLAT.search(line)), None)


def for_grep():
    """The list as grep -E -f takes it: no comment, and no empty line, which would match all."""
    return "".join(f"{pattern}\n" for pattern in PATTERNS)
