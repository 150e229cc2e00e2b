# SPDX-License-Identifier: GPL-2.0
"""How a verb ends, and how an error reads."""

import sys

PASS, FAIL, TIMEOUT, PANIC = 0, 1, 2, 255


class Error(Exception):
    """An error the user can mend: what, and how."""

    def __init__(self, cause, mend, code=FAIL):
        super().__init__(f"{cause}: {mend}")
        self.code = code


def say(text):
    print(f"mm_batch: {text}", file=sys.stderr, flush=True)
