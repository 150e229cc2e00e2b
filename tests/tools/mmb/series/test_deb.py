# SPDX-License-Identifier: GPL-2.0
"""make deb without a build: whose configuration it takes, what it refuses, and what is in the package that measures."""

import os
import pathlib
import subprocess
import tempfile
import unittest
from unittest import mock

from mmb.base.cache import TOP
from mmb.base.errors import Error
from mmb.series import deb

X86 = "CONFIG_X86_64=y\nCONFIG_MODVERSIONS=y\n"


class Folder(unittest.TestCase):
    def setUp(self):
        self.top = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.enterContext(mock.patch.dict(os.environ))
        for name in ("KCONFIG", "LOCALMODCONFIG", "LSMOD", "EXTRA_CONFIG", "CONFIG", "DEBUG", "METER"):
            os.environ.pop(name, None)

    def file(self, name, text):
        path = self.top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path


class Configuration(Folder):
    def asked(self, text, arch="x86_64"):
        os.environ["KCONFIG"] = str(self.file("config", text))
        return deb.asked(arch)

    def test_what_is_given(self):
        self.assertEqual(self.asked(X86), self.top / "config")

    def test_what_is_none(self):
        for text in ("", "hello\n", "CONFIG_ARM64=y\n", "# CONFIG_X86_64 is not set\n"):
            with self.assertRaisesRegex(Error, "config is no configuration of a kernel for x86_64: give one as in"):
                self.asked(text)
        (self.top / "config").write_bytes(b"\x1f\x8b\xff")
        with self.assertRaisesRegex(Error, "is no configuration"):
            deb.asked("x86_64")
        os.environ["KCONFIG"] = str(self.top / "gone")
        with self.assertRaisesRegex(Error, "gone is no configuration"):
            deb.asked("x86_64")

    def test_no_modules_to_go_by(self):
        os.environ["LOCALMODCONFIG"] = "1"
        with mock.patch.object(deb, "LOADED", self.top / "gone"), self.assertRaisesRegex(Error, "has no modules"):
            self.asked(X86)
        with mock.patch.object(deb, "LOADED", self.file("modules", "ext4 1 1 - Live 0x0\n")):
            self.assertEqual(self.asked(X86), self.top / "config")

    def test_modules_of_another_machine(self):
        text = "Module   Size  Used by\nvirtio  20480  1 virtio_pci\next4  1  0\n"
        os.environ["LSMOD"] = str(self.file("lsmod", text))
        self.asked(X86)
        self.assertEqual(deb.loaded(), ["ext4", "virtio"])
        for text in ("", "Module   Size  Used by\n", "hello\n"):
            os.environ["LSMOD"] = str(self.file("lsmod", text))
            with self.assertRaisesRegex(Error, "/lsmod lists no modules: give LSMOD= what lsmod prints on the machine"):
                self.asked(X86)

    def test_what_is_given_beside(self):
        with self.assertRaisesRegex(Error, "make deb is of x86_64"):
            self.asked(X86, "arm64")
        for name, value in ("CONFIG", "distro"), ("DEBUG", "1"):
            with mock.patch.dict(os.environ, {name: value}), self.assertRaisesRegex(Error, "leave CONFIG= and DEBUG="):
                self.asked(X86)

    def test_the_machines_own_and_then_debians(self):
        with mock.patch.object(deb.platform, "release", lambda: "no-such-release"), \
                mock.patch.object(deb, "brought", lambda what: f"/brought/{what}"):
            self.assertEqual(deb.readers_config(), pathlib.Path("/brought/config"))
        with mock.patch.object(deb.pathlib.Path, "is_file", lambda _: True):
            self.assertRegex(str(deb.readers_config()), "^/boot/config-")

    def test_pahole(self):
        for version, is_enough in (("v1.24", True), ("v1.23", False), ("v1.31", True), ("v2.0", True), ("", False)):
            with mock.patch.object(deb.shutil, "which", lambda _: "pahole"), \
                    mock.patch.object(deb.subprocess, "run", lambda *_, **__: mock.Mock(stdout=version)):
                self.assertEqual(deb.has_pahole(), is_enough, version)
        with mock.patch.object(deb.shutil, "which", lambda _: None):
            self.assertFalse(deb.has_pahole())

    def test_why_there_is_no_mm_batch(self):
        for config, why in (("CONFIG_RANDSTRUCT_FULL=y\n", "Rust does not go with RANDSTRUCT_FULL"),
                            ("CONFIG_X86_64=y\n", "Kconfig finds no Rust"),
                            ("CONFIG_RUST=y\n", "MM_BATCH is not offered")):
            self.assertIn(why, deb.refusal(config)[0])


class Configured(Folder):
    """What Kconfig is given; it is not run."""

    def package(self, made, pahole=True):
        build = deb.Package(mock.Mock(version="7.3.4", work=self.top), self.top / "linux-deb", self.file("config", X86))
        build.log = self.top / "log"

        def ran(command, *_, **more):
            self.ran.append(command[-1])
            self.lsmod = more.get("env", {}).get("LSMOD")
            if command[-1] == "olddefconfig":
                self.given = (build.out / ".config").read_text()
                (build.out / ".config").write_text(made)

        self.ran = []
        with mock.patch("mmb.kernel.kbuild.run", ran), mock.patch.object(deb, "run", ran), \
                mock.patch.object(deb, "has_pahole", lambda: pahole):
            build.configure()
        return build

    MADE = "CONFIG_MM_BATCH=y\nCONFIG_RUST_INLINE_HELPERS=y\n"

    def test_the_readers_first_and_ours_over_it(self):
        self.package(self.MADE)
        self.assertTrue(self.given.startswith(X86))
        self.assertGreater(self.given.index("# CONFIG_MODVERSIONS is not set"), len(X86) - 1)
        self.assertNotIn("DEBUG_INFO_NONE", self.given)
        self.assertEqual(self.ran, ["olddefconfig"])

    def test_without_pahole(self):
        self.package(self.MADE, pahole=False)
        self.assertIn("CONFIG_DEBUG_INFO_NONE=y\n", self.given)

    def test_trimmed(self):
        os.environ["LSMOD"] = str(self.file("lsmod", "virtio 20480 1 virtio_pci\n"))
        self.package(self.MADE)
        self.assertEqual((self.ran, self.lsmod), (["olddefconfig", "localmodconfig"], str(self.top / "lsmod")))
        self.assertIn("# for: virtio\n", self.given)

    def test_one_without_mm_batch(self):
        with self.assertRaisesRegex(Error, "config gives no kernel with mm_batch: Rust does not go with RANDSTRUCT"):
            self.package("CONFIG_RANDSTRUCT_FULL=y\n")

    def test_its_own_name(self):
        build = self.package(self.MADE)
        self.assertIn("LOCALVERSION=-mmbatch", build.command("bzImage"))
        self.assertEqual(build.out.name, "x86_64-deb")

    def test_more_symbols(self):
        os.environ["EXTRA_CONFIG"] = "CONFIG_A=y,CONFIG_B=n"
        self.package(self.MADE)
        self.assertTrue(self.given.endswith("CONFIG_A=y\nCONFIG_B=n\n"))


class Kernel(Folder):
    """The package of the kernel, of what builddeb leaves: here some files in its place."""

    def packed(self, *files):
        build = mock.Mock(out=self.top, log=self.top / "log", release="7.3.4-mmbatch")
        build.base.version = "7.3.4"
        build.command = lambda *targets: ["make", *targets]

        def run(command, log, what, **_):
            if command[0] == "make":
                self.asked = command[1:]
                for name in files:
                    self.file(f"debian/linux-image-7.3.4-mmbatch/{name}", "#!/bin/sh\n").chmod(0o700)
            else:
                subprocess.run([str(word) for word in command], check=True, capture_output=True)

        with mock.patch.object(deb, "run", run), mock.patch.object(deb, "OUT", self.top):
            return deb.kernel_package(build, {"version": "7.3.4-1", "arch": "amd64"})

    FILES = ("boot/vmlinuz-7.3.4-mmbatch", "lib/modules/7.3.4-mmbatch/modules.dep", "DEBIAN/postinst")

    def test_what_is_in_it(self):
        file = self.packed(*self.FILES)
        self.assertEqual(file.name, "linux-image-7.3.4-mmbatch_7.3.4-1_amd64.deb")
        self.assertEqual(self.asked[0], "run-command")
        self.assertEqual(self.asked[1].removeprefix("KBUILD_RUN_COMMAND="),
                         "+$(srctree)/scripts/package/builddeb linux-image-7.3.4-mmbatch")
        listed = subprocess.run(["dpkg-deb", "--contents", file], capture_output=True, text=True, check=True).stdout
        self.assertRegex(listed, r"-rw-r--r-- root/root .* \./etc/default/grub\.d/mm-batch\.cfg\n")
        about = subprocess.run(["dpkg-deb", "--info", file], capture_output=True, text=True, check=True).stdout
        self.assertIn(" Package: linux-image-7.3.4-mmbatch\n", about)
        self.assertRegex(about, r"conffiles")
        self.assertRegex(about, r"postinst +#!/bin/sh")

    def test_one_whose_modules_nobody_finds(self):
        with self.assertRaisesRegex(Error, "no depmod has run"):
            self.packed(*self.FILES[:1])


class Measuring(Folder):
    """The package with mm-batch-measure, as it is packed and as it runs, from its own files alone."""

    def packed(self):
        program = self.file("remote", "#!/bin/sh\n")
        program.chmod(0o700)
        folder = deb.filled(self.top / "folder", [program], self.file("mm_batch_bench.ko", "module"), "7.3.4-mmbatch")
        with mock.patch.object(deb, "OUT", self.top):
            return folder, deb.packed(folder, self.top / "log", deb.MEASURE_CONTROL, package=deb.MEASURE,
                                      version="7.3.4-1", arch="amd64")

    def test_what_is_in_it(self):
        _, file = self.packed()
        self.assertEqual(file.name, "mm-batch-measure_7.3.4-1_amd64.deb")
        listed = subprocess.run(["dpkg-deb", "--contents", file], capture_output=True, text=True, check=True).stdout
        found = {line.split()[-1]: line.split()[:2] for line in listed.splitlines()}
        library = "./usr/lib/mm-batch-measure"
        self.assertEqual(found["./usr/sbin/mm-batch-measure"], ["-rwxr-xr-x", "root/root"])
        self.assertEqual(found[f"{library}/remote"], ["-rwxr-xr-x", "root/root"])
        self.assertEqual(found[f"{library}/mmb/paths/anon_unmap.py"], ["-rw-r--r--", "root/root"])
        self.assertIn(f"{library}/7.3.4-mmbatch/mm_batch_bench.ko", found)
        self.assertFalse([name for name in found if "test_" in name or "/guest" in name or "/kernel" in name])
        about = subprocess.run(["dpkg-deb", "--field", file], capture_output=True, text=True, check=True).stdout
        self.assertIn("Depends: python3 (>= 3.9)", about)

    def test_it_runs_by_its_own_files(self):
        folder, _ = self.packed()
        launcher = folder / "usr/sbin/mm-batch-measure"
        launcher.write_text(launcher.read_text().replace("/usr/lib", f"{folder}/usr/lib").replace(
            "/usr/bin/python3", "python3"))
        done = subprocess.run([launcher, "--list"], capture_output=True, text=True, cwd="/",
                              env={"PATH": os.environ["PATH"]})
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("\nzero-64k ", done.stdout)

    def test_a_module_that_cannot_be_built_is_left_out(self):
        with mock.patch.object(deb.payload, "module", side_effect=Error("building it failed", "see")), \
                mock.patch.object(deb, "say") as said:
            self.assertIsNone(deb.bench_module(mock.Mock()))
        self.assertIn("left out: the rows of contig_free", said.call_args[0][0])


class Default(Folder):
    """What GRUB boots by default, once the package is there."""

    def default(self, kernels, **given):
        for name in kernels:
            self.file(f"boot/vmlinuz-{name}", "")
        text = (TOP / "tests/kernel/machine/mm-batch.cfg").read_text().replace("/boot/", f"{self.top}/boot/")
        self.file("cfg", text)
        # As grub-mkconfig reads it; its program is not here.
        script = f'set -e; grub-editenv() {{ echo "$EDITENV"; }}; . {self.top}/cfg; echo "$GRUB_DEFAULT"'
        env = {"PATH": os.environ["PATH"], "GRUB_DEVICE_UUID": "U", "LC_ALL": "C.UTF-8", **given}
        done = subprocess.run(["bash", "-c", script], env=env, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    STOCK = ["6.1.0-9-amd64", "6.1.0-48-amd64", "7.3.4-mmbatch"]

    def test_the_newest_other_one(self):
        wanted = "gnulinux-advanced-U>gnulinux-6.1.0-48-amd64-advanced-U"
        self.assertEqual(self.default(self.STOCK), wanted)
        self.assertEqual(self.default(self.STOCK, GRUB_DEFAULT="0"), wanted)
        self.assertEqual(self.default(self.STOCK, GRUB_DEFAULT="saved", EDITENV="x=1"), wanted)
        self.assertEqual(self.default(self.STOCK, GRUB_DISABLE_SUBMENU="y"), "gnulinux-6.1.0-48-amd64-advanced-U")

    def test_what_was_chosen_stays(self):
        self.assertEqual(self.default(self.STOCK, GRUB_DEFAULT="2"), "2")
        self.assertEqual(self.default(self.STOCK, GRUB_DEFAULT="saved", EDITENV="saved_entry=y"), "saved")

    def test_there_is_no_other(self):
        self.assertEqual(self.default(["7.3.4-mmbatch"], GRUB_DEFAULT="0"), "0")


if __name__ == "__main__":
    unittest.main()
