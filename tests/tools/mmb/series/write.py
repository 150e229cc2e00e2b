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
from itertools import chain

from ..base.cache import TOP, alone
from ..base.errors import PASS, Error, say
from ..kernel.tree import SERIES, Base, our_files, patches_of, put_back, touched_by, unnumbered
from .measured import with_figures
from .parts import PARTS

OUT = TOP / "out/series"
LETTER = "0000-cover-letter.patch"
AUTHOR = "mm_batch developers <mm_batch@localhost>"
# The committer's, which is the cover letter's: a fixed one, or every run would differ.
DATE = "2026-11-20T23:00:00+0000"


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

    def run(self, *arguments, stdin=None, text=True):
        return subprocess.run(["git", *arguments], cwd=self.folder, env=self.env, input=stdin, capture_output=True,
                              text=text)

    def __call__(self, *arguments, stdin=None):
        done = self.run(*arguments, stdin=stdin)
        if done.returncode:
            raise Error(f"git {arguments[0]} failed ({reason(done)})", f"look at {self.folder}")
        return done.stdout.strip()

    def am(self, patch, sob=None):
        # Who signs is the author: the first sign-off is the author's, and MAINTAINERS names somebody real.
        mail = patch.read_text().replace(AUTHOR, sob or AUTHOR)
        done = self.run("am", "-q", "--keep-cr", *(["--signoff"] if sob else []), stdin=mail)
        if done.returncode:
            raise Error(f"{patch.name} does not apply ({reason(done)})", "give an unpatched 7.3.y source by KSRC=")

    def mails(self, out, revisions, letter, base, *more):
        """A mail per commit, and a cover letter of ours in front."""
        self("format-patch", "-q", "--cover-letter", "--zero-commit", "--no-signature", "--abbrev=12", "--base=base",
             *more, "-o", out, revisions)
        cover(out / letter.name, letter, base)

    def commit_base(self, tree, names, version):
        """The base: those of the files that the tree has."""
        put_back(tree, self.folder, names)
        self("add", "-A", "-f")
        self("commit", "-q", "--allow-empty", "-m", f"Linux {version}")
        self("tag", "base")


def listed(path, folder=TOP / "patches"):
    """patches/<folder>/files: patch without its number -> our files that come with it."""
    table, source = {}, folder / path / "files"
    for line in source.read_text().splitlines() if source.exists() else []:
        if not line.strip() or line.startswith("#"):
            continue
        if line[0] not in " \t":
            names = table.setdefault(line.strip(), [])
        elif table:
            names.append(line.strip())
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
        self.patches = {p: patches_of(p, top) for p in folders if patches_of(p, top)}
        self.tables = {p: listed(p, top) for p in self.patches}
        self.check()
        self.brought = self.ours | self.before()

    def check(self):
        seen = set()
        for path, table in self.tables.items():
            source, patches = self.folder / path / "files", {unnumbered(p) for p in self.patches[path]}
            for patch, names in table.items():
                if patch not in patches:
                    raise Error(f"{source} names {patch}, which is no patch there", "name it as its file is")
                for name in sorted(set(names)):
                    if name not in self.ours:
                        raise Error(f"{source} names {name}, which is not ours", "correct the table")
                    if name in seen:
                        raise Error(f"{source} names {name}, which an earlier patch brings",
                                    "remove it there: what a later patch changes is a hunk of it")
                    seen.add(name)
        if absent := sorted(set(self.ours) - seen):
            raise Error(f"no patch brings {', '.join(absent)}", f"name it in {self.folder}/<path>/files")

    def before(self):
        """Name -> content of our files that patches change, as they were before the first of these."""
        patches = list(chain(*self.patches.values()))
        names = touched_by(patches) & set(self.ours)
        with tempfile.TemporaryDirectory() as folder:
            git = Git(pathlib.Path(folder, "git"))
            write_files(git.folder, {name: self.ours[name] for name in names})
            for patch in reversed(patches):
                changed = [f"--include={name}" for name in touched_by([patch]) & names]
                if changed and (done := git.run("apply", "-R", *changed, patch)).returncode:
                    raise Error(f"{patch.name} does not lead to what we have ({reason(done)})",
                                "git stash what was changed, make import, and change it there")
            return {name: (git.folder / name).read_bytes() for name in names}

    def commit(self, git, patches, sob=None):
        """A commit for each of the patches, with our files that come with it, as they are then."""
        for patch in patches:
            git.am(patch, sob)
            if names := self.tables.get(patch.parent.name, {}).get(unnumbered(patch)):
                write_files(git.folder, {name: self.brought[name] for name in names})
                git("add", "-A", "-f")
                git("commit", "-q", "--amend", "--no-edit")


def cover(letter, source, base):
    """Git's cover letter with the path's subject and text in it."""
    head, _, text = source.read_text().partition("\n\n")
    subject = re.search(r"^Subject: (?:\[[^]]*\] *)?(.*)$", head, re.M).group(1)
    written = letter.read_text()
    written = written.replace("*** SUBJECT HERE ***", subject).replace("*** BLURB HERE ***", text.strip())
    # Git knows the scratch repository's commit, which means nothing elsewhere; one that others can know is said.
    commit = subprocess.run(["git", "-C", base.tree, "rev-parse", "HEAD"], capture_output=True, text=True)
    own = (base.tree / ".git").exists() and not commit.returncode
    line = f"base-commit: {commit.stdout.strip()} (Linux {base.version})" if own else f"base: Linux {base.version}"
    written, n = re.subn(r"^base-commit: .*$", line, written, flags=re.M)
    if n != 1:
        raise Error(f"git wrote no base into {letter.name}", "use git 2.30 or newer")
    letter.write_text(written.rstrip("\n") + "\n")


@alone("series")
def write_series(base, out, sob=None, plan=None):
    """Writes the series against the base; returns its folders."""
    plan = plan or Plan(SERIES, our_files())
    git = Git(base.work / "series-git", sob or AUTHOR)
    git.commit_base(base.tree, touched_by(chain(*plan.patches.values())) | set(plan.ours), base.version)
    part = out.with_name(out.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    before = "base"
    for path in plan.patches:
        plan.commit(git, plan.patches[path], sob)
        git("tag", path)
        git.mails(part / path, f"{before}..{path}", plan.folder / path / LETTER, base)
        with_figures(path, part / path)
        before = path
    for name, content in plan.ours.items():
        if (git.folder / name).read_bytes() != content:
            raise Error(f"{name} is not what we have after the last patch", "change the patches that change it")
    shutil.rmtree(out, ignore_errors=True)
    out.parent.mkdir(parents=True, exist_ok=True)
    part.rename(out)
    return [out / path for path in plan.patches]


def unsigned_series(base):
    """The patches of the series for a check, beside what the user made."""
    return [patch for folder in write_series(base, base.work / "series-out") for patch in patches_of(folder)]


def recipients(tree, patches):
    """What git format-patch takes: to whom, by the kernel's own list."""
    script = [tree / "scripts/get_maintainer.pl", "--no-git", "--no-git-fallback", "--no-rolestats"]
    found = []
    for option, which in (("to", ["--no-l"]), ("cc", ["--no-m", "--no-r"])):
        done = subprocess.run([*script, *which, *map(str, patches)], cwd=tree, capture_output=True, text=True)
        if done.returncode:
            raise Error(f"get_maintainer.pl failed ({reason(done)})", "give a whole source tree by KSRC=, and have perl")
        found += [f"--{option}={line}" for line in done.stdout.splitlines()]
    return found


@alone("series")
def write_part(base, name, out, sob=None, plan=None):
    """Writes a part, with a letter and whom to send it to, but not what must be there before; returns its folder."""
    part, plan = PARTS[name](), plan or Plan(SERIES, our_files())
    git = Git(base.work / "series-git", sob or AUTHOR)
    git.commit_base(base.tree, touched_by([*part.below, *part.own]) | set(plan.ours), base.version)
    plan.commit(git, part.below, sob)
    git("tag", "below")
    plan.commit(git, part.own, sob)
    unfinished = out.with_name(out.name + ".part")
    shutil.rmtree(unfinished, ignore_errors=True)
    git.mails(unfinished, "below..HEAD", plan.folder / part.letter / LETTER, base, *recipients(base.tree, part.own))
    with_figures(part.letter, unfinished)
    shutil.rmtree(out, ignore_errors=True)
    unfinished.rename(out)
    return out


def make_series():
    """The verb: writes the series against the base, or a part of it, and says how to apply it."""
    if name := os.environ.get("PART"):
        folder = write_part(Base(), name, OUT.with_name(f"part-{name}"), os.environ.get("SOB"))
        say(f"{len(patches_of(folder))} patches and a cover letter in {folder.relative_to(TOP)}/; To and Cc are "
            "get_maintainer.pl's")
        return PASS
    folders = write_series(Base(), OUT, os.environ.get("SOB"))
    for folder in folders:
        say(f"{len(patches_of(folder))} patches and a cover letter in {folder.relative_to(TOP)}/")
    say("to apply: git am --empty=drop " + " ".join(f"{f.relative_to(TOP)}/*.patch" for f in folders))
    return PASS
