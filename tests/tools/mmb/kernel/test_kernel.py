# SPDX-License-Identifier: GPL-2.0
"""The runner, itself tested: every end of a boot, every bad input told apart."""

import hashlib
import os
import pathlib
import re
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

NOWHERE = pathlib.Path("/nowhere")


class Boots(unittest.TestCase):
    """Needs the built kernel."""

    @classmethod
    def setUpClass(cls):
        cls.build = built(cls.addClassCleanup)

    def ended(self, job, timeout=60):
        with tempfile.TemporaryDirectory() as folder:
            archive = initrd.archive(pathlib.Path(folder), job)
            return boot(self.build, "quiet", initrd=archive, timeout=timeout, finished=f"^{initrd.DONE}")

    def test_done(self):
        self.assertEqual(self.ended("echo hello").code, PASS)

    def test_panic(self):
        ended = self.ended("exit 3")
        self.assertEqual(ended.code, PANIC)
        self.assertIn("Kernel panic", ended.why)

    def test_hang(self):
        ended = self.ended("echo stuck; sleep 1000000", timeout=60)
        self.assertEqual(ended.code, TIMEOUT)
        self.assertIn("stuck", ended.why)

    def test_off_too_early(self):
        self.assertEqual(self.ended("poweroff -f").code, FAIL)


class BadInput(unittest.TestCase):
    """One line with cause and mend, and a non-zero exit, for what a user may give."""

    def mmb(self, *arguments, **environment):
        environment = os.environ | environment
        done = subprocess.run([sys.executable, "-m", "mmb", *arguments], env=environment, capture_output=True,
                              text=True, cwd=TOP)
        errors = [line for line in done.stderr.splitlines() if "error:" in line]
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(len(errors), 1, done.stderr)
        self.assertNotIn("Traceback", done.stderr)
        return errors[0]

    def fake_tree(self, folder, version):
        tree_ = pathlib.Path(folder)
        (tree_ / "mm").mkdir()
        (tree_ / "mm/page_alloc.c").write_text("")
        (tree_ / "Makefile").write_text("VERSION = %s\nPATCHLEVEL = %s\nSUBLEVEL = %s\n" % version)

    def test_kdir_is_no_tree(self):
        with tempfile.TemporaryDirectory() as cache, tempfile.TemporaryDirectory() as empty:
            self.assertIn("is no kernel source tree", self.mmb("stage", KDIR=empty, MM_BATCH_CACHE=cache))
            self.assertIn("is no folder", self.mmb("stage", KSRC=empty + "/none", MM_BATCH_CACHE=cache))

    def test_unsupported_version(self):
        with tempfile.TemporaryDirectory() as cache, tempfile.TemporaryDirectory() as folder:
            self.fake_tree(folder, (7, 2, 13))
            self.assertIn("7.2.13, which the series does not support: give a 7.3.y source",
                          self.mmb("stage", KSRC=folder, MM_BATCH_CACHE=cache))

    def test_kdir_not_configured(self):
        with tempfile.TemporaryDirectory() as cache, tempfile.TemporaryDirectory() as folder:
            self.fake_tree(folder, (7, 3, 9))
            self.assertIn("is not configured", self.mmb("stage", KDIR=folder, MM_BATCH_CACHE=cache))

    def test_series_does_not_apply(self):
        with tempfile.TemporaryDirectory() as cache, tempfile.TemporaryDirectory() as folder:
            self.fake_tree(folder, (7, 3, 9))
            self.assertIn("does not apply", self.mmb("stage", KSRC=folder, MM_BATCH_CACHE=cache))

    def test_what_there_is_not(self):
        """Before anything waits for another command, or is written. (tests/tools/bad-input has what make refuses.)"""
        with tempfile.TemporaryDirectory() as cache:
            for line, verb, given in (
                    ("ROW=order99 matches no row: one of order0, ", "evaluate", {"ROW": "order99"}),
                    ("ROW=a** is no regular expression (multiple repeat at position 2)", "evaluate", {"ROW": "a**"}),
                    ("ROW= must name one row: ", "profile", {"ROW": "order"}),
                    ("MODE=off,c is no mode of order9: ", "profile", {"ROW": "order9", "MODE": "off,c"}),
                    ("STEP=none matches no step: one of prove-fresh, ", "full", {"STEP": "none"}),
                    ("T=none matches no test: ", "kselftest", {"T": "none"}),
                    ("no mutant of the kernel is named none: ", "mutants-kernel", {"T": "none"})):
                self.assertIn(line, self.mmb(verb, MM_BATCH_CACHE=cache, **given))
            self.assertEqual(os.listdir(cache), [])

    def test_the_table_names_what_is_there(self):
        """What make takes, by tests/tools/variables, is what the tools have."""
        rows = dict(line.split("\t")[:2] for line in (TOP / "tests/tools/variables").read_text().splitlines()
                    if not line.startswith("#"))
        self.assertEqual(rows["ARCH"].split("|"), list(MACHINES))
        self.assertEqual(rows["CONFIG"].split("|"), list(kbuild.NAMED))
        self.assertEqual(rows["MODE"][1:rows["MODE"].index(")")].split("|"), list(MODES))
        self.assertEqual(rows["SCALE"].split("|"), list(model.ANON_MIB))

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

    def test_no_figures_of_the_debug_kernel(self):
        with tempfile.TemporaryDirectory() as cache:
            self.assertIn("DEBUG=1 has no figures: ", self.mmb("evaluate", DEBUG="1", MM_BATCH_CACHE=cache))
            self.assertIn("DEBUG=1 has no figures: ", self.mmb("profile", DEBUG="1", ROW="order9", MM_BATCH_CACHE=cache))

    def test_two_at_once(self):
        with tempfile.TemporaryDirectory() as cache:
            source = str(tree.Base().tree)
            with mock.patch.dict(os.environ, {"KSRC": source}):
                held = tree.tree_of(tree.Base())
                lock = pathlib.Path(cache) / "locks" / f"{held.parent.name}-{held.name}"
            lock.parent.mkdir()
            holder = subprocess.Popen(["flock", lock, "sleep", "20"])
            try:
                while subprocess.run(["flock", "-n", lock, "true"]).returncode == 0:
                    pass
                self.assertIn("another mm_batch command uses", self.mmb("stage", KSRC=source, MM_BATCH_CACHE=cache))
            finally:
                holder.kill()
                holder.wait()

    def test_cache_not_writable(self):
        self.mmb("stage", MM_BATCH_CACHE="/proc/mm_batch")

    def test_no_qemu(self):
        class NoBuild:
            arch = "x86_64"
            flavour = "release"
            image = "/nowhere"

        path, os.environ["PATH"] = os.environ["PATH"], "/nowhere"
        try:
            with self.assertRaisesRegex(Error, "qemu-system-x86_64 is not installed"):
                boot(NoBuild())
        finally:
            os.environ["PATH"] = path


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

    def test_each_has_its_folder(self):
        names = set()
        for given in ({}, {"CONFIG": "distro"}, {"CONFIG": "noinline"}, {"EXTRA_CONFIG": "CONFIG_X=y"},
                      {"CONFIG": "distro", "EXTRA_CONFIG": "CONFIG_X=y"}):
            with self.given(**given):
                names.add(kbuild.folder_name("x86_64", "release"))
        self.assertEqual(len(names), 5)
        self.assertLessEqual({"x86_64-release", "x86_64-release-distro", "x86_64-release-noinline"}, names)

    def test_what_is_named_is_added(self):
        for name, symbol in ("distro", "CONFIG_XEN_PV=y"), ("noinline", "# CONFIG_RUST_INLINE_HELPERS is not set"):
            with self.given(CONFIG=name):
                build = kbuild.Build(mock.Mock(work=NOWHERE), NOWHERE, "x86_64")
                self.assertIn(f"\n{symbol}\n", build.fragments())
                self.assertEqual(build.named, name)
            with self.given():
                self.assertNotIn(f"\n{symbol}\n", build.fragments())

    def test_a_distributions_compiler(self):
        """gcc, for each make of that configuration, and for no other."""
        for name in ("", *kbuild.NAMED):
            with self.given(CONFIG=name):
                build = kbuild.Build(mock.Mock(work=NOWHERE), NOWHERE, "x86_64")
                self.assertEqual(f"CC={kbuild.cached('cc')}" in build.command("modules"), name == "distro")
                self.assertIn("LLVM=1", build.command())
                self.assertEqual(build.command("modules")[-1], "modules")

    def test_cc_that_is_no_gcc(self):
        config = "CONFIG_CC_IS_CLANG=y\n"
        with tempfile.TemporaryDirectory() as folder, self.given(CONFIG="distro"):
            build = kbuild.Build(mock.Mock(work=pathlib.Path(folder), config=None), pathlib.Path(folder), "x86_64")
            for name in ("mm/mm_batch/Kconfig", "mm/Kconfig", "mm/Kconfig.debug", "lib/Kconfig.debug"):
                (pathlib.Path(folder) / name).parent.mkdir(parents=True, exist_ok=True)
                (pathlib.Path(folder) / name).write_text("")
            build.kconfig = lambda text: (build.out / ".config").write_text(config) and []
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

    def built(self, lines):
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(kbuild, "run"), \
                mock.patch.object(kbuild.Build, "configure"), mock.patch.object(kbuild, "need_space"), \
                mock.patch.dict(os.environ, {"CONFIG": "", "EXTRA_CONFIG": ""}):
            build = kbuild.Build(mock.Mock(work=pathlib.Path(folder)), pathlib.Path(folder), "x86_64")
            build.out.mkdir()
            if lines is not None:
                (build.out / "Module.symvers").write_text("".join(f"{line}\n" for line in lines))
            build.make(None)

    def test_none(self):
        self.built(self.LINES)

    def test_one(self):
        with self.assertRaisesRegex(Error, r"exports rust_helper_mm_batch_set_ptes to modules \(1 of our helpers\)"):
            self.built([*self.LINES, self.PLANTED])

    def test_no_list(self):
        for lines in (None, [], ["words"]):
            with self.assertRaisesRegex(Error, "Module.symvers has no symbol"):
                self.built(lines)


class Bring(unittest.TestCase):
    """What fetches tools and sources, where it cannot."""

    def bring(self, what, edit=(), files=None, **environment):
        """The error; `files`: what the cache has already."""
        with tempfile.TemporaryDirectory() as folder:
            tools = pathlib.Path(folder) / "top/tests/tools/fetch"
            shutil.copytree(TOP / "tests/tools/fetch", tools)
            for old, new in edit:
                packages = tools / "packages.sh"
                packages.write_text(packages.read_text().replace(old, new))
            for name, text in (files or {}).items():
                file = pathlib.Path(folder) / "cache" / name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)
            done = subprocess.run(["bash", tools / "bring", what], capture_output=True, text=True,
                                  env=os.environ | {"MM_BATCH_CACHE": folder + "/cache"} | environment)
        self.assertNotEqual(done.returncode, 0)
        errors = [line for line in done.stderr.splitlines() if "error:" in line]
        self.assertEqual(len(errors), 1, done.stderr)
        return errors[0]

    def test_no_suite_has_the_source(self):
        error = self.bring("source", [("=linux-source-7.3", "=linux-source-0.0")])
        self.assertIn("has linux-source-0.0 any more: give KSRC=", error)

    def test_a_package_is_gone(self):
        self.assertIn("cannot resolve", self.bring("cargo", [("1.85.0+dfsg3", "0.0.0")]))

    def without_apt(self, what, **more):
        with tempfile.TemporaryDirectory() as folder:
            for tool in ("bash", "dirname", "cat", "mkdir", "df", "awk", "flock", "sha256sum", "cut", "sort", "grep",
                         "rm", "sed"):
                os.symlink(shutil.which(tool), f"{folder}/{tool}")
            return self.bring(what, PATH=folder, **more)

    def test_no_apt(self):
        for what in "cargo", "threads":
            self.assertIn("no apt-get here", self.without_apt(what))

    def test_a_set_with_a_layout_of_its_own_stays(self):
        """What is made anew with the other sets is not this one."""
        script = f". {TOP}/tests/tools/fetch/packages.sh; printf '%s' \"1 $threads_packages $threads_programs\""
        inputs = subprocess.run(["bash", "-c", script], capture_output=True, check=True).stdout
        with tempfile.TemporaryDirectory() as folder:
            tools, made = pathlib.Path(folder) / "tests/tools/fetch", pathlib.Path(folder) / "cache/tools/threads"
            shutil.copytree(TOP / "tests/tools/fetch", tools)
            text = (tools / "bring").read_text()
            (tools / "bring").write_text(re.sub(r"^layout=\d+$", "layout=99", text, flags=re.M))
            self.assertNotEqual((tools / "bring").read_text(), text)
            (made / "mm_batch").mkdir(parents=True)
            (made / "mm_batch/complete").write_text(hashlib.sha256(inputs).hexdigest()[:12])
            done = subprocess.run(["bash", tools / "bring", "threads"], capture_output=True, text=True,
                                  env=os.environ | {"MM_BATCH_CACHE": f"{folder}/cache"})
        self.assertEqual((done.stdout, done.stderr), (f"{made}\n", ""))

    def test_what_an_older_series_brought(self):
        """Another version's source, or upstream's release, is not taken for this one's."""
        for what, package in (("source", "linux-source-7.2_7.2.13-1_all.deb"), ("upstream", "linux_7.2.8.orig.tar.xz")):
            files = {f"downloads/{what}.sha256": f"{hashlib.sha256(b'').hexdigest()}  {package}\n",
                     f"downloads/debs/{package}": "", "src/linux-7.2.13/Makefile": ""}
            self.assertIn("no apt-get here", self.without_apt(what, files=files))

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


if __name__ == "__main__":
    unittest.main(verbosity=2)
