# SPDX-License-Identifier: GPL-2.0
"""make import and make export: there and back changes nothing, a change arrives, and nobody's work is lost."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest
from unittest import mock

from mmb.base.cache import TOP
from mmb.base.errors import Error
from mmb.kernel import tree
from mmb.series import branch, write
from mmb.series.test_series import OURS, WITH_BOTH, Toy, diff, more

ROOT, ONE, TWO = "rust/mm_batch/root.rs", "patches/one/0001-mm-one.patch", "patches/two/0001-mm-two.patch"
MORE = r"sed -i 's/^int a;/int a;\nint more;/' mm/x.c"


def content(top):
    """All files of a checkout but those that are made."""
    return {str(f.relative_to(top)): f.read_bytes() for f in top.rglob("*")
            if f.is_file() and not f.is_relative_to(top / "out")}


class Branches(Toy):
    """Two paths, and a variant of them in two folders."""

    def setUp(self):
        super().setUp()
        for name, text in OURS.items():
            self.write(name.replace("mm/mm_batch", "rust/mm_batch"), text.decode())
        (self.top / "tests/kernel/kunit").mkdir(parents=True)
        twin = more(WITH_BOTH, "l", "twin")
        self.path("twin", diff("mm/x.c", WITH_BOTH, twin))
        self.path("mode", diff("mm/x.c", twin, more(twin, "m", "mode")))
        (self.top / "patches/mode").rename(self.top / "patches/twin/mode")
        for folder in ("twin", "twin/mode"):
            (self.top / f"patches/{folder}/files").unlink()
        self.base = mock.Mock(tree=self.top / "base", version="7.3.0")
        tips = {"series": ["one", "two"], "variant": ["twin", "twin/mode"]}
        self.checkout = branch.Checkout(self.top, tips)
        self.before = content(self.top)
        self.repository = self.imported()

    def imported(self):
        return branch.import_series(self.base, self.checkout)

    def exported(self):
        return branch.export_series(self.base, self.checkout)

    def sh(self, script):
        """Commands in the repository."""
        done = subprocess.run(["bash", "-ec", script], cwd=self.repository, capture_output=True, text=True,
                              env=os.environ | write.UNSYNCED | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_EDITOR": "true"})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout.strip()

    def edit(self, script, patch="one"):
        """Changes a patch in the middle, as docs/series.md says."""
        self.sh(f"GIT_SEQUENCE_EDITOR=\"sed -i '/mm: {patch}/s/^pick/edit/'\" git rebase -q -i base\n{script}\n"
                "git add -A; git commit -q --amend --no-edit; git rebase --continue")

    def makes(self, *changed):
        """What export changes; and then there is nothing to export."""
        self.assertEqual(self.exported(), list(changed))
        self.assertEqual(self.exported(), [])

    def text(self, name):
        return (self.top / name).read_text()

    def refused(self, why, what=None):
        """By one line, and nothing is written."""
        before = content(self.top)
        with self.assertRaisesRegex(Error, why) as raised:
            (what or self.exported)()
        self.assertNotIn("\n", str(raised.exception))
        self.assertEqual(content(self.top), before)

    def test_there_and_back(self):
        self.assertEqual(self.sh("git log --format='%s %D' --reverse variant").splitlines(),
                         ["Linux 7.3.0 tag: base", "mm: one one", "mm: two HEAD -> series", "mm: twin twin",
                          "mm: mode variant"])
        self.makes()
        self.assertEqual(content(self.top), self.before)
        self.imported()
        self.makes()

    def test_a_patch_in_the_middle(self):
        cover = self.write("patches/one/0000-cover-letter.patch", "Subject: [PATCH] other\n\nText.\n")
        self.edit("sed -i 's/^int one;/int uno;\\nint due;/' mm/x.c; sed -i s/Some/Any/ mm/mm_batch/root.rs")
        self.makes(ONE, ROOT)
        # The second patch's hunk is at another line now, and no other patch.
        self.assertIn("+int uno;\n+int due;\n", self.text(ONE))
        self.assertEqual(cover.read_text(), "Subject: [PATCH] other\n\nText.\n")
        after = content(self.top)
        self.imported()
        self.makes()
        self.assertEqual(content(self.top), after)

    def test_a_patch_whose_context_changes(self):
        self.edit("sed -i 's/mod b;/mod c;/' mm/mm_batch/root.rs")
        self.makes(TWO, ROOT)
        self.assertIn(" mod c;\n mod one;\n+mod two;\n", self.text(TWO))

    def test_a_new_patch_and_a_new_file(self):
        self.sh(f"git checkout -q one; {MORE}; echo 4 >mm/mm_batch/more.rs; git add -A\n"
                "git commit -q -m 'mm: more' -m Because.; git rebase -q one series")
        self.makes("patches/one/0002-mm-more.patch", "patches/one/files", "rust/mm_batch/more.rs")
        made = self.text("patches/one/0002-mm-more.patch")
        self.assertIn("From: mm_batch developers", made)
        self.assertNotIn("more.rs", made)
        self.assertRegex(self.text("patches/one/files"), r"(?s)^# ours\n.*mm-more.patch\n\tmm/mm_batch/more.rs\n$")
        # Patches that change places stay as they are.
        first = self.text(ONE)
        self.sh("GIT_SEQUENCE_EDITOR=\"sed -i '1{h;d};2G'\" git rebase -q -i base")
        self.assertLessEqual({"patches/one/0001-mm-more.patch", ONE, "patches/one/0002-mm-more.patch",
                              "patches/one/0002-mm-one.patch"}, set(self.exported()))
        self.assertEqual(self.text("patches/one/0002-mm-one.patch"), first)

    def test_context_that_somebody_made(self):
        two = self.top / TWO
        text = two.read_text().replace("@@ -6,6 +6,7 @@\n int e;\n int f;\n int g;\n", "@@ -8,4 +8,5 @@\n int g;\n")
        two.write_text(text)
        self.imported()
        self.makes()
        self.edit(MORE)
        self.makes(ONE)
        self.assertEqual(two.read_text(), text)

    def test_a_file_that_goes(self):
        self.edit("rm mm/mm_batch/two.rs", "two")
        self.makes("patches/two/files", "rust/mm_batch/two.rs")
        self.assertFalse((self.top / "rust/mm_batch/two.rs").exists())

    def test_what_is_not_committed(self):
        for name in ("mm/x.c", "mm/new.c"):
            self.sh(f"echo 'int late;' >>{name}")
            for what in (self.exported, self.imported):
                self.refused(f"has changes that are not committed .*{name}", what)
            self.sh("git stash -q -u; git stash drop -q")
        self.makes()
        # What is in another worktree.
        self.sh("git worktree add -q ../second variant")
        self.makes()
        self.sh("echo 'int other;' >../second/mm/x.c")
        self.refused("out/second has changes that are not committed")

    def test_what_export_would_overwrite(self):
        self.edit("sed -i s/Some/Any/ mm/mm_batch/root.rs")
        mine = self.write(ROOT, self.text(ROOT).replace("text", "words"))
        self.refused(f"{ROOT} is not as it was at make import, and export would overwrite it: git stash it")
        self.assertIn("words", mine.read_text())
        mine.write_bytes(self.before[ROOT])
        # So is a patch that is there and was not.
        added = self.write("patches/one/0002-mine.patch", "")
        self.refused("patches/one/0002-mine.patch is not as it was")
        added.unlink()
        self.makes(ROOT)

    def test_what_import_would_lose(self):
        self.edit("sed -i 's/int one;/int uno;/' mm/x.c")
        self.refused("one in .* is not exported: make export, or remove the folder", self.imported)
        self.exported()
        self.imported()
        for script, said, mend in (
                ("git branch try series", "try in .* is not exported", "git branch -D try"),
                ("git checkout -q --detach; git commit -q --allow-empty -m lost", "HEAD in .* is not exported",
                 "git checkout -q series"),
                ("git worktree add -q ../second variant", "has another worktree in .*/second: git worktree remove it",
                 "rm -r ../second")):
            self.sh(script)
            self.refused(said, self.imported)
            self.sh(mend)
        self.imported()

    def test_a_branch_between_that_was_left_behind(self):
        self.sh("GIT_EDITOR='sed -i s/Because/Why/' GIT_SEQUENCE_EDITOR='sed -i 1s/^pick/reword/' "
                "git rebase -q -i --no-update-refs base")
        self.refused("branch one is not between base and series: git branch -f one <the last patch of patches/one>")
        self.sh("git branch -f one series~1")
        self.makes(ONE)

    def test_branches_that_are_no_series(self):
        for said, script in (
                ("branch series is not on base: git rebase --onto base .* series, in ",
                 "git checkout -q --orphan other; git commit -q -m other; git branch -f series other"),
                ("branch series has a merge", "git checkout -q -b side one; git commit -q --allow-empty -m side\n"
                 "git checkout -q series; git merge -q --no-ff -m merged side"),
                ("mm: only changes nothing but files that it brings: add them to MAINTAINERS by it",
                 "echo 4 >mm/mm_batch/more.rs; git add -A; git commit -q -m 'mm: only'"),
                ("mm: two brings mm/mm_batch/two.rs, and the series ends without it",
                 "rm mm/mm_batch/two.rs; sed -i s/int.p/int.q/ mm/x.c; git commit -q -a -m 'mm: gone'")):
            with self.subTest(said):
                self.sh(script)
                self.refused(said)
                shutil.rmtree(self.repository)
                self.imported()
        self.sh("GIT_SEQUENCE_EDITOR='sed -i 1s/^pick/edit/' git rebase -q -i base")
        for what in (self.exported, self.imported):
            self.refused("a rebase is not finished in .*: git rebase --continue or --abort there", what)

    def test_a_variant_stays_where_the_series_goes_on(self):
        self.edit("sed -i 's/int one;/int uno;/' mm/x.c")
        self.makes(ONE)
        # Until its own turn comes.
        self.sh("git checkout -q variant; git commit -q --amend -m 'mm: other'")
        self.refused(r"branch variant is not on series: git rebase --onto series series@\{1} variant")
        self.sh("git reset -q --hard variant@{1}; git rebase -q --onto series series@{1} variant\n"
                "sed -i 's/int mode;/int modus;/' mm/x.c; git commit -q -a --amend --no-edit")
        self.makes("patches/twin/mode/0001-mm-mode.patch")

    def test_a_variant_that_does_not_go_with_the_series(self):
        self.edit("sed -i 's/int l;/long l;/' mm/x.c")
        self.refused("branch variant does not go with the series: 0001-mm-twin.patch does not apply [^:]*: mm/x.c:12.: "
                     r"git rebase --onto series series@\{1} variant")

    def test_another_base_or_none(self):
        self.base.version = "7.3.1"
        self.refused("is on Linux 7.3.0, and the base is 7.3.1: remove it, and make import")
        shutil.rmtree(self.repository)
        self.refused("there is nothing to export: make import")
        self.repository.mkdir()
        for what in (self.exported, self.imported):
            self.refused("series-git is not made by make import: remove it, and make import", what)


class RoundTrip(unittest.TestCase):
    def test_the_series(self):
        """There and back changes no byte of what we have."""
        with tempfile.TemporaryDirectory() as folder:
            top = pathlib.Path(folder)
            for part in ("patches", *(str(source) for source, _ in tree.OURS)):
                shutil.copytree(TOP / part, top / part)
            before = content(top)
            checkout = branch.Checkout(top)
            branch.import_series(tree.Base(), checkout)
            self.assertEqual(branch.export_series(tree.Base(), checkout), [])
            self.assertEqual(content(top), before)
