# SPDX-License-Identifier: GPL-2.0
"""What is kept of rows in time: their figures, the table, and a plot where matplotlib is there to draw it."""

import json
import re
from pathlib import Path

from ..base.cache import write_atomically


def cpu():
    found = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.M)
    return found[1] if found else "unknown"


def keep(folder, data, text):
    """Writes them; returns the names of the files."""
    write_atomically(folder / "results.json", json.dumps(data, indent=1) + "\n")
    write_atomically(folder / "table.txt", text + "\n")
    try:
        from .plots import times
    except ImportError:
        return ["results.json", "table.txt"]
    times(data, folder / "times.svg")
    return ["results.json", "table.txt", "times.svg"]
