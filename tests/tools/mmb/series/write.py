# SPDX-License-Identifier: GPL-2.0
"""make series: the complete series for git am, one folder and cover letter for the fixes and for each path.

The patches of patches/<path>/ are applied in a scratch repository of the touched files; with each come
the files of ours that patches/<path>/files names. Git writes the rest: what goes in decides every byte
of what comes out.
"""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from ..base.cache import TOP, alone
from ..base.errors import PASS, Error, say
from ..kernel.tree import SERIES, Base, our_files, patches_of, touched_by

OUT = TOP / "out/series"
AUTHOR = "mm_batch developers <mm_batch@localhost>"
# The committer's, which is the cover letter's: a fixed one, or every run would differ.
DATE = "2026-11-20T23:00:00+0000"
NUMBER = re.compile(r"^\d+-")


def reason(done):
    """What git says of why it failed."""
    return (done.stderr.splitlines() or done.stdout.splitlines() or ["no reason given"])[0].removeprefix("error: ")


def write_files(folder, files):
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


# What a scratch repository has can be made again: none of it need be on the disk at once.
UNSYNCED = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.fsync", "GIT_CONFIG_VALUE_0": "none"}


class Git:
    """A repository, a scratch one unless it is there already, free of whatever the user's git is configured to do."""

    def __init__(self, folder, who=AUTHOR, there=False):
        self.folder = folder
        name, mail = re.fullmatch(r"(.+) <(.+)>", who).groups()
        self.env = {"PATH": os.environ["PATH"], "HOME": str(folder), "LC_ALL": "C.UTF-8", **UNSYNCED,
                    "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull,
                    "GIT_COMMITTER_NAME": name, "GIT_COMMITTER_EMAIL": mail, "GIT_COMMITTER_DATE": DATE,
                    "GIT_AUTHOR_NAME": name, "GIT_AUTHOR_EMAIL": mail, "GIT_AUTHOR_DATE": DATE}
        if not there:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            self("init", "-q", "-b", "series")

    def run(self, *arguments, stdin=None):
        return subprocess.run(["git", *map(str, arguments)], cwd=self.folder, env=self.env, input=stdin,
                              capture_output=True, text=True)

    def __call__(self, *arguments, stdin=None):
        done = self.run(*arguments, stdin=stdin)
        if done.returncode:
            raise Error(f"git {arguments[0]} failed ({reason(done)})", f"look at {self.folder}")
        return done.stdout.strip()

    def content(self, name):
        """An object's content, to the byte."""
        return subprocess.run(["git", "cat-file", "blob", name], cwd=self.folder, env=self.env, capture_output=True,
                              check=True).stdout

    def commit_base(self, tree, names, version):
        """The base: those of the files that the tree has."""
        for name in names:
            if (tree / name).exists():
                (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(tree / name, self.folder / name)
        self("add", "-A", "-f")
        self("commit", "-q", "--allow-empty", "-m", f"Linux {version}")
        self("tag", "base")


def listed(path, folder=TOP / "patches"):
    """patches/<folder>/files: patch without its number -> our files that come with it."""
    table, patch = {}, None
    source = folder / path / "files"
    for line in source.read_text().splitlines() if source.exists() else []:
        if not line.strip() or line.startswith("#"):
            continue
        if line[0] not in " \t":
            patch = line.strip()
            table[patch] = []
        elif patch:
            table[patch].append(line.strip())
        else:
            raise Error(f"{source} names {line.strip()} before any patch", "begin with a patch's line")
    return table


class Plan:
    """What each folder brings: its patches, and our files by patch.

    A file of ours comes with one patch. A later one may change it, by hunks as in any other file, so what it was
    before is what we have with those hunks taken back.
    """

    def __init__(self, folders, ours, top=TOP / "patches"):
        self.folder, self.ours = top, ours
        self.paths = [p for p in folders if patches_of(p, top)]
        self.tables = {p: listed(p, top) for p in self.paths}
        self.check()
        self.brought = self.ours | self.before()

    def check(self):
        seen = set()
        for path, table in self.tables.items():
            source = self.folder / path / "files"
            patches = {NUMBER.sub("", p.name) for p in patches_of(path, self.folder)}
            for patch, names in table.items():
                if patch not in patches:
                    raise Error(f"{source} names {patch}, which is no patch there", "name it as its file is")
                gone = sorted(set(names) - set(self.ours))
                if gone:
                    raise Error(f"{source} names {gone[0]}, which is not ours", "correct the table")
                if again := sorted(set(names) & seen):
                    raise Error(f"{source} names {again[0]}, which an earlier patch brings",
                                "remove it there: what a later patch changes is a hunk of it")
                seen |= set(names)
        absent = sorted(set(self.ours) - seen)
        if absent:
            raise Error(f"no patch brings {', '.join(absent)}", f"name it in {self.folder}/<path>/files")

    def before(self):
        """Name -> content of our files that patches change, as they were before the first of these."""
        changes = [(patch, touched_by([patch]) & set(self.ours))
                   for path in self.paths for patch in patches_of(path, self.folder)]
        names = set().union(*(names for _, names in changes))
        with tempfile.TemporaryDirectory() as folder:
            git = Git(pathlib.Path(folder, "git"))
            write_files(git.folder, {name: self.ours[name] for name in names})
            for patch, changed in reversed(changes):
                if changed:
                    done = git.run("apply", "-R", *(f"--include={name}" for name in changed), patch)
                    if done.returncode:
                        raise Error(f"{patch.name} does not lead to what we have ({reason(done)})",
                                    "git stash what was changed, make import, and change it there")
            return {name: (git.folder / name).read_bytes() for name in names}

    def files(self, path, patch):
        """Our files that come with a patch, as they are then."""
        return {name: self.brought[name] for name in self.tables[path].get(NUMBER.sub("", patch.name), [])}


def commit_patch(git, patch, files, sob):
    """A patch and our files that come with it, as one commit."""
    # Who signs is the author: the first sign-off is the author's, and MAINTAINERS names somebody real.
    mail = patch.read_text().replace(AUTHOR, sob or AUTHOR)
    done = git.run("am", "-q", "--keep-cr", *(["--signoff"] if sob else []), stdin=mail)
    if done.returncode:
        raise Error(f"{patch.name} does not apply ({reason(done)})", "give an unpatched 7.3.y source by KSRC=")
    write_files(git.folder, files)
    git("add", "-A", "-f")
    date = git("log", "-1", "--format=%aI")
    git("commit", "-q", "--amend", "--no-edit", f"--date={date}")


def base_line(base_tree, version):
    """What the cover letter says of the base: a commit only if others can know it."""
    head = subprocess.run(["git", "-C", base_tree, "rev-parse", "HEAD"], capture_output=True, text=True)
    own = (base_tree / ".git").exists() and not head.returncode
    return f"base-commit: {head.stdout.strip()} (Linux {version})" if own else f"base: Linux {version}"


def cover(letter, source, base_tree, version):
    """Git's cover letter with the path's subject and text in it."""
    head, _, text = source.read_text().partition("\n\n")
    subject = re.search(r"^Subject: (?:\[[^]]*\] *)?(.*)$", head, re.M).group(1)
    written = letter.read_text()
    written = written.replace("*** SUBJECT HERE ***", subject).replace("*** BLURB HERE ***", text.strip())
    # Git knows the scratch repository's commit, which means nothing elsewhere.
    written, n = re.subn(r"^base-commit: .*$", base_line(base_tree, version), written, flags=re.M)
    if n != 1:
        raise Error(f"git wrote no base into {letter.name}", "use git 2.30 or newer")
    letter.write_text(written.rstrip("\n") + "\n")


def write_series(base_tree, version, scratch, out, plan, sob=None):
    """Writes the folders; returns them."""
    git = Git(scratch, sob or AUTHOR)
    patches = [p for path in plan.paths for p in patches_of(path, plan.folder)]
    git.commit_base(base_tree, touched_by(patches) | set(plan.ours), version)
    part = out.with_name(out.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    before = "base"
    for path in plan.paths:
        for patch in patches_of(path, plan.folder):
            commit_patch(git, patch, plan.files(path, patch), sob)
        git("tag", path)
        git("format-patch", "-q", "--cover-letter", "--zero-commit", "--no-signature", "--abbrev=12",
            "--base=base", "-o", part / path, f"{before}..{path}")
        letter = pathlib.Path(path, "0000-cover-letter.patch")
        cover(part / letter, plan.folder / letter, base_tree, version)
        before = path
    for name, content in plan.ours.items():
        if (git.folder / name).read_bytes() != content:
            raise Error(f"{name} is not what we have after the last patch", "change the patches that change it")
    shutil.rmtree(out, ignore_errors=True)
    out.parent.mkdir(parents=True, exist_ok=True)
    part.rename(out)
    return [out / path for path in plan.paths]


def written(base, out, sob=None):
    """The series against the base, in a folder; returns its folders. Whoever comes second waits for seconds."""
    with alone("series"):
        return write_series(base.tree, base.version, base.work / "series-git", out, Plan(SERIES, our_files()), sob)


def unsigned_series(base):
    """The series for a check, beside what the user made."""
    return written(base, base.work / "series-out")


def make_series():
    """The verb: writes the series against the base, and says how to apply it."""
    folders = written(Base(), OUT, os.environ.get("SOB"))
    for folder in folders:
        nr = len(list(folder.glob("*.patch"))) - 1
        say(f"{nr} patches and a cover letter in {folder.relative_to(TOP)}/")
    say("to apply: git am --empty=drop " + " ".join(f"{f.relative_to(TOP)}/*.patch" for f in folders))
    return PASS
