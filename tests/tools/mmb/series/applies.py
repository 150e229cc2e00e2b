# SPDX-License-Identifier: GPL-2.0
"""To which sources the series applies: git am in a scratch repository of the files that it touches."""

import pathlib
import re
import shutil
import subprocess

from ..base.cache import CACHE, TOP, brought, write_atomically
from ..base.errors import Error, say
from ..kernel.tree import content, touched_by
from .write import Git

TABLE = TOP / "patches/versions.md"
HEAD = """# Where the series applies

Debian's packages of 7.3.y and newer and upstream's release (as Debian's source package has it), as far as the
archive has them. `git am` is strict; "3-way" is `git am -3`, which a kernel's own repository allows. Applying is
all that is tried here. What is built and booted is {}, the base. Written by `make versions`.

| source | version | touched files that differ from the base's | git am |
|---|---|---|---|
"""


def extracted(archive, names):
    """The named files of a packaged source, those that it has. They are kept: unpacking takes half a minute."""
    target = CACHE / "versions" / archive.name
    wanted, stamp = "\n".join(sorted(names)), target / ".names"
    if stamp.exists() and stamp.read_text() == wanted:
        return target
    say(f"unpacking the touched files of {archive.name}")
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    top = re.sub(r"_.*", "", archive.name)
    if archive.suffix == ".deb":
        unpack = f"dpkg-deb --fsys-tarfile '{archive}' | tar -xO './usr/src/{top}.tar.xz' | xz -dc"
    else:
        unpack, top = f"xz -dc '{archive}'", re.sub(r"linux_(.*)\.orig\..*", r"linux-\1", archive.name)
    pipe = f'set -o pipefail; {unpack} | tar -x -C "$0" --strip-components=1 "$@"'
    members = [f"{top}/{name}" for name in ("Makefile", *sorted(names))]
    done = subprocess.run(["bash", "-c", pipe, target, *members], capture_output=True, text=True)
    absent = re.compile("Not found in archive|Exiting with failure")
    bad = [line for line in done.stderr.splitlines() if not absent.search(line)]
    if bad or not (target / "Makefile").exists():
        why = (bad or ["no Makefile in it"])[0]
        raise Error(f"{archive.name} cannot be unpacked ({why})", "remove it and try again")
    write_atomically(stamp, wanted)
    return target


def apply(tree, patches, scratch, version, threeway=None):
    """Applies patches to a tree's files: the repository, and what went wrong or None."""
    git = Git(scratch)
    git.commit_base(tree, touched_by(patches), version)
    if threeway:
        (scratch / ".git/objects/info/alternates").write_text(f"{threeway}/.git/objects\n")
    for patch in patches:
        done = git.run("am", "-q", *(["-3"] if threeway else []), patch)
        if done.returncode:
            number = patch.name.split("-")[0]
            conflicts = git("diff", "--name-only", "--diff-filter=U").split()
            why = next((l for l in done.stderr.splitlines() if l.startswith("error:")), "no reason given")
            return git, f"{number}: " + (", ".join(conflicts) or why.removeprefix("error: "))
    return git, None


def upstream():
    """Upstream's release as (version, tarball), in a list, which is empty where the archive has none."""
    archive = pathlib.Path(brought("upstream") or ".")
    return [(found.group(1), archive)] if (found := re.search(r"_(.*)\.orig", archive.name)) else []


def others():
    """What else the archive has: suite, version and package of each."""
    rows = [line.split(" ", 2) for line in brought("versions").splitlines()]
    return [(f"Debian {suite}", version, pathlib.Path(path)) for suite, version, path in rows]


def order(version):
    """7.3.9 before 7.3.12, and 7.4~rc7 before 7.4."""
    upstreams = re.sub(r"-.*", "", version)
    return [int(n) if n.isdigit() else -1 for n in re.split(r"[.~]", upstreams)], version


def write_versions(base, patches):
    """Tries every version there is, and writes the table; returns what to print of it."""
    names, seen, rows = touched_by(patches), {}, [HEAD.format(base.version)]
    found = [("upstream", *row) for row in upstream()] + others()
    for source, version, archive in sorted(found, key=lambda row: order(row[1])):
        tree, result = extracted(archive, names), "yes"
        differ = sorted(n for n in names if content(tree / n) != content(base.tree / n))
        _, why = apply(tree, patches, base.work / "am", version)
        if why:
            _, still = apply(tree, patches, base.work / "am", version, threeway=base.work / "series-git")
            result = f"**no** ({still})" if still else f"no, 3-way yes ({why})"
        seen[f"{source} {version}"] = result
        rows.append(f"| {source} | {version} | {', '.join(differ) or 'none'} | {result} |\n")
    write_atomically(TABLE, "".join(rows))
    return seen
