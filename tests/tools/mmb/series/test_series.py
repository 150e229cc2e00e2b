# SPDX-License-Identifier: GPL-2.0
"""make series, make patches-check and make same-source: each finds what it is there to find."""

import difflib
import os
import pathlib
import tempfile
import time
import unittest
from unittest import mock

from mmb import paths
from mmb.base.errors import FAIL, PANIC, PASS, Error
from mmb.guest.boot import qemu_command
from mmb.kernel import compiled, tree
from mmb.series import applies, check, configurations, parts, states, write

# A kernel of one C file, and two paths: the second extends what the first brought.
C_FILE = "".join(f"int {name};\n" for name in "abcdefghijklmnop")
MAIL = """From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001
From: {author}
Date: Fri, 20 Nov 2026 21:20:43 +0000
Subject: [PATCH] {subject}

Because.
---
{diff}"""


def diff(name, old, new):
    lines = difflib.unified_diff(old.splitlines(True), new.splitlines(True), f"a/{name}", f"b/{name}")
    return f"diff --git a/{name} b/{name}\n{''.join(lines)}"


def more(text, after, name):
    return text.replace(f"int {after};\n", f"int {after};\nint {name};\n")


ROOT = "//! Some\n//! text.\nmod a;\nmod b;\nmod one;\nmod two;\nmod y;\nmod z;\n"
OURS = {"mm/mm_batch/root.rs": ROOT.encode(), "mm/mm_batch/one.rs": b"1\n", "mm/mm_batch/two.rs": b"2\n"}
WITH_ONE = more(C_FILE, "d", "one")
WITH_BOTH = more(WITH_ONE, "g", "two")
ONE, TWO = diff("mm/x.c", C_FILE, WITH_ONE), diff("mm/x.c", WITH_ONE, WITH_BOTH)
# What comes with the first path, and what the second adds to it.
TWO += diff("mm/mm_batch/root.rs", ROOT.replace("mod two;\n", ""), ROOT)
CHANGES_ONE = diff("mm/mm_batch/one.rs", "1\n", "3\n")


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

    def path(self, name, diff, *files, patch=None):
        self.write(f"patches/{name}/0000-cover-letter.patch", f"Subject: [PATCH] mm: {name}\n\nWhy {name}.\n")
        self.write(f"patches/{name}/0001-mm-{name}.patch",
                   MAIL.format(author=write.AUTHOR, subject=f"mm: {name}", diff=diff))
        self.write(f"patches/{name}/files", f"# ours\nmm-{patch or name}.patch\n" + "".join(f"\t{f}\n" for f in files))

    def plan(self, ours=OURS):
        return write.Plan(["none", "one", "two"], ours, self.top / "patches")

    def made(self, out="out", sob=None):
        base = mock.Mock(tree=self.top / "base", version="7.3.0", work=self.top)
        write.write_series(base, self.top / out, sob, self.plan())
        return {str(p.relative_to(self.top / out)): p.read_text() for p in (self.top / out).rglob("*.patch")}

    def applied(self, source="base", threeway=None):
        """What was made, to a source: the repository, and why not."""
        self.made()
        patches = [p for path in ("one", "two") for p in tree.patches_of(self.top / "out" / path)]
        return applies.apply(self.top / source, patches, self.top / "am", "7.3.0", threeway)


class Series(Toy):
    def test_same_input_same_bytes(self):
        first = self.made()
        self.assertEqual(sorted(first), ["one/0000-cover-letter.patch", "one/0001-mm-one.patch",
                                         "two/0000-cover-letter.patch", "two/0001-mm-two.patch"])
        elsewhere = {"GIT_AUTHOR_DATE": "1 Jan 2001", "LC_ALL": "de_DE.UTF-8", "TZ": "Asia/Tokyo"}
        with mock.patch.dict(os.environ, elsewhere):
            self.assertEqual(first, self.made("again"))

    def test_a_part_is_for_a_plain_kernel(self):
        """Its patches alone, with whom to send them to, by the tree's own list."""
        script = self.write("base/scripts/get_maintainer.pl", '#!/bin/sh\n[ "$4" = --no-l ] && echo "A <a@b>" || echo l@b\n')
        script.chmod(0o755)
        self.path("fix", ONE)
        base = mock.Mock(tree=self.top / "base", version="7.3.0", work=self.top)
        part = parts.Part("fix", tree.patches_of("fix", self.top / "patches"))
        with mock.patch.object(write, "PARTS", {"fix": lambda: part}):
            folder = write.write_part(base, "fix", self.top / "out", plan=self.plan())
            texts = [p.read_text() for p in sorted(folder.iterdir())]
            self.assertEqual(len(texts), 2)
            self.assertIn("Why fix.", texts[0])
            for text in texts:
                self.assertRegex(text, r"(?s)\nTo: A <a@b>\nCc: l@b\n")
            script.write_text("#!/bin/sh\necho no list >&2; exit 1\n")
            with self.assertRaisesRegex(Error, "get_maintainer.pl failed .no list"):
                write.write_part(base, "fix", self.top / "out", plan=self.plan())

    def test_what_a_part_needs_is_named_and_not_sent(self):
        """With our files, which come with what is before it as well."""
        self.write("base/scripts/get_maintainer.pl", "#!/bin/sh\necho a@b\n").chmod(0o755)
        base = mock.Mock(tree=self.top / "base", version="7.3.0", work=self.top)
        one, two = (tree.patches_of(path, self.top / "patches") for path in ("one", "two"))
        with mock.patch.object(write, "PARTS", {"two": lambda: parts.Part("two", two, one)}):
            letter, *mails = sorted(write.write_part(base, "two", self.top / "out", plan=self.plan()).iterdir())
        self.assertEqual([mail.name for mail in mails], ["0001-mm-two.patch"])
        self.assertRegex(letter.read_text(), r"\nbase: Linux 7.3.0\nprerequisite-patch-id: [0-9a-f]{40}\n$")
        self.assertIn("two.rs", mails[0].read_text())

    def test_what_the_parts_are(self):
        """None has what another one is for, or what knows of a file of ours, but for the path."""
        def of(patches):
            return sorted({str(patch.parent.relative_to(tree.TOP / "patches")) for patch in patches})

        found = {name: make() for name, make in parts.PARTS.items()}
        self.assertEqual({name: (of(part.own), len(part.own), of(part.below), len(part.below))
                          for name, part in found.items() if name != "folio_batch"},
                         {"fixes": (["fixes"], 10, [], 0), "selftests": (["fixes"], 2, [], 0),
                          "reclaim_c": (["reclaim_c"], 2, [], 0), "better_c": (["better_c"], 2, [], 0),
                          "contig_free_c": (["contig_free", "contig_free_c"], 3, [], 0),
                          "anon_unmap_c": (["anon_unmap", "anon_unmap_c", "anon_unmap_c/plain"], 9, ["fixes"], 3)})
        self.assertEqual(of(found["folio_batch"].below), sorted(set(tree.SERIES) - {"folio_batch"}))
        self.assertFalse([name for part in found.values() if not part.below for name in tree.touched_by(part.own)
                          if name in tree.our_files()])
        for part in found.values():
            self.assertTrue((tree.TOP / "patches" / part.letter / write.LETTER).exists())

    def test_make_takes_the_parts_that_there_are(self):
        line = next(line for line in (tree.TOP / "tests/tools/variables").read_text().splitlines()
                    if line.startswith("PART\t"))
        self.assertEqual(line.split("\t")[1].split("|"), list(parts.PARTS))

    def test_what_an_earlier_patch_brought(self):
        """What no later path knows is changed once, where we have it; what a later path brought is taken back."""
        new = "//! More.\n" + ROOT.replace("Some", "Any")
        self.path("two", TWO + CHANGES_ONE, "mm/mm_batch/two.rs")
        brought = self.plan(OURS | {"mm/mm_batch/root.rs": new.encode(), "mm/mm_batch/one.rs": b"3\n"}).brought
        self.assertEqual(brought["mm/mm_batch/root.rs"].decode(), new.replace("mod two;\n", ""))
        self.assertEqual(brought["mm/mm_batch/one.rs"], b"1\n")

    def test_patches_that_do_not_fit_what_we_have(self):
        def root(old, new):
            return OURS | {"mm/mm_batch/root.rs": ROOT.replace(old, new).encode()}

        no_two = {name: text for name, text in OURS.items() if "two" not in name}
        not_led = "0001-mm-two.patch does not lead to what we have "
        for said, ours, two in (
                (f"{not_led}.*root.rs", root("mod two;", "mod zwei;"), {}),
                (f"{not_led}.*root.rs", root("mod two;\n", ""), {}),
                (f"{not_led}.*root.rs", root("mod one;\nmod two;", "mod two;\nmod one;"), {}),
                (f"{not_led}.*one.rs", OURS, {"diff": TWO + CHANGES_ONE}),
                ("two/files names mm/mm_batch/root.rs, which an earlier patch brings", OURS, {"more": ["root.rs"]}),
                ("no patch brings mm/mm_batch/three.rs", OURS | {"mm/mm_batch/three.rs": b""}, {}),
                ("names mm/mm_batch/two.rs, which is not ours", no_two, {}),
                ("names mm-other.patch, which is no patch there", OURS, {"patch": "other"})):
            files = [f"mm/mm_batch/{name}" for name in (*two.get("more", []), "two.rs")]
            self.path("two", two.get("diff", TWO), *files, patch=two.get("patch"))
            with self.subTest(said), self.assertRaisesRegex(Error, said):
                self.plan(ours)

    def test_cover_letters(self):
        cover = self.made()["two/0000-cover-letter.patch"]
        for text in ("Subject: [PATCH 0/1] mm: two\n", "\nWhy two.\n", "3 files changed", "base: Linux 7.3.0",
                     "prerequisite-patch-id: "):
            self.assertIn(text, cover)
        self.assertNotIn("base-commit", cover)
        # A base that others know.
        git = write.Git(self.top / "base", there=True)
        git("init", "-q")
        git("commit", "-q", "--allow-empty", "-m", "v7.3")
        line = f"base-commit: {git('rev-parse', 'HEAD')} (Linux 7.3.0)"
        self.assertIn(line, self.made()["one/0000-cover-letter.patch"])

    def test_no_sign_off_but_the_users(self):
        self.assertNotIn("Signed-off-by", "".join(self.made().values()))
        for name, text in self.made(sob="Jane Doe <jane@example.org>").items():
            self.assertIn("From: Jane Doe <jane@example.org>", text)
            self.assertNotIn("mm_batch@localhost", text)
            self.assertEqual(text.count("\nSigned-off-by: Jane Doe <jane@example.org>\n"), "0000" not in name)

    def test_a_patch_that_does_not_apply(self):
        self.write("base/mm/x.c", "something else\n")
        with self.assertRaisesRegex(Error, "0001-mm-one.patch does not apply"):
            self.made()
        self.assertFalse((self.top / "out").exists())


class Applies(Toy):
    def test_to_other_sources(self):
        for text, threeway, why in (("int before;\n" + C_FILE, None, "^None$"),
                                    (C_FILE.replace("int d;", "long d;"), self.top / "series-git", "^0001: mm/x.c$"),
                                    (C_FILE.replace("int b;", "long b;"), None, "^0001: .*mm/x.c")):
            self.write("other/mm/x.c", text)
            self.assertRegex(str(self.applied("other", threeway)[1]), why)
        # A new file that is there already.
        self.write("other/mm/x.c", C_FILE)
        self.write("other/mm/mm_batch/two.rs", "theirs\n")
        self.assertRegex(self.applied("other")[1], "two.rs")

    def test_as_make_series_says(self):
        self.made()
        git = write.Git(self.top / "am")
        git.commit_base(self.top / "base", ["mm/x.c"], "7.3.0")
        for path in ("one", "two"):
            git("am", "--empty=drop", *sorted((self.top / "out" / path).glob("*.patch")))
        self.assertEqual(git("log", "--format=%s", "base..").split("\n"), ["mm: two", "mm: one"])
        self.assertEqual(git("diff", "--stat", "HEAD"), "")

    def test_versions_in_order(self):
        versions = ["7.3.9-1", "7.3.12-1", "7.4~rc7-1~exp1", "7.4.4-1~bpo13+1"]
        self.assertEqual(sorted(versions[::-1], key=applies.order), versions)

    def test_upstreams_release(self):
        for printed, found in (("/c/linux_7.3.4.orig.tar.xz", ["7.3.4"]), ("", [])):
            with mock.patch.object(applies, "brought", return_value=printed):
                self.assertEqual([version for version, _ in applies.upstream()], found)


class Checks(Toy):
    def test_an_evaluations_variables_are_not_for_it(self):
        def staged():
            given = [os.environ.get(name) for name in ("METER", "CONFIG")]
            raise Error(f"{given} {tree.series()[-1].parent.name}", "no")

        with mock.patch.dict(os.environ, {"METER": "1", "CONFIG": "better_c"}), \
                mock.patch.object(check, "stage", staged), \
                self.assertRaisesRegex(Error, rf"\[None, None\] {paths.ORDER[-1]}:"):
            check.patches_check("x86_64")

    def test_what_is_staged(self):
        git = self.applied()[0]
        self.assertEqual(check.check_staged(self.top / "series-git", git, ["mm/x.c"])[0], PASS)
        self.assertEqual(check.check_staged(self.top / "base", git, ["mm/x.c"])[0], FAIL)

    def test_checkpatch(self):
        mail = MAIL.format(author=write.AUTHOR, subject="mm: x: say what", diff=ONE)
        bug = mail.replace("+int one;", "+BUG_ON(one);")
        new = mail + "diff --git a/mm/y.c b/mm/y.c\nnew file mode 100644\n--- /dev/null\n+++ b/mm/y.c\n" \
            "@@ -0,0 +1 @@\n+// SPDX-License-Identifier: GPL-2.0\n"
        for text, code, said in ((mail, PASS, ""), (mail.replace("+int one;", "+int one; "), FAIL, ""), (bug, FAIL, ""),
                                 # A line of the kernel's own that only moves is not ours to improve.
                                 (bug.replace("+BUG_ON(one);", "-	BUG_ON(one);\n+BUG_ON(one);"), PASS, ""),
                                 # A new file that MAINTAINERS is not told of.
                                 (new, FAIL, "MAINTAINERS")):
            found = check.checkpatch(tree.Base().tree, self.write("a.patch", text))
            self.assertEqual(found[0], code, text)
            self.assertIn(said, found[1])

    def test_symbols_left(self):
        found = mock.Mock(names=["mm/vmscan.c", "mm/new.c"])
        found.build.base.tree = tree.Base().tree

        def left(on, off):
            return states.left_over({"vmlinux": on}, {"vmlinux": off}, {"vmlinux": ["a"]},
                                    lambda symbol: states.States.named_by_base(found, symbol))

        on = ["a", "mm_batch"]
        self.assertEqual(left(on, ["a"]), (PASS, "vmlinux: 0 of 1 symbols"))
        self.assertEqual(left(on, on), (FAIL, "1 symbols left: mm_batch"))
        self.assertEqual(left(["a"], ["a"])[0], FAIL)
        # An inline function that the compiler now calls is not the series'; nor is one of a file that it touches, while
        # one of another is. A name is no expression, and no option.
        for symbol, code in (("set_ptes", PASS), ("handle_write_error", PASS), ("swapin_walk_pmd_entry", FAIL),
                             ("set.ptes", FAIL), ("-vset_ptes", FAIL)):
            self.assertEqual(left(on, ["a", symbol])[0], code, symbol)

    def test_settings(self):
        text = "CONFIG_SWAP=y\nCONFIG_ZSWAP=y\n# CONFIG_NUMA is not set\n"
        text = configurations.altered(text, {"SWAP": "n", "NUMA": "y"})
        self.assertEqual(text, "CONFIG_ZSWAP=y\n# CONFIG_SWAP is not set\nCONFIG_NUMA=y\n")
        self.assertEqual(configurations.wrong(text, {"SWAP": "n", "NUMA": "y"}), [])
        self.assertEqual(configurations.wrong(text, {"SWAP": "y", "MEMCG": "y"}), ["SWAP=n", "MEMCG=n"])

    def test_warnings_of_our_files_alone(self):
        log = ("/c/mm_batch/linux/mm/memory.c:94:2: warning: theirs [-W#warnings]\n"
               "warning: theirs\n  --> /c/mm_batch/linux/rust/kernel/page.rs:1:1\n")
        ours = ("/c/mm_batch/linux/mm/mm_batch_modes.c:1:2: warning: unused [-Wunused]\n"
                "warning: unused\n  --> /c/mm_batch/linux/mm/mm_batch/pages.rs:1:1\n")
        for text, names, nr in ((log, {"mm/vmscan.c"}, 0), (log, {"mm/memory.c", "mm/vmscan.c"}, 1),
                                (log + ours, {"mm/vmscan.c"}, 2)):
            for said in text, text.replace("/c/mm_batch/linux", ".."):
                self.assertEqual(len(configurations.warned(said, "/c/mm_batch/linux", names)), nr)

    def test_a_dropped_symbol_is_noticed(self):
        variant = configurations.Variant("no SWAP", {"SWAP": "n"}, ("ZSWAP",), becomes={"NUMA": "y"})
        build = mock.Mock(out=self.top / "build")
        build.fragments.return_value = "CONFIG_SWAP=y\n"
        for dropped, config, said in (("", "CONFIG_NUMA=y", None), ("MM_BATCH", "CONFIG_NUMA=y", "MM_BATCH"),
                                      ("ZSWAP", "CONFIG_NUMA=y\nCONFIG_SWAP=y", "SWAP=y"), ("", "", "NUMA=n")):
            self.write("build/.config", f"{config}\n")
            build.kconfig.return_value = [f"CONFIG_{symbol}" for symbol in ("ZSWAP", dropped) if symbol]
            if not said:
                configurations.configure(build, variant)
                continue
            with self.assertRaisesRegex(Error, f"no SWAP: Kconfig dropped {said}:"):
                configurations.configure(build, variant)


class States(Toy):
    """The tree after each patch."""

    def states(self):
        git, why = self.applied()
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
        # What was booted was built.
        self.assertTrue(again.is_done(1, "booted") and again.is_done(2, "booted") and again.is_done(2, "built"))
        self.assertFalse(again.is_done(2, "without"))
        self.path("two", TWO.replace("int two;", "int too;"), "mm/mm_batch/two.rs")
        changed = self.states()
        self.assertTrue(changed.is_done(1, "booted"))
        self.assertFalse(changed.is_done(2, "booted"))

    def test_a_dropped_symbol_is_noticed(self):
        found = self.states()
        found.build.kconfig.return_value = ["CONFIG_MM_BATCH"]
        found.configure(0)
        found.configure(1)  # The series may bring it later.
        for index, symbol in (2, "CONFIG_MM_BATCH"), (1, "CONFIG_NUMA"):
            found.build.kconfig.return_value = [symbol]
            with self.assertRaisesRegex(Error, f"dropped {symbol} after patch {index}"):
                found.configure(index)

    def test_all_but_the_last_are_small(self):
        found = self.states()
        found.build.kconfig.return_value = []
        for index, what, small in (0, "booted", True), (1, "booted", True), (2, "booted", False), (0, "off", False):
            found.configure(index, what=what)
            self.assertEqual("CONFIG_NET is not set" in found.build.kconfig.call_args.args[0], small, (index, what))

    def test_the_last_patch_of_each_folder(self):
        for names, last in (("one/1 two/1", [1, 2]), ("one/1 one/2 two/1", [2, 3])):
            self.assertEqual(check.last_of_each([pathlib.Path(name) for name in names.split()]), last)

    def rows(self, check_, found, *how):
        table = check.Table(mock.Mock())
        check_(table, found, *how)
        table.finish()
        return [row[:3] for row in table.rows]

    def test_a_patch_that_does_not_build(self):
        found = self.states()
        found.build.kconfig.return_value = []
        found.make = mock.Mock(side_effect=[Error("building mm/ failed", "see the log"), None])
        self.assertEqual(self.rows(check.check_states, found, [1, 2], True),
                         [("builds", "1/2 mm: one", FAIL), ("builds", "2/2 mm: two", PASS)])
        self.assertFalse(found.is_done(1, "built"))
        # Nor without its option.
        found.make = mock.Mock(side_effect=[None, Error("building mm/ failed", "see the log")])
        self.assertEqual(self.rows(check.check_without, found, True),
                         [("builds", "1/2 CONFIG_MM_BATCH=n", PASS), ("builds", "2/2 CONFIG_MM_BATCH=n", FAIL)])
        self.assertIn("# CONFIG_MM_BATCH is not set", found.build.kconfig.call_args.args[0])
        found.make = mock.Mock()
        self.assertEqual(self.rows(check.check_without, found, False), [("builds", "2/2 CONFIG_MM_BATCH=n", PASS)])
        found.make.assert_called_once_with("mm/", "rust/")

    def test_a_series_that_is_off_and_does_not_build(self):
        found = self.states()
        found.build.kconfig.return_value = []
        found.make, found.boot = mock.Mock(), mock.Mock(return_value=lambda: (PASS, "booted"))
        found.off = mock.Mock(side_effect=Error("building bzImage failed", "see the log"))
        for codes in [PASS, PASS, FAIL], [PASS, PASS, PASS], [PASS, PASS, PASS]:
            self.assertEqual([code for _, _, code in self.rows(check.check_states, found, [1, 2], False)], codes)
            found.off.side_effect, found.off.return_value = None, (PASS, "vmlinux: 0 of 1 symbols")
        # Once it has passed, it is not tried again.
        self.assertEqual(found.off.call_count, 2)

    def test_what_plain_patches_add_may_stay(self):
        found = self.states()
        shown = {found.commits[1]: "+++ b/mm/x.c\n+int plain1;\n int old;\n",
                 found.commits[2]: "+++ b/mm/mm_batch/root.rs\n+mod glue;\n"}
        found.git = lambda *args: shown[args[-1]]
        self.assertEqual(found.added_by_plain_patches(), {"b", "mm", "x", "c", "int", "plainN"})

    def test_a_boot_that_fails(self):
        found = self.states()
        found.build.base.work, found.compile = self.top, mock.Mock()
        found.build.image = self.top / "bzImage"
        self.write("bzImage", "")
        self.write("series-boot/0001.image", "")
        with mock.patch("mmb.series.states.initrd.archive"), mock.patch("mmb.series.states.boot") as boot:
            boot.return_value = mock.Mock(code=PANIC, why="Kernel panic", lines=[])
            self.assertEqual(found.boot(1)()[0], PANIC)
            # What is booted has all that QEMU's command line asks of a build.
            with mock.patch("mmb.guest.boot.emulator", return_value="sh"):
                command = qemu_command(boot.call_args.args[0], "", None, 1, 2048, False)
            self.assertIn(str(self.top / "series-boot/0001.image"), command)
            # It said nothing on its console.
            complaint = "mm_batch: job failed: the kernel complained: [ 1.0] WARNING: mm/x.c:1"
            boot.return_value = mock.Mock(code=PASS, lines=["up", complaint])
            self.assertEqual(found.boot(1)()[0], FAIL)
            self.assertIn("WARNING: mm/x.c:1", found.boot(1)()[1])
            # Suites were asked for, and none ran.
            boot.return_value = mock.Mock(code=PASS, lines=[])
            found.build.symbol.return_value = "y"
            found.build.tree = tree.Base().tree
            self.write("series-boot/0001.log", "Linux version 7.3\n")
            self.assertEqual(found.boot(1)()[0], FAIL)


class SameSource(Toy):
    """Two builds of one crate, as kbuild and cargo write down what they read."""

    def setUp(self):
        super().setUp()
        for name in ("mm_batch.rs", "pages.rs"):
            self.write(f"rust/mm_batch/{name}", name)
            self.write(f"linux/mm/mm_batch/{name}", name)
        self.write("linux/mm/mm_batch/glue/x.rs", "unsafe")

    def verdict(self, kernel="mm_batch.rs pages.rs glue/x.rs", user="mm_batch.rs pages.rs"):
        root = self.top / "linux/mm/mm_batch"
        self.write("out/mm/mm_batch/.mm_batch.o.cmd",
                   "deps := \\\n" + "".join(f"  {root / name} \\\n" for name in kernel.split()))
        names = " ".join(f"rust/mm_batch/{name}" for name in user.split())
        listed = self.write("target/mm_batch-0.d", f"libmm_batch-0.rmeta: {names} Cargo.toml\n\nmm_batch-0.d: other\n")
        return compiled.compare({"the kernel": compiled.kernel_read(self.top / "linux", self.top / "out"),
                                 "cargo": compiled.user_read("cargo", self.top / "rust/mm_batch", listed, self.top)})

    def test_verdicts(self):
        code, lines = self.verdict()
        self.assertEqual((code, len(lines)), (PASS, 3))
        self.assertTrue(lines[0].endswith("kernel only"))
        for side, said in ("kernel", "the kernel"), ("user", "cargo"):
            code, lines = self.verdict(**{side: "mm_batch.rs"})
            self.assertEqual(code, FAIL)
            self.assertIn(f"MISSING in {said}", "".join(lines))
        self.assertEqual(compiled.compare({"k": {"glue/x.rs": "0"}, "u": {}}),
                         (FAIL, [mock.ANY, "no file is in all of them"]))
        self.write("linux/mm/mm_batch/pages.rs", "patched")
        code, lines = self.verdict()
        self.assertEqual(code, FAIL)
        self.assertIn("DIFFERENT", lines[2])

    def test_what_was_not_built(self):
        with self.assertRaisesRegex(Error, "no kernel is built: make kernel"):
            compiled.kernel_read(self.top / "linux", self.top / "out")
        file = self.write("rust/mm_batch/pages.rs", "pages.rs")
        os.utime(file, (time.time() + 60,) * 2)
        with self.assertRaisesRegex(Error, "newer than what cargo made of it: make test"):
            self.verdict()
