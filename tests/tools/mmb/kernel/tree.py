# SPDX-License-Identifier: GPL-2.0
"""The kernel trees that are built: copies of the base with the series applied.

The base (the cache's, KSRC= or KDIR=) is only read. Files are replaced only where their content
changes, so that an edit of one source rebuilds one object. What is for evaluation only, the meter and what C is
offered, has trees of its own, so that no build rewrites the sources of another.
"""

import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from ..base.cache import CACHE, TOP, Lock, brought, need_space, write_atomically
from ..base.errors import Error, say
from ..base.process import run
from ..paths import PATHS
from . import hooks

SUPPORTED = "7.3."

# The series' folders in patches/: fixes and small gains, which need nothing else, and the paths.
SERIES = ["fixes", "reclaim_c", *PATHS]
# What is offered to C: CONFIG=better_c. The first needs none of the series; the others are what tests have to know of
# it, the twins of paths, and their modes.
BETTER_C = "better_c"
TWINS = ["better_c/mode", "anon_unmap_c", "anon_unmap_c/mode", "dirty_flush_c", "contig_free_c", "folio_batch_c"]

# Files of ours that become files of the kernel.
OURS = [
    (pathlib.PurePath("rust/mm_batch"), pathlib.PurePath("mm/mm_batch")),
    (pathlib.PurePath("tests/kernel/kunit"), pathlib.PurePath("mm/tests")),
]


def version_of(tree):
    """The version of a kernel tree, from its Makefile."""
    makefile = tree / "Makefile"
    text = makefile.read_text() if makefile.is_file() and (tree / "mm/page_alloc.c").exists() else ""
    found = re.search(r"^VERSION = (.*)\nPATCHLEVEL = (.*)\nSUBLEVEL = (.*)$", text, re.M)
    if not found:
        raise Error(f"{tree} is no kernel source tree", "give the top folder of a 7.3.y source")
    version = ".".join(found.groups())
    if not version.startswith(SUPPORTED):
        raise Error(f"{tree} is Linux {version}, which the series does not support", "give a 7.3.y source")
    return version


class Base:
    """The unpatched source, and whose it is."""

    def __init__(self):
        kdir, ksrc = os.environ.get("KDIR"), os.environ.get("KSRC")
        self.users = kdir or ksrc
        self.tree = pathlib.Path(self.users or brought("source")).expanduser().resolve()
        if not self.tree.is_dir():
            raise Error(f"{self.users} is no folder", "give KDIR= or KSRC= a kernel tree")
        self.version = version_of(self.tree)
        self.config = self.tree / ".config" if kdir else None
        if kdir and not self.config.exists():
            raise Error(f"{kdir} is not configured", "run its make menuconfig, or give it as KSRC=")
        name = hashlib.sha256(str(self.tree).encode()).hexdigest()[:8] if self.users else self.version
        self.work = CACHE / "build" / name


# What a build leaves in a user's tree. (Not *.bc: kernel/time/timeconst.bc is a source.)
BUILT = [".git", *(f"*.{kind}" for kind in "o a ko mod order cmd rmeta so".split()), "vmlinux", "vmlinux.unstripped",
         ".config*"]


def copy_base(base, tree, patched):
    """Copies the base; a user's tree again where it changed, but for the files that are patched anyway."""
    if tree.exists() and not base.users:
        return
    need_space(3000, "a copy of the kernel source")
    part = tree if tree.exists() else tree.with_name(f"{tree.name}.part")
    if part != tree:
        say(f"copying {base.tree} (1.8 GB)")
        shutil.rmtree(part, ignore_errors=True)
    # Nobody writes to a file of the cache's trees: it is replaced.
    how = [f"--exclude={name}" for name in (*BUILT, *(f"/{name}" for name in patched))] if base.users else [
        f"--link-dest={base.tree}"]
    run(["rsync", "-rlpt", *how, f"{base.tree}/", f"{part}/"], base.work / "copy.log", f"copying {base.tree}")
    part.rename(tree)


def content(path):
    """What a file has; None where there is none."""
    return path.read_bytes() if path.is_file() else None


def replace(target, wanted, mode=None):
    """Writes a file only if its content changes; says whether it does."""
    if content(target) == wanted:
        return False
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(target.name + ".part")
    part.write_bytes(wanted)
    if mode:
        part.chmod(mode)
    part.replace(target)
    return True


def metered():
    """Whether the meter, which is for evaluation only, is built in: METER=1."""
    return os.environ.get("METER") == "1"


def planted():
    """Whether bugs are planted in the tree, to be switched on: by make mutants-kernel, in its copy of this tree."""
    return os.environ.get("PLANTED") == "1"


def timed():
    """Whether what measuring in User Mode Linux needs is in it: by make time."""
    return os.environ.get("TIMED") == "1"


def beyond():
    """What is for evaluation, or tests of tests, only: name -> whether it is in the tree, which is then another one."""
    return {BETTER_C: os.environ.get("CONFIG") == BETTER_C, "meter": metered(), "uml": timed(),
            "planted": planted()}


def tree_of(base, more=None):
    """The folder of the tree that is built, or of one with `more`."""
    wanted = [name for name, is_wanted in beyond().items() if is_wanted]
    return base.work / "-".join(["linux", *(wanted if more is None else more)])


def patches_of(path, folder=TOP / "patches"):
    """The patches of a folder in their order, without its cover letter."""
    return sorted(p for p in (folder / path).glob("[0-9]*.patch") if not p.name.startswith("0000-"))


def unnumbered(patch):
    """The name by which a patch is known, wherever in its folder it is."""
    return re.sub(r"^\d+-", "", patch.name)


def series():
    """The patches to build with."""
    more = [name for name, is_wanted in beyond().items() if is_wanted]
    return [patch for path in SERIES + more for folder in [path, *(TWINS if path == BETTER_C else [])]
            for patch in patches_of(folder)]


def touched_by(patches):
    """The files that patches touch."""
    return set(re.findall(r"^\+\+\+ b/(.*)$", "".join(p.read_text() for p in patches), re.M))


def patched_files(base, patches, names):
    """Files of the kernel that patches touch, with their new content. Ours are what these have made of them."""
    names = set(names) - set(our_files())
    with tempfile.TemporaryDirectory(dir=base.work) as folder:
        scratch = pathlib.Path(folder)
        put_back(base.tree, scratch, names)
        # Not of whichever repository the cache is in.
        env = {"PATH": os.environ["PATH"], "HOME": folder, "GIT_CONFIG_NOSYSTEM": "1", "GIT_DIR": os.devnull}
        for patch in patches:
            these = [f"--include={name}" for name in touched_by([patch]) & names]
            if not these:
                continue
            applied = subprocess.run(["git", "apply", "--whitespace=nowarn", *these, patch], cwd=scratch, env=env,
                                     capture_output=True, text=True)
            if applied.returncode:
                why = (applied.stderr.splitlines() or ["no reason given"])[0]
                raise Error(f"{patch.name} does not apply to Linux {base.version} ({why})",
                            "give an unpatched 7.3.y source by KSRC=")
        return {name: (scratch / name).read_bytes() for name in sorted(names)}


def our_files(top=TOP):
    """Our files by their names in the kernel, as they are with the whole series, in a tree like this one."""
    return {str(target / path.relative_to(top / source)): path.read_bytes()
            for source, target in OURS for path in sorted((top / source).rglob("*"))
            if path.is_file() and path.name != "Cargo.toml"}


def stamp_of(tree):
    """The list of what is not the base's in a tree."""
    return tree.with_name(f"{tree.name}.touched.json")


def changed(tree):
    """What that says; None if nobody knows."""
    return set(json.loads(stamp_of(tree).read_text())) if stamp_of(tree).exists() else None


def lend(tree, names):
    """Says that files of the tree are about to be changed: stage() will bring them back, whatever happens."""
    write_atomically(stamp_of(tree), json.dumps(sorted((changed(tree) or set()) | set(names))))


def put_back(source, tree, names):
    """Gives files of a tree the content that they have in another."""
    for name in names:
        if (source / name).exists():
            replace(tree / name, content(source / name), (source / name).stat().st_mode)
        else:
            (tree / name).unlink(missing_ok=True)


def stage(own=None):
    """Makes the tree what it should be; returns the base and the tree, which stays so until this process ends, but for
    one of its own, which no other may use.
    """
    base = Base()
    tree = base.work / own if own else tree_of(base)
    base.work.mkdir(parents=True, exist_ok=True)
    patches = series()
    wanted = patched_files(base, patches, touched_by(patches)) | our_files()
    lock = hold(tree)
    # A user's tree may have changed anywhere.
    if base.users or changed(tree) != set(wanted) or any(content(tree / name) != wanted[name] for name in wanted):
        with lock:
            bring_up_to_date(base, tree, wanted)
    if own:
        lock.alone()
    hooks.check(base.tree / "mm/page_alloc.c", base.version)
    return base, tree


def bring_up_to_date(base, tree, wanted):
    before = changed(tree)
    if before is None:
        shutil.rmtree(tree, ignore_errors=True)
    copy_base(base, tree, before or ())
    lend(tree, wanted)
    put_back(base.tree, tree, changed(tree) - set(wanted))
    if new := sum(replace(tree / name, wanted[name]) for name in wanted):
        say(f"{new} files of the series brought up to date in {tree}")
    write_atomically(stamp_of(tree), json.dumps(sorted(wanted)))


# The locks of the trees and builds that this process uses.
HELD = []


def hold(folder):
    """Says that a tree or a build is in use, until this process ends; returns its lock."""
    HELD.append(Lock(f"{folder.parent.name}-{folder.name}"))
    return HELD[-1]


def let_go():
    """Says that this process uses none of them any more."""
    while HELD:
        HELD.pop().file.close()
