# SPDX-License-Identifier: GPL-2.0
"""The runner, itself tested: every end of a boot, every bad input told apart."""

import contextlib
import fcntl
import hashlib
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

from mmb.kernel.built import built
from mmb.base.cache import TOP, need_space
from mmb.base.errors import FAIL, PANIC, PASS, TIMEOUT, Error
from mmb.base.process import git_files
from mmb.kernel import hooks, kbuild, tree
from mmb.guest import initrd
from mmb.guest.boot import MACHINES, boot, qemu_command
from mmb.paths import model
from mmb.suites.kselftest import MODES


class Boots(unittest.TestCase):
    """Needs the built kernel."""

    @classmethod
    def setUpClass(cls):
        cls.build = built(cls.addClassCleanup)

    def ended(self, job):
        with tempfile.TemporaryDirectory() as folder:
            archive = initrd.archive(pathlib.Path(folder), job)
            return boot(self.build, "quiet", initrd=archive, timeout=60, finished=f"^{initrd.DONE}")

    def test_ends(self):
        for job, code, why in (("echo hello", PASS, ""), ("exit 3", PANIC, "Kernel panic"), ("poweroff -f", FAIL, ""),
                               ("echo stuck; sleep 1000000", TIMEOUT, "stuck")):
            with self.subTest(job):
                ended = self.ended(job)
                self.assertEqual(ended.code, code)
                self.assertIn(why, ended.why)


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


class BadInput(unittest.TestCase):
    """One line with cause and mend, and a non-zero exit, for what a user may give."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.cache = folder.name

    def mmb(self, verb, **environment):
        done = subprocess.run([sys.executable, "-m", "mmb", verb], capture_output=True, text=True, cwd=TOP,
                              env=os.environ | {"MM_BATCH_CACHE": self.cache} | environment)
        errors = [line for line in done.stderr.splitlines() if "error:" in line]
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(len(errors), 1, done.stderr)
        self.assertNotIn("Traceback", done.stderr)
        return errors[0]

    def test_no_source(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertIn("is no kernel source tree", self.mmb("stage", KDIR=folder))
            self.assertIn("is no folder", self.mmb("stage", KSRC=folder + "/none"))
            for version, name, said in (
                    ((7, 2, 13), "KSRC", "7.2.13, which the series does not support: give a 7.3.y source"),
                    ((7, 3, 9), "KDIR", "is not configured"), ((7, 3, 9), "KSRC", "does not apply")):
                (pathlib.Path(folder) / "mm").mkdir(exist_ok=True)
                (pathlib.Path(folder) / "mm/page_alloc.c").write_text("")
                makefile = "VERSION = %s\nPATCHLEVEL = %s\nSUBLEVEL = %s\n" % version
                (pathlib.Path(folder) / "Makefile").write_text(makefile)
                self.assertIn(said, self.mmb("stage", **{name: folder}))

    def test_what_there_is_not(self):
        """Before anything waits for another command, or is written. (tests/tools/bad-input has what make refuses.)"""
        for line, verb, given in (
                ("ROW=order99 matches no row: one of order0, ", "evaluate", {"ROW": "order99"}),
                ("ROW=a** is no regular expression (multiple repeat at position 2)", "evaluate", {"ROW": "a**"}),
                ("ROW= must name one row: ", "profile", {"ROW": "order"}),
                ("MODE=off,c is no mode of order9: ", "profile", {"ROW": "order9", "MODE": "off,c"}),
                ("STEP=none matches no step: one of prove-fresh, ", "full", {"STEP": "none"}),
                ("T=none matches no test: ", "kselftest", {"T": "none"}),
                ("no mutant of the kernel is named none: ", "mutants-kernel", {"T": "none"}),
                ("DEBUG=1 has no figures: ", "evaluate", {"DEBUG": "1"}),
                ("DEBUG=1 has no figures: ", "profile", {"DEBUG": "1", "ROW": "order9"})):
            self.assertIn(line, self.mmb(verb, **given))
        self.assertEqual(os.listdir(self.cache), [])

    def test_the_table_names_what_is_there(self):
        """What make takes, by tests/tools/variables, is what the tools have."""
        rows = dict(line.split("\t")[:2] for line in (TOP / "tests/tools/variables").read_text().splitlines()
                    if not line.startswith("#"))
        self.assertEqual(rows["ARCH"].split("|"), list(MACHINES))
        self.assertEqual(rows["CONFIG"].split("|"), list(kbuild.NAMED))
        self.assertEqual(rows["MODE"][1:rows["MODE"].index(")")].split("|"), list(MODES))
        self.assertEqual(rows["SCALE"].split("|"), list(model.STOLEN))

    def test_no_git_checkout(self):
        """git's own reason, and no list of calls."""
        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaisesRegex(Error, "git does not list the files of .*fatal: not a git repository"):
                git_files(folder)
            with mock.patch.dict(os.environ, {"PATH": folder}), self.assertRaisesRegex(FileNotFoundError, "'git'"):
                git_files(folder)

    def test_a_reader_that_ends(self):
        """What is printed into a closed pipe ends the command, without a word."""
        done = subprocess.run(["bash", "-c", f"{sys.executable} -m mmb stale 2>&1 | true; echo ${{PIPESTATUS[0]}}"],
                              capture_output=True, text=True, cwd=TOP, timeout=60)
        self.assertEqual((done.stdout, done.stderr), ("1\n", ""))

    def test_two_at_once(self):
        source = str(tree.Base().tree)
        with mock.patch.dict(os.environ, {"KSRC": source}):
            held = tree.tree_of(tree.Base())
        lock = pathlib.Path(self.cache) / "locks" / f"{held.parent.name}-{held.name}"
        lock.parent.mkdir()
        with open(lock, "w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            self.assertIn("another mm_batch command uses", self.mmb("stage", KSRC=source))

    def test_cache_not_writable(self):
        self.mmb("stage", MM_BATCH_CACHE="/proc/mm_batch")

    def test_no_qemu(self):
        build = mock.Mock(arch="x86_64", flavour="release", image="/nowhere")
        with mock.patch.dict(os.environ, {"PATH": "/nowhere"}), \
                self.assertRaisesRegex(Error, "qemu-system-x86_64 is not installed"):
            boot(build)


class Trees(unittest.TestCase):
    def test_each_has_patches_that_apply(self):
        """The meter, and what User Mode Linux needs, on the series and on what C is offered."""
        base = tree.Base()
        base.work.mkdir(parents=True, exist_ok=True)
        for more in ("METER", "TIMED"):
            for config in ("", "better_c"):
                with self.subTest(f"{more} {config}"), \
                        mock.patch.dict(os.environ, {"METER": "", "TIMED": "", more: "1", "CONFIG": config}):
                    patches = tree.series()
                    self.assertTrue(tree.patched_files(base, patches, tree.touched_by(patches)))


class Machine(unittest.TestCase):
    """What QEMU is told."""

    def command(self, **more):
        build = mock.Mock(arch="x86_64", image="bzImage", flavour="release")
        with mock.patch.object(shutil, "which", return_value="qemu"), mock.patch.dict(os.environ, {"ACCEL": ""}):
            return " ".join(qemu_command(build, "", None, memory=2048, icount=True, **more))

    def test_a_socket_is_on_one_node(self):
        self.assertIn(" -smp 2 ", self.command(cpus=2) + " ")
        command = self.command(cpus=4, nodes=2)
        self.assertIn("-smp 4,sockets=2 ", command)
        self.assertIn("nodeid=0,memdev=node0,cpus=0-1 ", command)
        self.assertIn("nodeid=1,memdev=node1,cpus=2-3", command)


class Configuration(unittest.TestCase):
    """What is asked for is what is built, beside the others."""

    def given(self, **environment):
        return mock.patch.dict(os.environ, {"CONFIG": "", "EXTRA_CONFIG": "", "METER": ""} | environment)

    def build(self, folder="/nowhere"):
        return kbuild.Build(mock.Mock(work=pathlib.Path(folder), config=None), pathlib.Path(folder), "x86_64")

    def test_each_has_its_folder(self):
        names = set()
        for given in ({}, {"CONFIG": "distro"}, {"CONFIG": "noinline"}, {"EXTRA_CONFIG": "CONFIG_X=y"},
                      {"CONFIG": "distro", "EXTRA_CONFIG": "CONFIG_X=y"}):
            with self.given(**given):
                names.add(kbuild.folder_name("x86_64", "release"))
        self.assertEqual(len(names), 5)
        self.assertLessEqual({"x86_64-release", "x86_64-release-distro", "x86_64-release-noinline"}, names)

    def test_what_is_named_is_added(self):
        """Its symbols, and gcc for each make of a distribution's configuration, and for no other."""
        asked = {"distro": "CONFIG_XEN_PV=y", "noinline": "# CONFIG_RUST_INLINE_HELPERS is not set"}
        for name in ("", *kbuild.NAMED):
            with self.given(CONFIG=name):
                build = self.build()
                for of in {"": asked}.get(name, {name} & set(asked)):
                    self.assertEqual(f"\n{asked[of]}\n" in build.fragments(), of == name)
                self.assertEqual(build.named, name or "release")
                self.assertEqual(f"CC={kbuild.cached('cc')}" in build.command("modules"), name == "distro")
                self.assertIn("LLVM=1", build.command())
                self.assertEqual(build.command("modules")[-1], "modules")

    def test_cc_that_is_no_gcc(self):
        with tempfile.TemporaryDirectory() as folder, self.given(CONFIG="distro"):
            build = self.build(folder)
            for name in ("mm/mm_batch/Kconfig", "mm/Kconfig", "mm/Kconfig.debug", "lib/Kconfig.debug"):
                (pathlib.Path(folder) / name).parent.mkdir(parents=True, exist_ok=True)
                (pathlib.Path(folder) / name).write_text("")
            build.kconfig = lambda text: (build.out / ".config").write_text(config) and []
            config = "CONFIG_CC_IS_CLANG=y\n"
            with self.assertRaisesRegex(Error, "cc is no gcc"):
                build.configure()
            config = "CONFIG_CC_IS_GCC=y\n"
            build.configure()

    def test_the_last_mention_counts(self):
        self.assertEqual(kbuild.without("CONFIG_A=y\n# CONFIG_A is not set\n# CONFIG_B is not set\nCONFIG_B=y\n"),
                         ["CONFIG_A"])

    def test_what_kconfig_does_not_do(self):
        """Needs the built kernel."""
        build = built(self.addCleanup)
        for asked, said in (("CONFIG_NO_SUCH=y", "dropped CONFIG_NO_SUCH: "),
                            ("# CONFIG_MIGRATION is not set", "has CONFIG_MIGRATION, which is not to be set: ")):
            with tempfile.TemporaryDirectory() as folder, self.given(EXTRA_CONFIG=asked):
                build.out, build.log = pathlib.Path(folder), pathlib.Path(folder) / "log"
                with self.assertRaisesRegex(Error, said):
                    build.configure()


class Exports(unittest.TestCase):
    """Nothing by which a module could reach page tables leaves the kernel."""

    LINES = ["0x1b2c3d4e\tfolio_wait_bit\tvmlinux\tEXPORT_SYMBOL\t",
             "0x00000000\trust_helper_spin_lock\tvmlinux\tEXPORT_SYMBOL_GPL\t",
             "0x00000000\tuses_rust_helper_mm_batch_set_ptes\tvmlinux\tEXPORT_SYMBOL_GPL\t"]
    PLANTED = "0x00000000\trust_helper_mm_batch_set_ptes\tvmlinux\tEXPORT_SYMBOL_GPL\t"

    def test_what_is_exported(self):
        no_symbol = "Module.symvers has no symbol"
        for lines, said in ((self.LINES, None), (None, no_symbol), ([], no_symbol), (["words"], no_symbol),
                            ([*self.LINES, self.PLANTED],
                             r"exports rust_helper_mm_batch_set_ptes to modules \(1 of our helpers\)")):
            with tempfile.TemporaryDirectory() as folder, mock.patch.object(kbuild, "run"), \
                    mock.patch.object(kbuild.Build, "configure"), mock.patch.object(kbuild, "need_space"), \
                    self.assertRaisesRegex(Error, said) if said else contextlib.nullcontext():
                build = kbuild.Build(mock.Mock(work=pathlib.Path(folder)), pathlib.Path(folder), "x86_64")
                build.out.mkdir()
                if lines is not None:
                    (build.out / "Module.symvers").write_text("".join(f"{line}\n" for line in lines))
                build.make(None)


# A list of one package, which is empty.
OLDER = hashlib.sha256(b"").hexdigest() + "  {}\n"


class Bring(unittest.TestCase):
    """What fetches tools and sources, where it cannot."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.tools, self.cache = (pathlib.Path(folder.name) / name for name in ("top/tests/tools/fetch", "cache"))
        shutil.copytree(TOP / "tests/tools/fetch", self.tools)

    def edit(self, name, old, new):
        text = (self.tools / name).read_text()
        self.assertRegex(text, f"(?m){old}")
        (self.tools / name).write_text(re.sub(old, new, text, flags=re.M))

    def has(self, name, text):
        """What the cache has already."""
        (self.cache / name).parent.mkdir(parents=True, exist_ok=True)
        (self.cache / name).write_text(text)

    def bring(self, what, **environment):
        return subprocess.run(["bash", self.tools / "bring", what], capture_output=True, text=True,
                              env=os.environ | {"MM_BATCH_CACHE": str(self.cache)} | environment)

    def refused(self, why, what, **environment):
        done = self.bring(what, **environment)
        self.assertNotEqual(done.returncode, 0)
        errors = [line for line in done.stderr.splitlines() if "error:" in line]
        self.assertEqual(len(errors), 1, done.stderr)
        self.assertIn(why, errors[0])

    def test_what_no_suite_has(self):
        self.edit("packages.sh", "=linux-source-7.3", "=linux-source-0.0")
        self.refused("has linux-source-0.0 any more: give KSRC=", "source")
        self.edit("packages.sh", "1.85.0.dfsg3", "0.0.0")
        self.refused("cannot resolve", "cargo")

    def test_no_apt(self):
        for name, text in (("downloads/source.sha256", OLDER.format("linux-source-7.2_7.2.13-1_all.deb")),
                           ("downloads/upstream.sha256", OLDER.format("linux_7.2.8.orig.tar.xz")),
                           ("downloads/debs/linux-source-7.2_7.2.13-1_all.deb", ""),
                           ("downloads/debs/linux_7.2.8.orig.tar.xz", ""), ("src/linux-7.2.13/Makefile", "")):
            self.has(name, text)
        with tempfile.TemporaryDirectory() as folder:
            for tool in ("bash", "dirname", "cat", "mkdir", "df", "awk", "flock", "sha256sum", "cut", "sort", "grep",
                         "rm", "sed"):
                os.symlink(shutil.which(tool), f"{folder}/{tool}")
            # Another version's source, or upstream's release, is not taken for this one's.
            for what in "cargo", "threads", "source", "upstream":
                self.refused("no apt-get here", what, PATH=folder)

    def test_a_set_with_a_layout_of_its_own_stays(self):
        """What is made anew with the other sets is not this one."""
        script = f". {TOP}/tests/tools/fetch/packages.sh; printf '%s' \"1 $threads_packages $threads_programs\""
        inputs = subprocess.run(["bash", "-c", script], capture_output=True, check=True).stdout
        self.edit("bring", r"^layout=\d+$", "layout=99")
        self.has("tools/threads/mm_batch/complete", hashlib.sha256(inputs).hexdigest()[:12])
        done = self.bring("threads")
        self.assertEqual((done.stdout, done.stderr), (f"{self.cache}/tools/threads\n", ""))

    def test_no_space(self):
        with self.assertRaisesRegex(Error, "MiB free in .*: free some"):
            need_space(1 << 40, "a test")


class Hooks(unittest.TestCase):
    def test_a_new_hook_is_noticed(self):
        source = tree.Base().tree / "mm/page_alloc.c"
        hooks.check(source, "7.3")
        with tempfile.TemporaryDirectory() as folder:
            changed = pathlib.Path(folder) / "page_alloc.c"
            changed.write_text(source.read_text().replace("	kmsan_free_page(page, order);",
                                                          "	kmsan_free_page(page, order);\n	new_hook(page);", 1))
            with self.assertRaisesRegex(Error, "new_hook"):
                hooks.check(changed, "7.3")

    def test_no_row_of_the_list_is_stale(self):
        called = hooks.calls(tree.Base().tree / "mm/page_alloc.c")
        self.assertEqual(set(hooks.listed()) - called, set())
