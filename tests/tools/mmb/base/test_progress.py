# SPDX-License-Identifier: GPL-2.0
"""What is remembered of how long steps take."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ENDS_STEPS = """
import sys
from mmb.base.progress import Steps
for i in range(100):
    name = f"{sys.argv[1]} {i}"
    steps = Steps("x", {name: 1})
    steps.start(name, "x")
    steps.done()
"""


class Together(unittest.TestCase):
    """Commands that end steps at once, as those of make full's lanes do."""

    def test_none_is_lost(self):
        with tempfile.TemporaryDirectory() as cache:
            done = [subprocess.Popen([sys.executable, "-c", ENDS_STEPS, name], stderr=subprocess.PIPE, text=True,
                                     env=os.environ | {"MM_BATCH_CACHE": cache}) for name in "abcd"]
            for process in done:
                self.assertEqual((process.communicate()[1].splitlines()[100 * 2:], process.returncode), ([], 0))
            self.assertEqual(len(json.loads((pathlib.Path(cache) / "times.json").read_text())), 4 * 100)
