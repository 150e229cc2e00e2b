# SPDX-License-Identifier: GPL-2.0
"""What boots, and what a guest is given."""

import contextlib
import io
import os
import pathlib
import tempfile
import time
import unittest
from unittest import mock

from mmb.base.errors import FAIL, PANIC, PASS, TIMEOUT, Error
from mmb.guest import boot, debian, initrd


class Emulator(unittest.TestCase):
    """A host thread per CPU wants a QEMU that is new enough, and no icount."""

    def test_which(self):
        own, brought = "qemu-system-x86_64", "/cache/threads/mm_batch/bin/qemu-system-x86_64"
        threads, counted = " -accel tcg,thread=multi ", " -icount shift=0,sleep=off "
        for version, accel, wanted, program, option in (
                ("10.0.2", "", True, own, threads), ("7.2.22", "", True, brought, threads),
                ("9.9.9", "", True, brought, threads), (None, "", True, brought, threads),
                # Other boots keep theirs, and KVM needs none.
                ("7.2.22", "", False, own, counted), ("7.2.22", "kvm", True, own, " -accel kvm ")):
            build = mock.Mock(arch="x86_64", flavour="release", image="image")
            with self.subTest(version, accel=accel, threads=wanted), \
                    mock.patch.object(boot, "version", lambda _: version), \
                    mock.patch.dict(os.environ, {"ACCEL": accel}), \
                    mock.patch.object(boot.shutil, "which", lambda name: name if version or "/" in name else None), \
                    mock.patch.object(boot.os, "access", return_value=True), \
                    mock.patch.object(boot, "brought", lambda name: f"/cache/{name}"):
                command = boot.qemu_command(build, "", None, 4, 2048, True, threads=wanted)
            text = " ".join(command)
            self.assertEqual(command[0], program)
            self.assertIn(option, text)
            if option == threads:
                self.assertNotIn("icount", text)
                self.assertIn(" no_timer_check ", text)


class Programs(unittest.TestCase):
    """A program of the guest's packages, with its libraries."""

    def found(self, listed, code=0):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "usr/lib64").mkdir(parents=True)
            loader = root / "usr/lib64/ld-linux-x86-64.so.2"
            loader.write_text(f"#!/bin/sh\ncat <<'END'\n{listed.format(root=root)}\nEND\nexit {code}\n")
            loader.chmod(0o755)
            with mock.patch.object(initrd, "tree", lambda _: root):
                return [str(name) for name, _ in initrd.with_libraries("x86_64", "p")]

    def test_libraries(self):
        self.assertEqual(self.found("\tlinux-vdso.so.1 (0x1)\n"
                                    "\tlibc.so.6 => {root}/usr/lib/x86_64-linux-gnu/libc.so.6 (0x2)\n"
                                    "\t/lib64/ld-linux-x86-64.so.2 => {root}/lib64/ld-linux-x86-64.so.2 (0x3)"),
                         ["lib64/ld-linux-x86-64.so.2", "usr/bin/p", "usr/lib/x86_64-linux-gnu/libc.so.6"])
        for listed, code, lost in ("\tlibjudy.so.1 => not found", 0, "libjudy.so.1"), ("", 1, "a loader"):
            with self.assertRaisesRegex(Error, f"p lacks {lost}"):
                self.found(listed, code)


class UserMode(unittest.TestCase):
    def test_it_has_one_cpu(self):
        with mock.patch.object(boot, "uml_command", lambda *_: ["nproc"]):
            ended = boot.boot(mock.Mock(arch="um", out=self.id()))
        self.assertEqual(ended.lines, ["1"])


class Follow(unittest.TestCase):
    """A disk with a system of its own: how its boots end, with a shell in QEMU's place."""

    def follow(self, console):
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()) as said, \
                mock.patch.object(debian, "qemu", lambda _: ["sh", "-c", console]):
            try:
                return debian.follow(folder), said.getvalue()
            except Error as error:
                self.assertIn(f"the console is in {folder}/console", str(error))
                return error.code, str(error)

    def test_to_the_end_of_its_job(self):
        code, said = self.follow("echo 'mm_batch: booted'; echo noise; echo 'mm_batch: job done'; sleep 100")
        self.assertEqual(code, PASS)
        self.assertIn("mm_batch:   booted\n", said)
        self.assertNotIn("noise", said)

    def test_other_ends(self):
        for console, code, why in (("echo 'mm_batch: job failed: no initrd'; sleep 100", FAIL, "job failed: no initrd"),
                                   ("echo 'mm_batch: booted'", FAIL, "off before its job was done"),
                                   ("echo 'Kernel panic - not syncing: VFS'; echo more", PANIC, "Kernel panic"),
                                   ("exit 3", FAIL, "exited with 3")):
            found, said = self.follow(console)
            self.assertEqual(found, code, console)
            self.assertIn(why, said)

    def test_a_panic_is_not_waited_for(self):
        start = time.monotonic()
        with mock.patch.object(debian, "LAST_WORDS", 1):
            code, said = self.follow("echo 'Kernel panic - not syncing: VFS'; sleep 40")
        self.assertEqual(code, PANIC)
        self.assertLess(time.monotonic() - start, 30)
        self.assertIn("Kernel panic", said)

    def test_one_that_says_nothing_more(self):
        with mock.patch.object(debian, "SECONDS", 1):
            self.assertEqual(self.follow("echo 'mm_batch: booted'; sleep 100")[0], TIMEOUT)

    def test_it_may_reboot(self):
        with mock.patch.object(debian, "emulator", lambda arch, threads: "qemu"):
            command = debian.qemu(pathlib.Path("/folder"))
        self.assertNotIn("-no-reboot", command)
        self.assertIn("/folder/firmware.fd", command)
        self.assertEqual(command.count("-drive"), 1)

    def test_packages_are_another_disk(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        (folder / "packages.tar").touch()
        with mock.patch.object(debian, "emulator", lambda arch, threads: "qemu"):
            self.assertIn(f"file={folder}/packages.tar,if=virtio", debian.qemu(folder)[-1])
