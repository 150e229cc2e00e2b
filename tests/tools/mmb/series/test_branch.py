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
from mmb.series.test_series import DIFF, OURS, Toy

ROOT, ONE = "rust/mm_batch/root.rs", "patches/one/0001-mm-one.patch"


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
        self.path("twin", DIFF.format(*"jklmno", line=12, name="twin"))
        self.path("mode", DIFF.format("l", "twin", *"mnop", line=14, name="mode"))
        (self.top / "patches/mode").rename(self.top / "patches/twin/mode")
        for folder in ("twin", "twin/mode"):
            (self.top / f"patches/{folder}/files").unlink()
        self.base = mock.Mock(tree=self.top / "base", version="7.3.0")
        tips = (("series", ["one", "two"]), ("variant", ["twin", "twin/mode"]))
        self.checkout = branch.Checkout(self.top, tips)
        self.before = content(self.top)
        self.repository = self.imported()

    def imported(self):
        return branch.import_series(self.base, self.checkout)

    def exported(self):
        return branch.export_series(self.base, self.checkout)

    def git(self, *command, at=None, **environment):
        done = subprocess.run(["git", *command], cwd=at or self.repository, capture_output=True, text=True,
                              env=os.environ | write.UNSYNCED | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_EDITOR": "true"}
                              | environment)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout.strip()

    def replace(self, name, old, new):
        file = self.repository / name
        self.assertIn(old, file.read_text())
        file.write_text(file.read_text().replace(old, new))

    def edit(self, what, patch="one"):
        """Changes a patch in the middle, as docs/series.md says."""
        self.git("rebase", "-q", "-i", "base", GIT_SEQUENCE_EDITOR=f"sed -i '/mm: {patch}/s/^pick/edit/'")
        what()
        self.git("add", "-A")
        self.git("commit", "-q", "--amend", "--no-edit")
        self.git("rebase", "--continue")

    def refused(self, why, what=None):
        """By one line, and nothing is written."""
        before = content(self.top)
        with self.assertRaisesRegex(Error, why) as raised:
            (what or self.exported)()
        self.assertNotIn("\n", str(raised.exception))
        self.assertEqual(content(self.top), before)

    def test_there_and_back(self):
        self.assertEqual(self.git("log", "--format=%s %D", "--reverse", "variant").splitlines(),
                         ["Linux 7.3.0 tag: base", "mm: one one", "mm: two HEAD -> series", "mm: twin twin",
                          "mm: mode variant"])
        self.assertEqual(self.exported(), [])
        self.assertEqual(content(self.top), self.before)
        self.imported()
        self.assertEqual(self.exported(), [])

    def test_a_patch_in_the_middle(self):
        def change():
            self.replace("mm/x.c", "int one;", "int uno;\nint due;")
            self.replace("mm/mm_batch/root.rs", "Some", "Any")

        self.edit(change)
        self.assertEqual(self.exported(), [ONE, ROOT])
        # The second patch's hunk is at another line now, and no other patch.
        self.assertIn("+int uno;\n+int due;\n", (self.top / ONE).read_text())
        after = content(self.top)
        self.assertEqual(self.exported(), [])
        self.imported()
        self.assertEqual(self.exported(), [])
        self.assertEqual(content(self.top), after)

    def test_a_patch_whose_context_changes(self):
        self.edit(lambda: self.replace("mm/mm_batch/root.rs", "mod b;", "mod c;"))
        self.assertEqual(self.exported(), ["patches/two/0001-mm-two.patch", ROOT])
        self.assertIn(" mod c;\n mod one;\n+mod two;\n", (self.top / "patches/two/0001-mm-two.patch").read_text())

    def test_a_new_patch_and_a_new_file(self):
        self.git("checkout", "-q", "one")
        self.replace("mm/x.c", "int a;", "int a;\nint more;")
        (self.repository / "mm/mm_batch/more.rs").write_text("4\n")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "mm: more", "-m", "Because.")
        self.git("rebase", "-q", "one", "series")
        self.assertEqual(self.exported(),
                         ["patches/one/0002-mm-more.patch", "patches/one/files", "rust/mm_batch/more.rs"])
        made = (self.top / "patches/one/0002-mm-more.patch").read_text()
        self.assertIn("From: mm_batch developers", made)
        self.assertNotIn("more.rs", made)
        self.assertTrue((self.top / "patches/one/files").read_text().endswith("mm-more.patch\n\tmm/mm_batch/more.rs\n"))
        self.assertTrue((self.top / "patches/one/files").read_text().startswith("# ours\n"))

    def test_patches_that_change_places(self):
        self.git("checkout", "-q", "one")
        self.replace("mm/x.c", "int a;", "int a;\nint more;")
        self.git("commit", "-q", "-a", "-m", "mm: more", "-m", "Because.")
        self.git("rebase", "-q", "one", "series")
        self.exported()
        first = (self.top / ONE).read_bytes()
        self.git("rebase", "-q", "-i", "base", GIT_SEQUENCE_EDITOR="sed -i '1{h;d};2G'")
        self.assertEqual(self.exported(), ["patches/one/0001-mm-more.patch", ONE, "patches/one/0002-mm-more.patch",
                                           "patches/one/0002-mm-one.patch"])
        self.assertEqual((self.top / "patches/one/0002-mm-one.patch").read_bytes(), first)

    def test_context_that_somebody_made(self):
        two = self.top / "patches/two/0001-mm-two.patch"
        text = two.read_text().replace("@@ -6,6 +6,7 @@\n int e;\n int f;\n int g;\n", "@@ -8,4 +8,5 @@\n int g;\n")
        two.write_text(text)
        self.imported()
        self.assertEqual(self.exported(), [])
        self.edit(lambda: self.replace("mm/x.c", "int a;", "int a;\nint early;"))
        self.assertEqual(self.exported(), [ONE])
        self.assertEqual(two.read_text(), text)

    def test_a_cover_letter_stays(self):
        cover = self.write("patches/one/0000-cover-letter.patch", "Subject: [PATCH] other\n\nText.\n")
        self.edit(lambda: self.replace("mm/x.c", "int one;", "int uno;"))
        self.exported()
        self.assertEqual(cover.read_text(), "Subject: [PATCH] other\n\nText.\n")

    def test_what_is_not_committed(self):
        for name in ("mm/x.c", "mm/new.c"):
            with open(self.repository / name, "a") as file:
                file.write("int late;\n")
            self.refused(f"has changes that are not committed .*{name}")
            self.refused(f"has changes that are not committed .*{name}", self.imported)
            self.git("stash", "-q", "-u")
            self.git("stash", "drop", "-q")
        self.assertEqual(self.exported(), [])

    def test_a_rebase_that_is_not_finished(self):
        self.git("rebase", "-q", "-i", "base", GIT_SEQUENCE_EDITOR="sed -i 1s/^pick/edit/")
        for what in (self.exported, self.imported):
            self.refused("a rebase is not finished in .*: git rebase --continue or --abort there", what)

    def test_what_export_would_overwrite(self):
        self.edit(lambda: self.replace("mm/mm_batch/root.rs", "Some", "Any"))
        mine = self.write(ROOT, (self.top / ROOT).read_text().replace("text", "words"))
        self.refused(f"{ROOT} is not as it was at make import, and export would overwrite it: git stash it")
        self.assertIn("words", mine.read_text())
        mine.write_bytes(self.before[ROOT])
        # So is a patch that is there and was not.
        self.write("patches/one/0002-mine.patch", "")
        self.refused("patches/one/0002-mine.patch is not as it was")
        (self.top / "patches/one/0002-mine.patch").unlink()
        self.assertEqual(self.exported(), [ROOT])

    def test_what_import_would_lose(self):
        self.edit(lambda: self.replace("mm/x.c", "int one;", "int uno;"))
        self.refused("one in .* is not exported: make export, or remove the folder", self.imported)
        self.exported()
        self.imported()
        self.git("branch", "try", "series")
        self.refused("try in .* is not exported", self.imported)
        self.git("branch", "-D", "try")
        self.git("checkout", "-q", "--detach")
        self.git("commit", "-q", "--allow-empty", "-m", "lost")
        self.refused("HEAD in .* is not exported", self.imported)
        self.git("checkout", "-q", "series")
        self.git("worktree", "add", "-q", str(self.top / "out/second"), "variant")
        self.refused("has another worktree in .*/second: git worktree remove it", self.imported)
        shutil.rmtree(self.top / "out/second")
        self.imported()

    def test_what_is_in_another_worktree(self):
        second = self.top / "out/second"
        self.git("worktree", "add", "-q", str(second), "variant")
        self.assertEqual(self.exported(), [])
        (second / "mm/x.c").write_text("int other;\n")
        self.refused("out/second has changes that are not committed")

    def test_a_branch_that_is_elsewhere(self):
        self.git("checkout", "-q", "--orphan", "other")
        self.git("commit", "-q", "-m", "other")
        self.git("branch", "-f", "series", "other")
        self.refused("branch series is not on base: git rebase --onto base .* series, in ")

    def test_a_branch_between_that_was_left_behind(self):
        self.git("rebase", "-q", "-i", "--no-update-refs", "base", GIT_SEQUENCE_EDITOR="sed -i 1s/^pick/reword/",
                 GIT_EDITOR="sed -i s/Because/Why/")
        self.refused("branch one is not between base and series: git branch -f one <the last patch of patches/one>")
        self.git("branch", "-f", "one", "series~1")
        self.assertEqual(self.exported(), [ONE])

    def test_a_merge(self):
        self.git("checkout", "-q", "-b", "side", "one")
        self.git("commit", "-q", "--allow-empty", "-m", "side")
        self.git("checkout", "-q", "series")
        self.git("merge", "-q", "--no-ff", "-m", "merged", "side")
        self.refused("branch series has a merge")

    def test_a_commit_that_only_brings(self):
        (self.repository / "mm/mm_batch/more.rs").write_text("4\n")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "mm: only")
        self.refused("mm: only changes nothing but files that it brings: add them to MAINTAINERS by it")

    def test_a_file_that_is_brought_and_taken_away(self):
        (self.repository / "mm/mm_batch/two.rs").unlink()
        self.replace("mm/x.c", "int p;", "int p;\nint q;")
        self.git("commit", "-q", "-a", "-m", "mm: gone")
        self.refused("mm: two brings mm/mm_batch/two.rs, and the series ends without it")

    def test_a_file_that_goes(self):
        self.edit(lambda: (self.repository / "mm/mm_batch/two.rs").unlink(), "two")
        self.assertEqual(self.exported(), ["patches/two/files", "rust/mm_batch/two.rs"])
        self.assertFalse((self.top / "rust/mm_batch/two.rs").exists())

    def test_a_variant_stays_where_the_series_goes_on(self):
        self.edit(lambda: self.replace("mm/x.c", "int one;", "int uno;"))
        self.assertEqual(self.exported(), [ONE])
        # Until its own turn comes.
        self.git("rebase", "-q", "--onto", "series", "series@{1}", "variant")
        self.replace("mm/x.c", "int mode;", "int modus;")
        self.git("commit", "-q", "-a", "--amend", "--no-edit")
        self.assertEqual(self.exported(), ["patches/twin/mode/0001-mm-mode.patch"])

    def test_a_variant_that_does_not_go_with_the_series(self):
        self.edit(lambda: self.replace("mm/x.c", "int l;", "long l;"))
        self.refused("branch variant does not go with the series: 0001-mm-twin.patch does not apply [^:]*: mm/x.c:12.: "
                     r"git rebase --onto series series@\{1} variant")

    def test_a_changed_variant_of_another_series(self):
        self.edit(lambda: self.replace("mm/x.c", "int one;", "int uno;"))
        self.git("checkout", "-q", "variant")
        self.git("commit", "-q", "--amend", "-m", "mm: other")
        self.refused(r"branch variant is not on series: git rebase --onto series series@\{1} variant")

    def test_another_base(self):
        self.base.version = "7.3.1"
        self.refused("is on Linux 7.3.0, and the base is 7.3.1: remove it, and make import")

    def test_nothing_there(self):
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


if __name__ == "__main__":
    unittest.main(verbosity=2)
