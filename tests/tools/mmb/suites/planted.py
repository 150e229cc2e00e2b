# SPDX-License-Identifier: GPL-2.0
"""One kernel with many planted bugs in it, of which its command line switches one on: mm_batch_mutant=<number>.

A bug can be switched if all that it changes in the kernel's files is within functions: each of these gets its body
once as it is and once for each bug, in an if. So what is compiled for a bug is the body that its patch leaves, and with
none on, the body that is there without. Functions are found as the kernel's style and rustfmt write them, by lines and
indentation. What changes anything else (a type, a macro, a prototype, a const fn) cannot be switched.
"""

import difflib
import re
import subprocess

from ..base.cache import TOP
from ..base.errors import Error
from ..kernel.tree import OURS, our_files, patched_files, series, touched_by

# Where a function's body is.
BODY = {
    True: re.compile(r'^(?P<in> *)(?:pub(?:\(.*?\))? )?(?:unsafe )?(?:extern "C" )?fn \w+(?:.*[^;{}\n]\n)*.*\{\n'
                     r"(?P<body>(?:.*\n)*?)(?=(?P=in)\}$)", re.M),
    False: re.compile(r"(?<=\)\n)\{\n(?P<body>(?:.*\n)*?)(?=\}$)", re.M),
}
LABEL = re.compile(r"^ ?(\w+):", re.M)

SWITCH = "mm_batch_mutant"

# A header that nearly all of the kernel includes, for functions that mm/ alone calls. With bugs in it all would be
# compiled anew; so mm/ has a copy with them, which the compiler finds first.
EVERYWHERE, IN_MM = "include/linux/pgtable.h", "mm/planted/linux/pgtable.h"
FIRST = "NOSTDINC_FLAGS += -I$(srctree)/mm/planted\n"

# Files of ours that are only in the copy in which bugs are planted.
IN_C = """// SPDX-License-Identifier: GPL-2.0
/* Which of the planted bugs is on; 0 is none. */

#include <linux/export.h>
#include <linux/init.h>
#include <linux/kernel.h>
#include <linux/printk.h>

extern int {switch};
int {switch};
/* Some are in headers that modules include. */
EXPORT_SYMBOL_GPL({switch});

static const char *const names[] __initconst = {{
{names}}};

static int __init set(char *number)
{{
	return kstrtoint(number ?: "", 10, &{switch});
}}
early_param("{switch}", set);

/* Not before there is a console, on which it can be seen. Of one that is not in this kernel nothing is said. */
static int __init say(void)
{{
	if ({switch} > 0 && {switch} < ARRAY_SIZE(names) && names[{switch}])
		pr_notice("mm_batch: mutant %d planted: %s\\n", {switch}, names[{switch}]);
	return 0;
}}
core_initcall(say);
"""
IN_RUST = """// SPDX-License-Identifier: GPL-2.0

//! Which of the planted bugs is on.

extern "C" {{
    static {switch}: kernel::ffi::c_int;
}}

/// Whether it is this one.
#[inline(always)]
pub(crate) fn is(number: kernel::ffi::c_int) -> bool {{
    // SAFETY: It is set while the kernel has one CPU, which reads the command line.
    unsafe {{ {switch} == number }}
}}
"""


def said(number, name):
    """The line by which a kernel says which bug is on."""
    return f"mm_batch: mutant {number} planted: {name}"


def is_rust(name):
    return name.endswith(".rs")


def pieces(name, text):
    """A file in two lists: what is between the bodies of functions, one more than these, and the bodies."""
    between, bodies, end = [], [], 0
    for found in BODY[is_rust(name)].finditer(text):
        between.append(text[end:found.start("body")])
        bodies.append(found["body"])
        end = found.end("body")
    return between + [text[end:]], bodies


def changed(name, plain, mutated):
    """The bodies that differ, by their number in the file; None if anything else does."""
    (between, bodies), (as_before, others) = pieces(name, plain), pieces(name, mutated)
    if between != as_before:
        return None
    return {n: other for n, (body, other) in enumerate(zip(bodies, others)) if body != other}


def switch(name, body, mutated):
    """A body that is any of several: mutated is {number: body}."""
    def block(text):
        labels = [] if is_rust(name) else LABEL.findall(text)
        return "{\n" + (f"__label__ {', '.join(labels)};\n" if labels else "") + text + "}"

    test, head = ("crate::glue::planted::is({})", "") if is_rust(name) else (
        f"({SWITCH} == {{}})", f"extern int {SWITCH};\n\n")
    chain = [f"if {test.format(number)} {block(text)}" for number, text in sorted(mutated.items())]
    return head + " else ".join([*chain, block(body)]) + "\n"


def switched(name, plain, mutants):
    """A file with bugs that can be switched: mutants is {number: what changed() found}."""
    between, bodies = pieces(name, plain)
    for n, body in enumerate(bodies):
        mutated = {number: found[n] for number, found in mutants.items() if n in found}
        if mutated:
            bodies[n] = switch(name, body, mutated)
    return "".join(part for pair in zip(between, bodies + [""]) for part in pair)


class Sources:
    """The kernel's files of a tree like this one, as bugs are planted in it."""

    def __init__(self, base, top):
        self.base, self.top = base, top
        base.work.mkdir(parents=True, exist_ok=True)
        self.patches = [top / patch.relative_to(TOP) for patch in series()]
        self.plain = self.files(touched_by(self.patches))

    def files(self, names):
        """Files that patches touch, and all of ours, as they are now."""
        patched = patched_files(self.base, self.patches, names)
        return {name: content.decode() for name, content in (patched | our_files(self.top)).items()}

    def touched(self, patch):
        """What those of our patches that a bug's patch changes touch now."""
        return touched_by([self.top / name for name in re.findall(r"^--- a/(patches/\S+)", patch.read_text(), re.M)])

    def apply(self, patch, *options):
        applied = subprocess.run(["git", "apply", "--whitespace=nowarn", *options, patch], cwd=self.top,
                                 capture_output=True)
        if applied.returncode:
            raise Error(f"{patch.stem} does not apply", "write it anew for the lines as they are now")

    def differing(self, patch):
        """What planting a bug makes of the kernel's files."""
        names = self.touched(patch)
        self.apply(patch)
        try:
            found = self.files(names | self.touched(patch))
        finally:
            self.apply(patch, "-R")
        differ = {name: text for name, text in found.items() if self.plain.get(name) != text}
        if not differ:
            raise Error(f"{patch.stem} leaves the kernel as it is", "change what is built")
        return differ


def write(plain, top, mutants, names, alone):
    """Plants bugs in a tree: mutants is {number: {file: what changed() found}}, of which each can be switched, names is
    what they are called; alone is {file: text}, of one more that is there from the start.
    """
    texts = {file: switched(file, plain[file], {n: files[file] for n, files in mutants.items() if file in files})
             for file in set().union(*mutants.values())}
    if EVERYWHERE in texts:
        texts[IN_MM] = texts.pop(EVERYWHERE)
        texts["mm/Makefile"] = plain["mm/Makefile"] + FIRST
    texts |= alone
    ours = our_files(top)
    patch = []
    for file, text in sorted(texts.items()):
        if file in ours:
            source, target = next(pair for pair in OURS if file.startswith(f"{pair[1]}/"))
            (top / source / file.removeprefix(f"{target}/")).write_text(text)
        else:
            before, name = plain.get(file, "").splitlines(True), f"a/{file}" if file in plain else "/dev/null"
            patch += difflib.unified_diff(before, text.splitlines(True), name, f"b/{file}")
    if patch:
        (top / "patches/planted").mkdir(parents=True)
        (top / "patches/planted/0001-planted.patch").write_text("".join(patch))
    rust = top / "rust/mm_batch"
    (rust / "planted.c").write_text(IN_C.format(switch=SWITCH, names="".join(
        f'\t[{number}] = "{names[number]}",\n' for number in sorted(mutants))))
    (rust / "glue/planted.rs").write_text(IN_RUST.format(switch=SWITCH))
    for name, line in ("Makefile", "obj-y += planted.o\n"), ("glue.rs", "pub(crate) mod planted;\n"):
        (rust / name).write_text((rust / name).read_text() + line)
