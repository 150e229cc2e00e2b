# SPDX-License-Identifier: GPL-2.0
"""make import and make export: the series as branches of a git repository, to be changed by git's own means.

The repository has the files that patches touch, as they are in the base, and one commit per patch, which has the
files of ours that come with it. Where a folder's patches end there is a branch called as the folder is, but for the
last one's, which end at the tip; git rebase takes these branches along. docs/series.md says how one works there.
"""

import hashlib
import json
import re
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from ..base.cache import TOP, write_atomically
from ..base.errors import PASS, Error, say
from ..kernel.tree import BETTER_C, OURS, SERIES, TWINS, Base, our_files, patches_of, touched_by, unnumbered
from .write import AUTHOR, Git, Plan, listed, write_files

# Tip -> the folders whose patches lead to it. The first is on the base, the others are on the first.
SERIES_TIP = "series"
TIPS = {SERIES_TIP: SERIES, "meter": ["meter"], "uml": ["uml"], "twins": [BETTER_C, *TWINS]}
# How a tip follows one that was rebased.
REBASED = "git rebase --onto series series@{1}"


@dataclass
class Checkout:
    """Where patches/ and our files are, and which branches they make."""

    top: Path = TOP
    tips: dict = field(default_factory=lambda: TIPS)

    def __post_init__(self):
        self.patches, self.repository = self.top / "patches", self.top / "out/series-git"

    def folders(self, tip):
        return [folder for folder in self.tips[tip] if (self.patches / folder).is_dir()]

    def ends(self, tip):
        """Folder -> the branch at which its patches end."""
        folders = self.folders(tip)
        return {folder: tip if folder == folders[-1] else folder.replace("/", "-") for folder in folders}

    def patches_to(self, tips):
        return [patch for tip in tips for folder in self.folders(tip) for patch in patches_of(folder, self.patches)]

    def plan(self):
        return Plan(self.folders(SERIES_TIP), our_files(self.top), self.patches)

    def place(self, name):
        """Where the checkout has a file of ours; None for a file of the kernel's."""
        return next((str(source / PurePath(name).relative_to(target)) for source, target in OURS
                     if target in PurePath(name).parents), None)

    def files(self, tips):
        """What export writes of these tips: name -> content."""
        tables = [self.patches / folder / "files" for tip in tips for folder in self.folders(tip)]
        found = {str(file.relative_to(self.top)): file.read_bytes()
                 for file in [*self.patches_to(tips), *filter(Path.exists, tables)]}
        ours = our_files(self.top) if SERIES_TIP in tips else {}
        return found | {self.place(name): content for name, content in ours.items()}

    def digests(self, tips):
        return {name: hashlib.sha256(content).hexdigest() for name, content in self.files(tips).items()}


def commit_branches(git, checkout, plan, tips):
    """A commit per patch, and the branches. Leaves the series checked out."""
    for tip in tips:
        if tip != SERIES_TIP:
            git("checkout", "-q", "-b", tip, SERIES_TIP)
        for folder, end in checkout.ends(tip).items():
            plan.commit(git, patches_of(folder, plan.folder))
            if end != tip:
                git("branch", end)
    git("checkout", "-q", SERIES_TIP)


def refs(git):
    """What a user of the repository can lose."""
    return dict(line.split() for line in git("for-each-ref", "--format=%(refname) %(objectname)",
                                             "refs/heads", "refs/stash").splitlines())


def write_stamp(git, checkout, version):
    """Of what the branches and the checkout have in common."""
    ours = {f"refs/heads/{end}" for tip in checkout.tips for end in checkout.ends(tip).values()}
    write_atomically(git.folder / ".git/imported.json", json.dumps({
        "version": version,
        "refs": {name: commit for name, commit in refs(git).items() if name in ours},
        "files": checkout.digests(checkout.tips)}))


class Imported:
    """The repository, and what it was made from."""

    def __init__(self, checkout):
        self.git = Git(checkout.repository, there=True)
        try:
            found = json.loads((checkout.repository / ".git/imported.json").read_text())
        except (OSError, ValueError):
            raise Error(f"{checkout.repository} is not made by make import", "remove it, and make import") from None
        self.version, self.refs, self.files = found["version"], found["refs"], found["files"]

    def worktrees(self):
        self.git("worktree", "prune")
        return re.findall(r"^worktree (.*)$", self.git("worktree", "list", "--porcelain"), re.M)

    def check_clean(self):
        """What is not committed is neither exported nor to be lost."""
        for folder in self.worktrees():
            at = Git(Path(folder), there=True)
            for state in ("rebase-merge", "rebase-apply"):
                if Path(folder, at("rev-parse", "--git-path", state)).exists():
                    raise Error(f"a rebase is not finished in {folder}", "git rebase --continue or --abort there")
            if changed := at("status", "--porcelain").splitlines():
                raise Error(f"{folder} has changes that are not committed ({changed[0].strip()})",
                            "git commit or git stash them there")

    def check_exported(self):
        """Nothing is in it that the checkout has not."""
        self.check_clean()
        now = refs(self.git)
        if not self.git("for-each-ref", "--contains", "HEAD", "refs/heads"):
            now["HEAD"] = "of no branch"
        for name in sorted(now):
            if now[name] != self.refs.get(name):
                raise Error(f"{name.removeprefix('refs/heads/')} in {self.git.folder} is not exported",
                            "make export, or remove the folder")
        if len(self.worktrees()) > 1:
            raise Error(f"{self.git.folder} has another worktree in {self.worktrees()[1]}", "git worktree remove it")


def import_series(base, checkout=Checkout()):
    """Makes the repository of patches/ and our files; returns where it is."""
    if checkout.repository.exists():
        Imported(checkout).check_exported()
    plan = checkout.plan()
    git = Git(checkout.repository.with_name("series-git.part"))
    # New patches are whoever's signs the series off. See make series.
    name, mail = re.fullmatch(r"(.+) <(.+)>", AUTHOR).groups()
    for setting in (("user.name", name), ("user.email", mail), ("rebase.updateRefs", "true")):
        git("config", *setting)
    # The touched files, and C's beside them, for patches that touch one more.
    touched = touched_by(checkout.patches_to(checkout.tips)) | set(plan.ours)
    beside = {str(file.relative_to(base.tree)) for folder in {Path(name).parent for name in touched}
              for file in (base.tree / folder).glob("*.[ch]") if file.is_file()}
    git.commit_base(base.tree, touched | beside, base.version)
    commit_branches(git, checkout, plan, checkout.tips)
    write_stamp(git, checkout, base.version)
    shutil.rmtree(checkout.repository, ignore_errors=True)
    return git.folder.rename(checkout.repository)


def mail_of(git, commit, brought):
    """A commit as git mails it, without the files of ours that it brings: its name without a number, and the text."""
    with tempfile.TemporaryDirectory() as folder:
        git("format-patch", "-q", "--zero-commit", "--no-signature", "-N", "--abbrev=7", "-o", folder,
            f"{commit}^..{commit}", "--", ".", *(f":(exclude){name}" for name in brought))
        for written in Path(folder).iterdir():
            return unnumbered(written), written.read_bytes()
    raise Error(f"{called(git, commit)} changes nothing but files that it brings", "add them to MAINTAINERS by it")


def called(git, commit):
    return git("log", "-1", "--format=%h %s", commit)


def makes(git, patch, commit, brought):
    """Whether a patch, with the files that come with it, makes a commit of its parent."""
    index = Git(git.folder, there=True)
    index.env |= {"GIT_INDEX_FILE": str(git.folder / ".git/export-index")}
    index("read-tree", f"{commit}^")
    applied = index.run("apply", "--cached", "--whitespace=nowarn", patch).returncode == 0
    return applied and set(index("diff-index", "--cached", "--name-only", commit).splitlines()) == set(brought)


def head(mail):
    """Who says what and when, wherever lines are folded."""
    return mail.partition(b"\n---\n")[0].replace(b"\n ", b" ")


def added(git, checkout, before, after):
    """The files of ours that are there after, and not before."""
    names = git("diff", "--no-renames", "--diff-filter=A", "--name-only", before, after).splitlines()
    return [name for name in names if checkout.place(name)]


def table(old, brought):
    """The text of a folder's files, from patch -> names, with the comments of the old one."""
    comments = [line for line in old.splitlines(True) if line.startswith("#")]
    return "".join(comments) + "\n".join("\n\t".join([patch, *sorted(names)]) + "\n"
                                         for patch, names in brought.items())


def export_folder(git, checkout, folder, commits, there, ours):
    """What patches/<folder>/ is to have of these commits: name -> content.

    A patch that is there already and still makes the commit stays as it is, whatever lines it says that the hunks
    are at, and whatever context somebody gave them. So one that nobody changed does not change.
    """
    found, brought = {}, {}
    for number, commit in enumerate(commits, 1):
        brings = added(git, checkout, f"{commit}^", commit) if folder in checkout.folders(SERIES_TIP) else []
        if gone := [name for name in brings if checkout.place(name) not in ours]:
            raise Error(f"{called(git, commit)} brings {gone[0]}, and the series ends without it",
                        f"git rebase, so that no patch brings it, in {git.folder}")
        name, mail = mail_of(git, commit, brings)
        patch = there.get(name)
        if patch and head(patch.read_bytes()) == head(mail) and makes(git, patch, commit, brings):
            mail = patch.read_bytes()
        found[f"patches/{folder}/{number:04}-{name}"] = mail
        if brings:
            brought[name] = set(brings)
    source = checkout.patches / folder / "files"
    old = source.read_text() if source.exists() else ""
    # As it is, if it says the same.
    same = brought == {patch: set(names) for patch, names in listed(folder, checkout.patches).items() if names}
    if source.exists() or not same:
        found[f"patches/{folder}/files"] = (old if same else table(old, brought)).encode()
    return found


def commits_of(git, checkout, tip):
    """Folder -> its commits."""
    before = "base" if tip == SERIES_TIP else SERIES_TIP
    if not is_on(git, before, tip):
        mend = f"git rebase --onto base <where it begins> {tip}" if before == "base" else f"{REBASED} {tip}"
        raise Error(f"branch {tip} is not on {before}", f"{mend}, in {git.folder}")
    if merges := git("rev-list", "--merges", f"{before}..{tip}"):
        raise Error(f"branch {tip} has a merge ({merges[:12]})", f"git rebase it, in {git.folder}")
    found = {}
    for folder, end in checkout.ends(tip).items():
        if not (is_on(git, before, end) and is_on(git, end, tip)):
            raise Error(f"branch {end} is not between {before} and {tip}",
                        f"git branch -f {end} <the last patch of patches/{folder}>, in {git.folder}")
        found[folder] = git("rev-list", "--reverse", f"{before}..{end}").split()
        before = end
    return found


def is_on(git, before, tip):
    """Whether both are there, and the one has the other behind it."""
    return git.run("merge-base", "--is-ancestor", before, tip).returncode == 0


def check_leads_back(git, checkout, new, old, exported):
    """What is to be written makes the branches again; and what is not written goes on with it."""
    with tempfile.TemporaryDirectory() as folder:
        would, again = Checkout(Path(folder, "checkout"), checkout.tips), Git(Path(folder, "git"))
        for part in ("patches", *(source for source, _ in OURS)):
            shutil.copytree(checkout.top / part, would.top / part)
        write(would.top, new, old)
        again("fetch", "-q", git.folder, "tag", "base")
        again("reset", "-q", "--hard", "base")
        plan = would.plan()
        for tip in checkout.tips:
            try:
                commit_branches(again, would, plan, [tip])
            except Error as error:
                if tip in exported:
                    raise
                why = str(error).rpartition(": ")[0]
                raise Error(f"branch {tip} does not go with the series: {why}",
                            f"{REBASED} {tip}, in {git.folder}") from None
            log = "log", "--reverse", "--format=%T %s", f"base..{tip}"
            differ = [b for a, b in zip(again(*log).splitlines(), git(*log).splitlines()) if a != b]
            if tip in exported and differ:
                raise Error(f"no patch makes the commit {differ[0].partition(' ')[2]!r} of branch {tip}",
                            f"look at it in {git.folder}")


def differing(new, old):
    return [name for name in sorted(set(new) | set(old)) if new.get(name) != old.get(name)]


def write(top, new, old):
    """Replaces files by others; returns the names of those that change."""
    write_files(top, {name: new[name] for name in differing(new, old) if name in new})
    for name in set(old) - set(new):
        (top / name).unlink()
    return differing(new, old)


def export_series(base, checkout=Checkout()):
    """Writes patches/ and our files as the branches have them; returns the names of those that change."""
    if not checkout.repository.exists():
        raise Error("there is nothing to export", "make import")
    imported = Imported(checkout)
    imported.check_clean()
    git = imported.git
    if imported.version != base.version:
        raise Error(f"{git.folder} is on Linux {imported.version}, and the base is {base.version}",
                    "remove it, and make import")
    heads = refs(git)
    # A variant that nobody changed stays as it is, whatever became of the series.
    exported = [tip for tip in checkout.tips if tip == SERIES_TIP or is_on(git, SERIES_TIP, tip)
                or heads.get(f"refs/heads/{tip}") != imported.refs[f"refs/heads/{tip}"]]
    there = {unnumbered(patch): patch for patch in checkout.patches_to(exported)}
    # Our files as the series leaves them.
    ours = {checkout.place(name): git.run("cat-file", "blob", f"{SERIES_TIP}:{name}", text=False).stdout
            for name in added(git, checkout, "base", SERIES_TIP)}
    new, old = dict(ours), checkout.files(exported)
    for tip in exported:
        for folder, commits in commits_of(git, checkout, tip).items():
            new |= export_folder(git, checkout, folder, commits, there, ours)
    now = checkout.digests(exported)
    for name in differing(new, old):
        if now.get(name) != imported.files.get(name):
            raise Error(f"{name} is not as it was at make import, and export would overwrite it",
                        "git stash it, make export, git stash pop")
    check_leads_back(git, checkout, new, old, exported)
    changed = write(checkout.top, new, old)
    write_stamp(git, checkout, base.version)
    return changed


def make_import():
    """The verb: the repository, and what is in it."""
    folder = import_series(Base()).relative_to(TOP)
    say(f"{folder} has the branches {', '.join(TIPS)}: git -C {folder} rebase -i base, then make export")
    return PASS


def make_export():
    """The verb: says what it wrote."""
    changed = export_series(Base())
    for name in changed:
        print(name)
    say(f"{len(changed)} files changed: git diff")
    return PASS
