# SPDX-License-Identifier: GPL-2.0
"""How a verb ends, and how an error reads."""

import os
import re
import sys

PASS, FAIL, TIMEOUT, PANIC = 0, 1, 2, 255


class Error(Exception):
    """An error the user can mend: what, and how."""

    def __init__(self, cause, mend, code=FAIL):
        super().__init__(f"{cause}: {mend}")
        self.code = code


def matching(variable, kind, known, name, match=re.fullmatch):
    """Those of `known`, which are of a kind, whose name(one) the expression of a variable matches; all without one."""
    return chosen(os.environ.get(variable), variable, kind, known, name, match)


def chosen(wanted, given_by, kind, known, name, match):
    """The same, of an expression."""
    try:
        found = [one for one in known if not wanted or match(wanted, name(one))]
    except re.error as error:
        raise Error(f"{given_by}={wanted} is no regular expression ({error})", "correct it") from None
    if not found:
        raise Error(f"{given_by}={wanted} matches no {kind}", "one of " + ", ".join(name(one) for one in known))
    return found


def say(text):
    print(f"mm_batch: {text}", file=sys.stderr, flush=True)
