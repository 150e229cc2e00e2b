# SPDX-License-Identifier: GPL-2.0
"""make series, make patches-check and make same-source: each finds what it is there to find."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import time
import unittest
from unittest import mock

from mmb import paths
from mmb.base.errors import FAIL, PANIC, PASS, Error
from mmb.kernel import compiled, tree
from mmb.series import applies, check, configurations, states, write

# A kernel of one C file, and two paths: the second extends what the first brought.
C_FILE = "".join(f"int {name};\n" for name in "abcdefghijklmnop")
MAIL = """From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001
From: {author}
Date: Fri, 20 Nov 2026 21:20:43 +0000
Subject: [PATCH] {subject}

Because.
---
{diff}"""
DIFF = """diff --git a/mm/x.c b/mm/x.c
--- a/mm/x.c
+++ b/mm/x.c
@@ -{line},6 +{line},7 @@
 int {0};
 int {1};
 int {2};
+int {name};
 int {3};
 int {4};
 int {5};
"""
# What comes with the first path, and what the second adds to it.
HUNK = """diff --git a/mm/mm_batch/root.rs b/mm/mm_batch/root.rs
--- a/mm/mm_batch/root.rs
+++ b/mm/mm_batch/root.rs
@@ -3,5 +3,6 @@
 mod a;
 mod b;
 mod one;
+mod two;
 mod y;
 mod z;
"""
ONE, TWO = DIFF.format(*"bcdefg", line=2, name="one"), DIFF.format(*"efghij", line=6, name="two")
TWO += HUNK
ROOT = "//! Some\n//! text.\nmod a;\nmod b;\nmod one;\nmod two;\nmod y;\nmod z;\n"
OURS = {"mm/mm_batch/root.rs": ROOT.encode(), "mm/mm_batch/one.rs": b"1\n", "mm/mm_batch/two.rs": b"2\n"}


class Toy(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.top = pathlib.Path(folder.name)
        self.write("base/mm/x.c", C_FILE)
        self.path("one", ONE, "mm/mm_batch/root.rs", "mm/mm_batch/one.rs")
        self.path("two", TWO, "mm/mm_batch/two.rs")

    def write(self, name, text):
        file = self.top / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def path(self, name, diff, *files):
        self.write(f"patches/{name}/0000-cover-letter.patch", f"Subject: [PATCH] mm: {name}\n\nWhy {name}.\n")
        self.write(f"patches/{name}/0001-mm-{name}.patch",
                   MAIL.format(author=write.AUTHOR, subject=f"mm: {name}", diff=diff))
        self.write(f"patches/{name}/files", f"# ours\nmm-{name}.patch\n" + "".join(f"\t{f}\n" for f in files))

    def plan(self, ours=None):
        return write.Plan(["one", "two"], OURS if ours is None else ours, self.top / "patches")

    def made(self, out="out", sob=None):
        write.write_series(self.top / "base", "7.3.0", self.top / "git", self.top / out, self.plan(), sob)
        return {str(p.relative_to(self.top / out)): p.read_text() for p in (self.top / out).rglob("*.patch")}


class Series(Toy):
    def test_same_input_same_bytes(self):
        first = self.made()
        self.assertEqual(sorted(first), ["one/0000-cover-letter.patch", "one/0001-mm-one.patch",
                                         "two/0000-cover-letter.patch", "two/0001-mm-two.patch"])
        elsewhere = {"GIT_AUTHOR_DATE": "1 Jan 2001", "LC_ALL": "de_DE.UTF-8", "TZ": "Asia/Tokyo"}
        with mock.patch.dict(os.environ, elsewhere):
            self.assertEqual(first, self.made("again"))

    def test_a_path_does_not_know_the_later_ones(self):
        made = self.made()
        self.assertIn("+mod one;\n+mod y;\n", made["one/0001-mm-one.patch"])
        self.assertNotIn("two", made["one/0001-mm-one.patch"])
        self.assertIn(" mod one;\n+mod two;\n mod y;\n", made["two/0001-mm-two.patch"])

    def test_three_paths(self):
        """Each adds lines of its own to what there was before."""
        ours = OURS | {"mm/mm_batch/root.rs": ROOT.replace("mod y;", "mod three;\nmod y;").encode(),
                       "mm/mm_batch/three.rs": b"3\n"}
        hunk = HUNK.replace("@@ -3,5 +3,6", "@@ -4,5 +4,6").replace(" mod a;\n", "")
        hunk = hunk.replace("+mod two", " mod two;\n+mod three")
        self.path("three", DIFF.format(*"hijklm", line=10, name="three") + hunk, "mm/mm_batch/three.rs")
        plan = write.Plan(["none", "one", "two", "three"], ours, self.top / "patches")
        folders = write.write_series(self.top / "base", "7.3.0", self.top / "git", self.top / "out", plan)
        self.assertEqual([f.name for f in folders], ["one", "two", "three"])
        one, two, three = ((f / f"0001-mm-{f.name}.patch").read_text() for f in folders)
        self.assertIn("+mod one;\n+mod y;\n", one)
        self.assertIn(" mod one;\n+mod two;\n mod y;\n", two)
        self.assertIn(" mod two;\n+mod three;\n mod y;\n", three)

    def test_a_line_that_no_later_path_knows(self):
        """It is changed once, where we have it."""
        ours = OURS | {"mm/mm_batch/root.rs": b"//! More.\n" + ROOT.replace("Some", "Any").encode()}
        self.assertEqual(self.plan(ours).brought["mm/mm_batch/root.rs"].decode(),
                         "//! More.\n" + ROOT.replace("Some", "Any").replace("mod two;\n", ""))

    def test_a_line_that_a_later_path_brought(self):
        for old, new in (("mod two;", "mod zwei;"), ("mod two;\n", ""), ("mod one;\nmod two;", "mod two;\nmod one;")):
            with self.assertRaisesRegex(Error, "0001-mm-two.patch does not lead to what we have .*root.rs"):
                self.plan(OURS | {"mm/mm_batch/root.rs": ROOT.replace(old, new).encode()})

    def test_a_file_that_is_brought_twice(self):
        self.path("two", TWO, "mm/mm_batch/root.rs", "mm/mm_batch/two.rs")
        with self.assertRaisesRegex(Error, "two/files names mm/mm_batch/root.rs, which an earlier patch brings"):
            self.plan()

    def test_what_we_have(self):
        """The plan of the real series: all of ours has its place."""
        plan = write.Plan(tree.SERIES, tree.our_files())
        self.assertLessEqual(set(paths.ORDER), set(plan.paths))
        found = [name for path in plan.paths for patch in write.patches_of(path) for name in plan.files(path, patch)]
        self.assertEqual(sorted(found), sorted(tree.our_files()))

    def test_cover_letters(self):
        cover = self.made()["two/0000-cover-letter.patch"]
        for text in ("Subject: [PATCH 0/1] mm: two\n", "\nWhy two.\n", "3 files changed", "base: Linux 7.3.0",
                     "prerequisite-patch-id: "):
            self.assertIn(text, cover)
        self.assertNotIn("base-commit", cover)

    def test_a_base_that_others_know(self):
        def git(*command):
            done = subprocess.run(["git", "-C", self.top / "base", *command], check=True, capture_output=True, text=True)
            return done.stdout.strip()

        git("init", "-q")
        git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "v7.3")
        line = f"base-commit: {git('rev-parse', 'HEAD')} (Linux 7.3.0)"
        self.assertIn(line, self.made()["one/0000-cover-letter.patch"])

    def test_no_sign_off_but_the_users(self):
        self.assertNotIn("Signed-off-by", "".join(self.made().values()))
        for name, text in self.made(sob="Jane Doe <jane@example.org>").items():
            self.assertIn("From: Jane Doe <jane@example.org>", text)
            self.assertNotIn("mm_batch@localhost", text)
            self.assertEqual(text.count("\nSigned-off-by: Jane Doe <jane@example.org>\n"), "0000" not in name)

    def test_a_file_that_no_patch_brings(self):
        with self.assertRaisesRegex(Error, "no patch brings mm/mm_batch/three.rs"):
            self.plan(OURS | {"mm/mm_batch/three.rs": b""})

    def test_a_file_that_is_not_there(self):
        with self.assertRaisesRegex(Error, "names mm/mm_batch/two.rs, which is not ours"):
            self.plan({n: c for n, c in OURS.items() if "two" not in n})

    def test_a_renamed_patch(self):
        (self.top / "patches/two/0001-mm-two.patch").rename(self.top / "patches/two/0001-mm-other.patch")
        with self.assertRaisesRegex(Error, "names mm-two.patch, which is no patch there"):
            self.plan()

    def test_a_patch_that_changes_what_is_ours(self):
        self.path("two", TWO + "diff --git a/mm/mm_batch/one.rs b/mm/mm_batch/one.rs\n--- a/mm/mm_batch/one.rs\n"
                  "+++ b/mm/mm_batch/one.rs\n@@ -1 +1 @@\n-1\n+3\n", "mm/mm_batch/two.rs")
        with self.assertRaisesRegex(Error, "0001-mm-two.patch does not lead to what we have .*one.rs"):
            self.plan()
        self.assertEqual(self.plan(OURS | {"mm/mm_batch/one.rs": b"3\n"}).brought["mm/mm_batch/one.rs"], b"1\n")

    def test_a_patch_that_does_not_apply(self):
        self.write("base/mm/x.c", "something else\n")
        with self.assertRaisesRegex(Error, "0001-mm-one.patch does not apply"):
            self.made()
        self.assertFalse((self.top / "out").exists())


class Applies(Toy):
    def why(self, text):
        self.made()
        self.write("other/mm/x.c", text)
        folders = [self.top / "out/one", self.top / "out/two"]
        return applies.apply(self.top / "other", applies.touched(folders), folders, self.top / "am", "7.3.0")[1]

    def test_applies(self):
        self.assertIsNone(self.why("int before;\n" + C_FILE))

    def test_a_conflict_names_its_file(self):
        self.made()
        self.write("other/mm/x.c", C_FILE.replace("int d;", "long d;"))
        folders = [self.top / "out/one", self.top / "out/two"]
        names = applies.touched(folders)
        why = applies.apply(self.top / "other", names, folders, self.top / "am", "7.3.0", threeway=self.top / "git")[1]
        self.assertEqual(why, "0001: mm/x.c")

    def test_as_make_series_says(self):
        self.made()
        git = write.Git(self.top / "am")
        git.commit_base(self.top / "base", ["mm/x.c"], "7.3.0")
        for path in ("one", "two"):
            git("am", "--empty=drop", *sorted((self.top / "out" / path).glob("*.patch")))
        self.assertEqual(git("log", "--format=%s", "base..").split("\n"), ["mm: two", "mm: one"])
        self.assertEqual(git("diff", "--stat", "HEAD"), "")

    def test_does_not(self):
        self.assertRegex(self.why(C_FILE.replace("int b;", "long b;")), "^0001: .*mm/x.c")

    def test_a_new_file_that_is_there_already(self):
        self.write("other/mm/mm_batch/two.rs", "theirs\n")
        self.assertRegex(self.why(C_FILE), "two.rs")

    def test_versions_in_order(self):
        self.assertEqual(sorted(["7.4.4-1~bpo13+1", "7.3.12-1", "7.4~rc7-1~exp1", "7.3.9-1"], key=applies.order),
                         ["7.3.9-1", "7.3.12-1", "7.4~rc7-1~exp1", "7.4.4-1~bpo13+1"])


class Checks(Toy):
    def test_what_is_staged(self):
        self.made()
        git = mock.Mock(folder=self.top / "git")
        self.assertEqual(check.check_staged(self.top / "git", git, ["mm/x.c"])[0], PASS)
        self.assertEqual(check.check_staged(self.top / "base", git, ["mm/x.c"])[0], FAIL)

    def test_checkpatch(self):
        kernel = tree.Base().tree
        mail = MAIL.format(author=write.AUTHOR, subject="mm: x: say what", diff=ONE)
        self.assertEqual(check.checkpatch(kernel, self.write("good.patch", mail))[0], PASS)
        blank = self.write("blank.patch", mail.replace("+int one;", "+int one; "))
        self.assertEqual(check.checkpatch(kernel, blank)[0], FAIL)
        # A line of the kernel's own that only moves is not ours to improve.
        bug = mail.replace("+int one;", "+BUG_ON(one);")
        self.assertEqual(check.checkpatch(kernel, self.write("bug.patch", bug))[0], FAIL)
        moved = self.write("moved.patch", bug.replace("+BUG_ON(one);", "-	BUG_ON(one);\n+BUG_ON(one);"))
        self.assertEqual(check.checkpatch(kernel, moved)[0], PASS)
        # A new file that MAINTAINERS is not told of.
        new = mail + "diff --git a/mm/y.c b/mm/y.c\nnew file mode 100644\n--- /dev/null\n+++ b/mm/y.c\n" \
            "@@ -0,0 +1 @@\n+// SPDX-License-Identifier: GPL-2.0\n"
        self.assertIn("MAINTAINERS", check.checkpatch(kernel, self.write("new.patch", new))[1])

    def test_symbols_left(self):
        before, on = {"vmlinux": ["a"]}, {"vmlinux": ["a", "mm_batch"]}
        base = mock.Mock()
        base.build.base.tree, base.names = tree.Base().tree, ["mm/vmscan.c", "mm/new.c"]

        def left(on, off):
            return states.left_over(before, on, off, lambda symbol: states.States.named_by_base(base, symbol))

        self.assertEqual(left(on, before), (PASS, "vmlinux: 0 of 1 symbols"))
        self.assertEqual(left(on, on), (FAIL, "1 symbols left: mm_batch"))
        self.assertEqual(left(before, before)[0], FAIL)
        # An inline function that the compiler now calls is not the series'.
        self.assertEqual(left(on, {"vmlinux": ["a", "set_ptes"]})[0], PASS)
        # Nor is one of a file that the series touches, though not one of another.
        self.assertEqual(left(on, {"vmlinux": ["a", "handle_write_error"]})[0], PASS)
        self.assertEqual(left(on, {"vmlinux": ["a", "swapin_walk_pmd_entry"]})[0], FAIL)
        # A name is no expression, and no option.
        self.assertEqual(left(on, {"vmlinux": ["a", "set.ptes"]})[0], FAIL)
        self.assertEqual(left(on, {"vmlinux": ["a", "-vset_ptes"]})[0], FAIL)

    def test_settings(self):
        text = "CONFIG_SWAP=y\nCONFIG_ZSWAP=y\n# CONFIG_NUMA is not set\n"
        text = configurations.altered(text, {"SWAP": "n", "NUMA": "y"})
        self.assertEqual(text, "CONFIG_ZSWAP=y\n# CONFIG_SWAP is not set\nCONFIG_NUMA=y\n")
        self.assertEqual(configurations.wrong(text, {"SWAP": "n", "NUMA": "y"}), [])
        self.assertEqual(configurations.wrong(text, {"SWAP": "y", "MEMCG": "y"}), ["SWAP=n", "MEMCG=n"])

    def test_warnings_of_our_files_alone(self):
        log = ("/c/mm_batch/linux/mm/memory.c:94:2: warning: theirs [-W#warnings]\n"
               "warning: theirs\n  --> /c/mm_batch/linux/rust/kernel/page.rs:1:1\n")
        self.assertEqual(configurations.warned(log, "/c/mm_batch/linux", {"mm/vmscan.c"}), [])
        self.assertEqual(len(configurations.warned(log, "/c/mm_batch/linux", {"mm/memory.c", "mm/vmscan.c"})), 1)
        ours = ("/c/mm_batch/linux/mm/mm_batch_modes.c:1:2: warning: unused [-Wunused]\n"
                "warning: unused\n  --> /c/mm_batch/linux/mm/mm_batch/pages.rs:1:1\n")
        self.assertEqual(len(configurations.warned(log + ours, "/c/mm_batch/linux", {"mm/vmscan.c"})), 2)

    def test_a_dropped_symbol_is_noticed(self):
        def verdict(dropped, config, variant):
            self.write("build/.config", config)
            built = configurations.VariantBuild.__new__(configurations.VariantBuild)
            built.variant = variant
            built.build = mock.Mock(out=self.top / "build")
            built.build.fragments.return_value = "CONFIG_SWAP=y\n"
            built.build.kconfig.return_value = dropped
            built.configure()

        variant = configurations.Variant("no SWAP", {"SWAP": "n"}, ("ZSWAP",))
        verdict(["CONFIG_ZSWAP"], "# CONFIG_SWAP is not set\n", variant)
        with self.assertRaisesRegex(Error, "Kconfig dropped MM_BATCH"):
            verdict(["CONFIG_ZSWAP", "CONFIG_MM_BATCH"], "", variant)
        with self.assertRaisesRegex(Error, "Kconfig dropped SWAP=y"):
            verdict([], "CONFIG_SWAP=y\n", variant)


class Checked(unittest.TestCase):
    """make patches-check, up to its first look at the tree."""

    def test_an_evaluations_variables_are_not_for_it(self):
        def staged():
            raise Error(f"{[os.environ.get(name) for name in ('METER', 'CONFIG')]} {tree.series()[-1].parent.name}", "no")

        with mock.patch.dict(os.environ, {"METER": "1", "CONFIG": "better_c"}), mock.patch.object(check, "stage", staged), \
                self.assertRaisesRegex(Error, rf"\[None, None\] {paths.ORDER[-1]}:"):
            check.patches_check("x86_64")

    def test_upstreams_release(self):
        for printed, found in (("/c/linux_7.3.4.orig.tar.xz", ["7.3.4"]), ("", [])):
            with mock.patch.object(applies, "brought", return_value=printed):
                self.assertEqual([version for version, _ in applies.upstream()], found)


class States(Toy):
    """The tree after each patch."""

    def states(self):
        self.made()
        folders = [self.top / "out/one", self.top / "out/two"]
        git, why = applies.apply(self.top / "base", applies.touched(folders), folders, self.top / "am", "7.3.0")
        self.assertIsNone(why)
        build = mock.Mock(tree=self.top / "linux", base=mock.Mock(work=self.top, version="7.3.0"), arch="x86_64")
        build.out.name, build.fragments.return_value = "x", "CONFIG_MM_BATCH=y\n"
        return states.States(build, git)

    def test_enter_there_and_back(self):
        found = self.states()
        root = self.top / "linux/mm/mm_batch/root.rs"
        self.assertEqual(len(found.commits), 3)
        found.enter(2)
        self.assertEqual(root.read_bytes(), OURS["mm/mm_batch/root.rs"])
        found.enter(1)
        self.assertNotIn("two", root.read_text())
        found.enter(0)
        self.assertFalse(root.exists())
        self.assertEqual((self.top / "linux/mm/x.c").read_text(), C_FILE)

    def test_what_passed_is_not_built_again_until_it_changes(self):
        found = self.states()
        found.mark(1, "booted")
        found.mark(2, "booted")
        again = self.states()
        self.assertTrue(again.is_done(1, "booted") and again.is_done(2, "booted"))
        self.assertFalse(again.is_done(2, "built"))
        self.path("two", TWO.replace("int two;", "int too;"), "mm/mm_batch/two.rs")
        changed = self.states()
        self.assertTrue(changed.is_done(1, "booted"))
        self.assertFalse(changed.is_done(2, "booted"))

    def test_a_dropped_symbol_is_noticed(self):
        found = self.states()
        found.build.kconfig.return_value = ["CONFIG_MM_BATCH"]
        found.configure(0)
        found.configure(1)  # The series may bring it later.
        with self.assertRaisesRegex(Error, "dropped CONFIG_MM_BATCH after patch 2"):
            found.configure(2)
        found.build.kconfig.return_value = ["CONFIG_NUMA"]
        with self.assertRaisesRegex(Error, "dropped CONFIG_NUMA after patch 1"):
            found.configure(1)

    def test_the_last_patch_of_each_folder(self):
        self.made()
        folders = [self.top / "out/one", self.top / "out/two"]
        self.assertEqual(check.last_of_each(folders), [1, 2])
        shutil.copy(next(folders[0].glob("0001-*")), folders[0] / "0002-again.patch")
        self.assertEqual(check.last_of_each(folders), [2, 3])

    def test_a_patch_that_does_not_build(self):
        found = self.states()
        found.build.kconfig.return_value = []
        found.make = mock.Mock(side_effect=[Error("building mm/ failed", "see the log"), None])
        table = check.Table()
        check.check_states(table, mock.Mock(), found, [1, 2], quick=True)
        self.assertEqual([(check_, code) for check_, _, code, _, _ in table.rows], [("builds", FAIL), ("builds", PASS)])
        self.assertEqual(table.code, FAIL)
        self.assertFalse(found.is_done(1, "built"))

    def test_a_patch_that_does_not_build_without_its_option(self):
        found = self.states()
        found.build.kconfig.return_value = []
        found.make = mock.Mock(side_effect=[None, Error("building mm/ failed", "see the log")])
        table = check.Table()
        check.check_without(table, mock.Mock(), found, full=True)
        self.assertEqual([(what, code) for _, what, code, *_ in table.rows],
                         [("1/2 CONFIG_MM_BATCH=n", PASS), ("2/2 CONFIG_MM_BATCH=n", FAIL)])
        self.assertIn("# CONFIG_MM_BATCH is not set", found.build.kconfig.call_args.args[0])
        found.make = mock.Mock()
        table = check.Table()
        check.check_without(table, mock.Mock(), found, full=False)
        self.assertEqual([(what, code) for _, what, code, *_ in table.rows], [("2/2 CONFIG_MM_BATCH=n", PASS)])
        found.make.assert_called_once_with("mm/", "rust/")

    def test_a_series_that_is_off_and_does_not_build(self):
        found = self.states()
        found.build.kconfig.return_value = []
        found.make, found.symbols = mock.Mock(), mock.Mock(return_value={})
        found.boot = mock.Mock(return_value=(PASS, "booted"))
        found.off = mock.Mock(side_effect=Error("building bzImage failed", "see the log"))
        table = check.Table()
        check.check_states(table, mock.Mock(), found, [1, 2], quick=False)
        self.assertEqual([code for _, _, code, *_ in table.rows], [FAIL, PASS, PASS])
        found.off = mock.Mock(return_value=(PASS, "vmlinux: 0 of 1 symbols"))
        for _ in range(2):
            table = check.Table()
            check.check_states(table, mock.Mock(), found, [1, 2], quick=False)
            self.assertEqual([code for _, _, code, *_ in table.rows], [PASS, PASS, PASS])
        found.off.assert_called_once()

    def test_what_plain_patches_add_may_stay(self):
        found = self.states()
        shown = {found.commits[1]: "+++ b/mm/x.c\n+int plain1;\n int old;\n",
                 found.commits[2]: "+++ b/mm/mm_batch/root.rs\n+mod glue;\n"}
        found.git = lambda *args: shown[args[-1]]
        self.assertEqual(found.added_by_plain_patches(), {"b", "mm", "x", "c", "int", "plainN"})

    def test_a_boot_that_fails(self):
        found = self.states()
        found.build.base.work = self.top
        with mock.patch("mmb.series.states.initrd.archive"), mock.patch("mmb.series.states.boot") as boot:
            boot.return_value = mock.Mock(code=PANIC, why="Kernel panic", lines=[])
            self.assertEqual(found.boot(1)[0], PANIC)
            # It said nothing on its console.
            complaint = "mm_batch: job failed: the kernel complained: [ 1.0] WARNING: mm/x.c:1"
            boot.return_value = mock.Mock(code=PASS, lines=["up", complaint])
            self.assertEqual(found.boot(1)[0], FAIL)
            self.assertIn("WARNING: mm/x.c:1", found.boot(1)[1])
            # Suites were asked for, and none ran.
            boot.return_value = mock.Mock(code=PASS, lines=[])
            found.build.symbol.return_value = "y"
            found.build.tree = tree.Base().tree
            self.write("series-boot/0001.log", "Linux version 7.3\n")
            self.assertEqual(found.boot(1)[0], FAIL)


class SameSource(Toy):
    """Two builds of one crate, as kbuild and cargo write down what they read."""

    def setUp(self):
        super().setUp()
        for name in ("mm_batch.rs", "pages.rs"):
            self.write(f"rust/mm_batch/{name}", name)
            self.write(f"linux/mm/mm_batch/{name}", name)
        self.write("linux/mm/mm_batch/glue/x.rs", "unsafe")

    def verdict(self, kernel=("mm_batch.rs", "pages.rs", "glue/x.rs"), user=("mm_batch.rs", "pages.rs")):
        root = self.top / "linux/mm/mm_batch"
        self.write("out/mm/mm_batch/.mm_batch.o.cmd", "deps := \\\n" + "".join(f"  {root / n} \\\n" for n in kernel))
        listed = self.write("target/mm_batch-0.d", "libmm_batch-0.rmeta: "
                            + " ".join(f"rust/mm_batch/{n}" for n in user) + " Cargo.toml\n\nmm_batch-0.d: other\n")
        return compiled.compare(compiled.kernel_read(self.top / "linux", self.top / "out"),
                            [compiled.user_read("cargo", self.top / "rust/mm_batch", listed, self.top)])

    def test_same(self):
        code, lines = self.verdict()
        self.assertEqual((code, len(lines)), (PASS, 3))
        self.assertTrue(lines[0].endswith("kernel only"))

    def test_different(self):
        self.write("linux/mm/mm_batch/pages.rs", "patched")
        code, lines = self.verdict()
        self.assertEqual(code, FAIL)
        self.assertIn("DIFFERENT", lines[2])

    def test_missing(self):
        code, lines = self.verdict(kernel=("mm_batch.rs",))
        self.assertEqual(code, FAIL)
        self.assertIn("MISSING in the kernel", lines[1])
        self.assertEqual(self.verdict(user=("mm_batch.rs",))[0], FAIL)

    def test_nothing_in_common(self):
        kernel, user = mock.Mock(what="k", hashes={"glue/x.rs": "0"}), mock.Mock(what="u", hashes={})
        self.assertEqual(compiled.compare(kernel, [user])[0], FAIL)

    def test_edited_since(self):
        file = self.write("rust/mm_batch/pages.rs", "pages.rs")
        os.utime(file, (time.time() + 60,) * 2)
        with self.assertRaisesRegex(Error, "newer than what cargo made of it: make test"):
            self.verdict()

    def test_no_kernel(self):
        with self.assertRaisesRegex(Error, "no kernel is built: make kernel"):
            compiled.kernel_read(self.top / "linux", self.top / "out")


if __name__ == "__main__":
    unittest.main(verbosity=2)
