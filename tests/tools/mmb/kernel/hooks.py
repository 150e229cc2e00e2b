# SPDX-License-Identifier: GPL-2.0
"""Notices a hook that a kernel adds to __free_pages_prepare().

The fast prepare leaves out hooks that are idle, by one gate that lists them. A hook that the gate does not
know would miss pages, so every call in the C function is on a list with the reason why the fast prepare
may do without it; a call that is not on the list stops the build.
"""

import re

from ..base.cache import TOP
from ..base.errors import Error

LIST = TOP / "tests/kernel/free_pages_prepare.hooks"

NOT_CALLS = {"if", "for", "while", "switch", "return", "sizeof", "likely", "unlikely", "IS_ENABLED"}


def calls(source):
    """The names called in __free_pages_prepare()."""
    text = source.read_text()
    start = re.search(r"^static __always_inline bool __free_pages_prepare\(.*?\)\n\{", text, re.M | re.S)
    if not start:
        raise Error(f"{source} has no __free_pages_prepare()", "this kernel needs a newer series")
    body = text[start.end():text.index("\n}\n", start.end())]
    body = re.sub(r"/\*.*?\*/", "", body, flags=re.S)
    return set(re.findall(r"\b([A-Za-z_]\w*)\s*\(", body)) - NOT_CALLS


def listed():
    """Name -> why, from the list."""
    return dict(line.split(None, 1) for line in LIST.read_text().splitlines() if line and not line.startswith("#"))


def check(source, version):
    if new := calls(source) - set(listed()):
        raise Error(f"__free_pages_prepare() of {version} calls {', '.join(sorted(new))}, "
                    "which the fast prepare does not know",
                    f"cover it in free_pages_prepare_hooks_idle() and list it in {LIST.relative_to(TOP)}")
