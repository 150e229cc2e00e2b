# SPDX-License-Identifier: GPL-2.0
"""What a disassembly says of frames and chains of calls."""

import pathlib
import subprocess
import unittest
from unittest import mock

from mmb.base.errors import Error
from mmb.measure import stack

CODE = """
vmlinux:	file format elf64-x86-64

ffffffff811a3330 <shrink_folio_list>:
ffffffff811a3330:      	pushq	%rbp
ffffffff811a3333:      	pushq	%r15
ffffffff811a333a:      	subq	$0x248, %rsp    # imm = 0x248
ffffffff811a3340:      	callq	0xffffffff811abf30 <shrink_batch>
ffffffff811a3345:      	je	0xffffffff811a3390 <shrink_folio_list+0x60>
ffffffff811a3347:      	callq	0xffffffff811abf90 <shrink_activate_locked>
ffffffff811a3349:      	callq	0xffffffff811abf99 <__folio_put>
ffffffff811a3350:      	popq	%r15
ffffffff811a3352:      	pushq	%r15
ffffffff811a3354:      	addq	$0x248, %rsp    # imm = 0x248

ffffffff811abf30 <shrink_batch>:
ffffffff811abf30:      	addq	$-0x80, %rsp
ffffffff811abf40:      	callq	0xffffffff811a3330 <shrink_folio_list>
ffffffff811abf4a:      	callq	0xffffffff812350c0 <swap_writeout>
ffffffff811abf50:      	jmp	0xffffffff81204be0 <rmap_walk_anon>

ffffffff811abf90 <shrink_activate_locked>:
ffffffff811abf90:      	subq	$0x1000, %rsp

ffffffff812350c0 <swap_writeout>:
ffffffff812350c0:      	pushq	%rbx

ffffffff81204be0 <rmap_walk_anon>:
ffffffff81204be0:      	pushq	%rbx
ffffffff81204be2:      	callq	*0x8(%rax)

ffffffff81204c00 <try_to_unmap_folios_one>:
ffffffff81204c00:      	subq	$0x20, %rsp
ffffffff81204c0a:      	callq	0xffffffff81204d00 <ttu_folios_clear>

ffffffff81204d00 <ttu_folios_clear>:
ffffffff81204d00:      	subq	$0x800, %rsp
"""
BUILD = mock.Mock(arch="x86_64", out=pathlib.Path("/nowhere"))
NAMES = ["shrink_folio_list", "shrink_batch.isra.0", "_RINvNtCs3k_8mm_batch11dirty_flush5xEB4_",
         "mm_batch_shrink_batch", "__rmap_walk_file", "try_to_unmap_folios_one", "swap_writeout"]


class Stack(unittest.TestCase):
    def of(self, code, build=BUILD):
        done = mock.Mock(side_effect=[mock.Mock(stdout="\n".join([*NAMES, "pageout", "swap_writeout_x"])),
                                      mock.Mock(stdout=code)])
        with mock.patch.object(subprocess, "run", done):
            found = stack.stack(build)
        asked = done.call_args_list[1].args[0][3].partition("=")[2] if build.arch == "x86_64" else ""
        return found, asked.split(",")

    def test_the_deepest_chain(self):
        """What calls nothing on the way, and what is called then, is not in it; what is pushed twice is so once."""
        found, asked = self.of(CODE)
        self.assertEqual(found, {"shrink_folio_list": 600, "to_write": 600 + 128, "to_clear": 600 + 128 + 8 + 32})
        self.assertEqual(sorted(asked), sorted(NAMES))

    def test_a_chain_that_is_gone_is_an_error(self):
        with self.assertRaisesRegex(Error, r"no chain of calls from shrink_folio_list\(\) to ttu_folios_clear\(\)"):
            self.of(CODE.replace("<try_to_unmap_folios_one>:", "<another>:"))
        with self.assertRaisesRegex(Error, "the kernel has no shrink_folio_list"):
            self.of(CODE.replace("<shrink_folio_list>:", "<another>:"))

    def test_limit(self):
        found = {"shrink_folio_list": 600, "to_write": 901, "to_clear": 2000}
        self.assertEqual(list(stack.problems(found, "release")),
                         ["stack: 901 bytes from shrink_folio_list() to swap_writeout() are above 900"])
        self.assertEqual(list(stack.problems(found, "distro")), [])
        self.assertEqual(list(stack.problems(found | {"to_write": 900}, "release")), [])

    def test_of_x86_64_alone(self):
        self.assertIsNone(self.of(CODE, mock.Mock(arch="arm64"))[0])
        self.assertEqual(list(stack.problems(None, "release")), [])


if __name__ == "__main__":
    unittest.main()
