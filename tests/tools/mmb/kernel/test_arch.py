# SPDX-License-Identifier: GPL-2.0
"""What no architecture that is built here has."""

import re
import shlex
import subprocess
import tempfile
import unittest

from mmb.kernel.built import built


class ArchUnmapOne(unittest.TestCase):
    """Needs the built kernel. sparc64 has arch_unmap_one(), and __HAVE_ARCH_UNMAP_ONE without a value."""

    @classmethod
    def setUpClass(cls):
        cls.build = built(cls.addClassCleanup)

    def keys_of(self, *flags):
        """The static keys of anon_unmap that mm/rmap.c asks, compiled once more with these flags."""
        saved = (self.build.out / "mm/.rmap.o.cmd").read_text()
        command = shlex.split(re.search(r"^savedcmd_mm/rmap.o := (.*?)(?:;|$)", saved, re.M)[1])
        with tempfile.TemporaryDirectory() as folder:
            command = [f"{folder}/rmap.o" if word == "mm/rmap.o" else word for word in command
                       if not word.startswith("-Wp,-MMD")]
            subprocess.run([*command, *flags], cwd=self.build.out, check=True)
            symbols = subprocess.run(["llvm-nm", f"{folder}/rmap.o"], capture_output=True, text=True, check=True)
        return re.findall(r"mm_batch_anon_unmap_\w+", symbols.stdout)

    def test_one_by_one(self):
        self.assertTrue(self.keys_of())
        self.assertEqual(self.keys_of("-D__HAVE_ARCH_UNMAP_ONE=", "-Darch_unmap_one(m,v,a,p)=(0)"), [])


if __name__ == "__main__":
    unittest.main()
