# SPDX-License-Identifier: GPL-2.0
"""How planted bugs get switches, tested on small files: with one on, what is left is what its patch left."""

import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from mmb.suites import planted
from mmb.suites.planted import changed, pieces, switched

C = """\
#define AND_ONE(x)	\\
{			\\
	(x) + 1;	\\
}

struct pair {
	int a, b;
};

static const int table[] = {
	1, 2,
};

/* One line is no function of ours: inline int g(void) { return 1; } */
static int first(int a,
		 int b)
{
	int i;

	for (i = 0; i < a; i++)
		if (i == b)
			goto out;
	return 0;
out:
	return b;
}

void second(void)
{
}

int third(int a)
{
#ifdef CONFIG_X
	switch (a) {
	default:
		return 1;
	}
#endif
	return a;
}
"""

RUST = """\
// SPDX-License-Identifier: GPL-2.0

pub struct Range {
    end: u64,
}

const fn zero() -> u64 {
    0
}

pub trait Port {
    fn required(&self) -> [u8; 4];

    fn given(&self) -> u64 {
        1
    }
}

impl<T> Port for T
where
    T: Copy,
{
    fn required(&self) -> [u8; 4] {
        let all = [
            1, 2,
            3, 4,
        ];
        fn inner() -> u64 {
            3
        }
        match inner() {
            1 => all,
            _ => [0; 4],
        }
    }
}

pub(super) unsafe fn long<T>(
    first: T,
    second: u64,
) -> u64
where
    T: Copy,
{
    let _ = first;
    second
}

extern "C" fn called() {}
"""


def with_one_on(text, number):
    """A file with switches as it is with this bug on, or with none (0): what is left of it where they are decided."""
    left, matched, chosen = [], None, True
    for line in text.replace("extern int mm_batch_mutant;\n\n", "").splitlines(True):
        test = re.match(r"(?:\} else )?if \(?(?:mm_batch_mutant == |crate::glue::planted::is\()(\d+)\) \{$", line)
        if test:
            chosen = int(test[1]) == number
            matched = bool(matched or chosen)
        elif line == "} else {\n" and matched is not None:
            chosen = not matched
        elif line == "}\n" and matched is not None:
            matched, chosen = None, True
        elif chosen and not line.startswith("__label__ "):
            left.append(line)
    return "".join(left)


class Pieces(unittest.TestCase):
    def test_pieces(self):
        for name, text, first, last in (
                ("x.c", C, ["	int i;", "", "#ifdef CONFIG_X"], "	return a;\n"),
                ("x.rs", RUST, ["1", "let all = [", "let _ = first;"], "    let _ = first;\n    second\n")):
            between, bodies = pieces(name, text)
            self.assertEqual("".join(b + c for b, c in zip(between, bodies + [""])), text)
            self.assertEqual([body.split("\n")[0].strip() for body in bodies], [line.strip() for line in first])
            self.assertTrue(bodies[-1].endswith(last))
            self.assertTrue(between[-1].startswith("}"))


class Changed(unittest.TestCase):
    def differs(self, name, text, old, new):
        self.assertEqual(text.count(old), 1)
        return changed(name, text, text.replace(old, new))

    def test_bodies(self):
        empty = "void second(void)\n{\n"
        for name, text, old, new, body in (("x.c", C, "i = 0", "i = 1", 0), ("x.c", C, empty, f"{empty}\treturn;\n", 1),
                                           ("x.rs", RUST, "            1 => all", "            2 => all", 1),
                                           ("x.rs", RUST, "            3\n", "            4\n", 1)):
            self.assertEqual(list(self.differs(name, text, old, new)), [body])
        self.assertEqual(changed("x.c", C, C), {})

    def test_what_cannot_be_switched(self):
        for old, new in (("int a, b;", "long a, b;"), ("1, 2,", "2, 2,"), ("(x) + 1", "(x) + 2"),
                         ("int third(int a)", "int third(long a)"), ("	return a;\n}\n", "	return a;\n}\n\nint x;\n"),
                         ("	return a;\n}\n", "	return a;\n}\n\nint x(int y)\n{\n	return y;\n}\n")):
            self.assertIsNone(self.differs("x.c", C, old, new), new)
        for old, new in (("end: u64", "end: u32"), ("    0\n", "    1\n"), ("second: u64", "second: u32"),
                         ("called() {}", "called() -> u64 { 1 }"), ("pub(super) unsafe", "unsafe")):
            self.assertIsNone(self.differs("x.rs", RUST, old, new), new)


class Switched(unittest.TestCase):
    TEXTS = {
        "x.c": (C, {3: C.replace("i = 0", "i = 1"),
                    5: C.replace("goto out;", "return 7;").replace("return a;", "return 2;"),
                    12: C.replace("int i;", "int i = 2;")}),
        "x.rs": (RUST, {3: RUST.replace("        1\n", "        2\n"),
                        5: RUST.replace("        1\n", "        3\n").replace("    second\n}", "    1\n}"),
                        12: RUST.replace("            1, 2,", "            2, 2,")}),
    }

    def test_each_is_what_its_patch_left(self):
        for name, (plain, mutated) in self.TEXTS.items():
            text = switched(name, plain, {number: changed(name, plain, other) for number, other in mutated.items()})
            for number, other in mutated.items():
                self.assertNotEqual(other, plain)
                self.assertEqual(with_one_on(text, number), other, f"{name} {number}")
            for number in 0, 1, 4, 35:
                self.assertEqual(with_one_on(text, number), plain, f"{name} {number}")

    def test_c_compiles_and_does_as_it_should(self):
        """A label may be in each body."""
        plain, mutated = self.TEXTS["x.c"]
        text = switched("x.c", plain, {number: changed("x.c", plain, other) for number, other in mutated.items()})
        with tempfile.TemporaryDirectory() as folder:
            source, program = pathlib.Path(folder) / "x.c", pathlib.Path(folder) / "x"
            source.write_text(text + """
int printf(const char *format, ...);
int mm_batch_mutant;

int main(void)
{
	for (; mm_batch_mutant < 13; mm_batch_mutant++)
		printf("%d%d ", first(1, 0), third(1));
	return table[0] - 1;
}
""")
            subprocess.run([shutil.which("clang") or "cc", "-Wall", "-Werror", "-Wno-unused-label", "-o", program,
                            source], check=True)
            said = subprocess.run([program], capture_output=True, text=True, check=True).stdout.split()
        # first(1, 0) leaves its loop by the label, and by none where it begins with 1.
        self.assertEqual(said, ["01"] * 5 + ["72"] + ["01"] * 7)


class Written(unittest.TestCase):
    def test_a_tree(self):
        """The kernel's files by one patch behind all others, ours where they are, mm/ with headers of its own where all
        include them; Rust knows the switch.
        """
        with tempfile.TemporaryDirectory() as folder:
            top = pathlib.Path(folder)
            other = {"x.c": C.replace("i = 0", "i = 1"), "x.rs": RUST.replace("        1\n", "        2\n")}
            header = "static inline int f(int a)\n{\n\treturn a;\n}\n"
            plain = {"mm/x.c": C, "mm/mm_batch/glue/x.rs": RUST, "mm/tests/x.c": C, "mm/y.h": "int x;\n",
                     planted.EVERYWHERE: header, "mm/Makefile": "obj-y += x.o\n"}
            for name, text in (("rust/mm_batch/Makefile", "obj-y += x.o\n"), ("rust/mm_batch/glue.rs", "mod x;\n"),
                               ("rust/mm_batch/glue/x.rs", RUST), ("tests/kernel/kunit/x.c", C), *plain.items()):
                (top / name).parent.mkdir(parents=True, exist_ok=True)
                (top / name).write_text(text)
            found = {7: {"mm/x.c": changed("x.c", C, other["x.c"])},
                     9: {"mm/mm_batch/glue/x.rs": changed("x.rs", RUST, other["x.rs"]),
                         "mm/tests/x.c": changed("x.c", C, C.replace("i = 0", "i = 9")),
                         planted.EVERYWHERE: changed("x.h", header, header.replace("return a", "return 0"))}}
            planted.write(plain, top, found, {7: "seven", 8: "eight", 9: "nine"}, {"mm/y.h": "int y;\n"})

            def read(name):
                return (top / name).read_text()

            self.assertEqual(with_one_on(read("rust/mm_batch/glue/x.rs"), 9), other["x.rs"])
            self.assertIn("i = 9", read("tests/kernel/kunit/x.c"))
            for command in ["init", "-q"], ["apply", "--whitespace=nowarn", "patches/planted/0001-planted.patch"]:
                subprocess.run(["git", *command], cwd=top, check=True)
            self.assertEqual(with_one_on(read("mm/x.c"), 7), other["x.c"])
            self.assertEqual(read("mm/y.h"), "int y;\n")
            self.assertEqual(read(planted.EVERYWHERE), header)
            self.assertIn("return 0;", read(planted.IN_MM))
            self.assertIn("-I$(srctree)/mm/planted\n", read("mm/Makefile"))
            self.assertIn('[7] = "seven",\n\t[9] = "nine",\n};', read("rust/mm_batch/planted.c"))
            self.assertIn("obj-y += planted.o\n", read("rust/mm_batch/Makefile"))
            self.assertIn("pub(crate) mod planted;\n", read("rust/mm_batch/glue.rs"))
