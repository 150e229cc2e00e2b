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
from itertools import takewhile

from ..base.cache import CACHE, TOP, Lock, brought, need_space, write_atomically
from ..base.errors import Error, say
from ..paths import PATHS
from . import hooks

SUPPORTED = (7, 3)

# The series' folders in patches/: fixes, which need nothing else, and the paths.
SERIES = ["fixes", *PATHS]
# What is offered to C: CONFIG=better_c. The first needs none of the series; the others are what tests have to know of
# it, the twins of paths, and their modes.
BETTER_C = "better_c"
TWINS = ["better_c/mode", "anon_unmap_c", "anon_unmap_c/mode", "dirty_flush_c"]
# What a twin is to a plain kernel: (the path whose patches of C alone come first, the rest).
OFFERED = ("anon_unmap", ["anon_unmap_c", "anon_unmap_c/plain"])

# Files of ours that become files of the kernel.
OURS = [
    (pathlib.PurePath("rust/mm_batch"), pathlib.PurePath("mm/mm_batch")),
    (pathlib.PurePath("tests/kernel/kunit"), pathlib.PurePath("mm/tests")),
]


def version_of(tree):
    """The version of a kernel tree, from its Makefile."""
    try:
        text = (tree / "Makefile").read_text()
        parts = [re.search(rf"^{key} = (.*)$", text, re.M).group(1)
                 for key in ("VERSION", "PATCHLEVEL", "SUBLEVEL")]
        if not (tree / "mm/page_alloc.c").exists():
            raise AttributeError
    except (OSError, AttributeError):
        raise Error(f"{tree} is no kernel source tree", "give the top folder of a 7.3.y source") from None
    if tuple(map(int, parts[:2])) != SUPPORTED:
        raise Error(f"{tree} is Linux {'.'.join(parts)}, which the series does not support",
                    "give a 7.3.y source")
    return ".".join(parts)


class Base:
    """The unpatched source, and whose it is."""

    def __init__(self):
        kdir, ksrc = os.environ.get("KDIR"), os.environ.get("KSRC")
        self.users = bool(kdir or ksrc)
        self.config = None
        if self.users:
            self.tree = pathlib.Path(kdir or ksrc).expanduser().resolve()
            if not self.tree.is_dir():
                raise Error(f"{kdir or ksrc} is no folder", "give KDIR= or KSRC= a kernel tree")
        else:
            self.tree = pathlib.Path(brought("source"))
        self.version = version_of(self.tree)
        if kdir:
            self.config = self.tree / ".config"
            if not self.config.exists():
                raise Error(f"{kdir} is not configured", "run its make menuconfig, or give it as KSRC=")
        name = hashlib.sha256(str(self.tree).encode()).hexdigest()[:8] if self.users else self.version
        self.work = CACHE / "build" / name


def copy_base(base, tree, patched):
    """Copies the base; a user's tree again where it changed, but for the files that are patched anyway."""
    if tree.exists() and not base.users:
        return
    need_space(3000, "a copy of the kernel source")
    part = tree.with_name(f"{tree.name}.part")
    if not tree.exists():
        say(f"copying {base.tree} (1.8 GB)")
        shutil.rmtree(part, ignore_errors=True)
        if base.users:
            shutil.copytree(base.tree, part, symlinks=True, ignore=built_files)
        else:
            # Nobody writes to a file of these trees: it is replaced.
            shutil.copytree(base.tree, part, symlinks=True, copy_function=os.link)
        part.rename(tree)
        return
    for folder, folders, files in os.walk(base.tree):
        ignored = built_files(folder, folders + files)
        folders[:] = [f for f in folders if f not in ignored]
        there = tree / os.path.relpath(folder, base.tree)
        there.mkdir(exist_ok=True)
        for name in files:
            if name not in ignored and os.path.relpath(f"{folder}/{name}", base.tree) not in patched:
                update(pathlib.Path(folder) / name, there / name)


# What a build leaves in a user's tree. (Not *.bc: kernel/time/timeconst.bc is a source.)
BUILT = re.compile(r"^\.git$|\.(o|a|ko|mod|order|cmd|rmeta|so)$|^vmlinux$|^vmlinux\.unstripped$|^\.config")


def built_files(_folder, names):
    return {name for name in names if BUILT.search(name)}


def update(source, target):
    """Copies a file if it is not the same already."""
    if source.is_symlink():
        return
    if target.exists():
        a, b = source.stat(), target.stat()
        if (a.st_size, int(a.st_mtime)) == (b.st_size, int(b.st_mtime)):
            return
    shutil.copy2(source, target)


def replace(target, content, mode=None):
    """Writes a file only if its content changes."""
    if target.exists() and target.read_bytes() == content:
        return False
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(target.name + ".part")
    part.write_bytes(content)
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


def tree_of(base):
    """The folder of the tree that is built: what is for evaluation only has one of its own."""
    wanted = ((BETTER_C, os.environ.get("CONFIG") == BETTER_C), ("meter", metered()), ("planted", planted()))
    return base.work / "-".join(["linux", *(name for name, is_wanted in wanted if is_wanted)])


def patches_of(path, folder=TOP / "patches"):
    """The patches of a folder in their order, without its cover letter."""
    return sorted(p for p in (folder / path).glob("[0-9]*.patch") if not p.name.startswith("0000-"))


def series():
    """The patches to build with. What comes behind SERIES is for evaluation, or tests of tests, only."""
    more = [BETTER_C, *TWINS] if os.environ.get("CONFIG") == BETTER_C else []
    more += [name for name, is_wanted in (("meter", metered()), ("planted", planted())) if is_wanted]
    return [patch for path in SERIES + more for patch in patches_of(path)]


def offered():
    """The twin as a series for a plain kernel: the fixes, what is C's alone of the path, and the twin."""
    path, folders = OFFERED
    own = takewhile(lambda patch: "mm_batch/" not in patch.read_text(), patches_of(path))
    return [*patches_of("fixes"), *own, *(patch for folder in folders for patch in patches_of(folder))]


def touched_by(patches):
    """The files that patches touch."""
    return set(re.findall(r"^\+\+\+ b/(.*)$", "".join(p.read_text() for p in patches), re.M))


def patched_files(base, patches, names):
    """Files of the kernel that patches touch, with their new content. Ours are what these have made of them."""
    with tempfile.TemporaryDirectory(dir=base.work) as scratch:
        return patched_in(base, pathlib.Path(scratch), patches, names)


def patched_in(base, scratch, patches, names):
    names = set(names) - set(our_files())
    for name in names:
        if (base.tree / name).exists():
            (scratch / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(base.tree / name, scratch / name)
    env = {"PATH": os.environ["PATH"], "HOME": str(scratch), "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", "init", "-q", scratch], check=True, env=env)
    for patch in patches:
        these = touched_by([patch]) & names
        if not these:
            continue
        only = [f"--include={name}" for name in these]
        applied = subprocess.run(["git", "apply", "--whitespace=nowarn", *only, patch], cwd=scratch, env=env,
                                 capture_output=True, text=True)
        if applied.returncode:
            why = (applied.stderr.splitlines() or ["no reason given"])[0]
            raise Error(f"{patch.name} does not apply to Linux {base.version} ({why})",
                        "give an unpatched 7.3.y source by KSRC=")
    return {name: (scratch / name).read_bytes() for name in sorted(names)}


def our_files(top=TOP):
    """Our files by their names in the kernel, as they are with the whole series, in a tree like this one."""
    files = {}
    for source, target in OURS:
        for path in sorted((top / source).rglob("*")):
            if path.is_file() and path.name != "Cargo.toml":
                files[str(target / path.relative_to(top / source))] = path.read_bytes()
    return files


def stamp_of(tree):
    """The list of what is not the base's in a tree."""
    return tree.with_name(f"{tree.name}.touched.json")


def lend(tree, name):
    """Says that a file of the tree is about to be changed: stage() will bring it back, whatever happens."""
    stamp = stamp_of(tree)
    write_atomically(stamp, json.dumps(sorted(set(json.loads(stamp.read_text())) | {name})))


def put_back(base, tree, names):
    """Gives files of a tree the content that they have in the base."""
    for name in names:
        original = base.tree / name
        if original.exists():
            replace(tree / name, original.read_bytes())
        else:
            (tree / name).unlink(missing_ok=True)


def stage():
    """Makes the tree what it should be; returns the base and the tree, which stays so until this process ends."""
    base = Base()
    tree = tree_of(base)
    base.work.mkdir(parents=True, exist_ok=True)
    stamp = stamp_of(tree)
    patches = series()
    wanted = patched_files(base, patches, touched_by(patches)) | our_files()
    lock = hold(tree)
    if not is_staged(base, tree, stamp, wanted):
        with lock:
            bring_up_to_date(base, tree, stamp, wanted)
    hooks.check(base.tree / "mm/page_alloc.c", base.version)
    return base, tree


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


def is_staged(base, tree, stamp, wanted):
    """Whether there is nothing to do. A user's tree may have changed anywhere."""
    return (not base.users and stamp.exists() and tree.exists() and json.loads(stamp.read_text()) == sorted(wanted)
            and all((tree / name).is_file() and (tree / name).read_bytes() == content
                    for name, content in wanted.items()))


def bring_up_to_date(base, tree, stamp, wanted):
    if not stamp.exists():
        # Nobody knows what was changed in it.
        shutil.rmtree(tree, ignore_errors=True)
    before = json.loads(stamp.read_text()) if stamp.exists() else []
    copy_base(base, tree, set(before))
    write_atomically(stamp, json.dumps(sorted(set(before) | set(wanted))))
    put_back(base, tree, set(before) - set(wanted))
    changed = sum(replace(tree / name, content) for name, content in wanted.items())
    write_atomically(stamp, json.dumps(sorted(wanted)))
    if changed:
        say(f"{changed} files of the series brought up to date in {tree}")
