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
from dataclasses import dataclass
from pathlib import Path, PurePath

from ..base.cache import TOP, write_atomically
from ..base.errors import PASS, Error, say
from ..kernel.tree import BETTER_C, OURS, SERIES, TWINS, Base, our_files, patches_of, touched_by
from .write import AUTHOR, NUMBER, Git, Plan, commit_patch, listed

# Tip -> the folders whose patches lead to it. The first is on the base, the others are on the first.
SERIES_TIP = "series"
TIPS = {SERIES_TIP: SERIES, "meter": ["meter"], "twins": [BETTER_C, *TWINS]}
# How a tip follows one that was rebased.
REBASED = "git rebase --onto series series@{1}"


def digest(content):
    return hashlib.sha256(content).hexdigest()


@dataclass(frozen=True)
class Checkout:
    """Where patches/ and our files are, and which branches they make."""

    top: Path = TOP
    tips: tuple = tuple(TIPS.items())

    @property
    def patches(self):
        return self.top / "patches"

    @property
    def repository(self):
        return self.top / "out/series-git"

    def folders(self, tip):
        return [folder for folder in dict(self.tips)[tip] if (self.patches / folder).is_dir()]

    def ends(self, tip):
        """Folder -> the branch at which its patches end."""
        folders = self.folders(tip)
        return {folder: tip if folder == folders[-1] else folder.replace("/", "-") for folder in folders}

    def plan(self):
        return Plan(self.folders(SERIES_TIP), our_files(self.top), self.patches)

    def place(self, name):
        """Where the checkout has a file of ours; None for a file of the kernel's."""
        for source, target in OURS:
            if target in PurePath(name).parents:
                return str(source / PurePath(name).relative_to(target))
        return None

    def files(self, tips):
        """What export writes of these tips: name -> content."""
        found = {}
        for tip in tips:
            for folder in self.folders(tip):
                table = self.patches / folder / "files"
                for file in [*patches_of(folder, self.patches), *([table] if table.exists() else [])]:
                    found[str(file.relative_to(self.top))] = file.read_bytes()
        if SERIES_TIP in tips:
            found |= {self.place(name): content for name, content in our_files(self.top).items()}
        return found


def commit_base(git, checkout, plan, base_tree, version):
    """The touched files, and C's beside them, for patches that touch one more."""
    touched = touched_by(p for tip, _ in checkout.tips for f in checkout.folders(tip)
                         for p in patches_of(f, checkout.patches)) | set(plan.ours)
    beside = {str(file.relative_to(base_tree)) for folder in {Path(name).parent for name in touched}
              for file in (base_tree / folder).glob("*.[ch]") if file.is_file()}
    git.commit_base(base_tree, sorted(touched | beside), version)


def commit_branches(git, checkout, plan, tips):
    """A commit per patch, and the branches. Leaves the series checked out."""
    for tip in tips:
        if tip != SERIES_TIP:
            git("checkout", "-q", "-b", tip, SERIES_TIP)
        for folder, end in checkout.ends(tip).items():
            for patch in patches_of(folder, checkout.patches):
                commit_patch(git, patch, plan.files(folder, patch) if tip == SERIES_TIP else {}, None)
            if end != tip:
                git("branch", end)
    git("checkout", "-q", SERIES_TIP)


def refs(git):
    """What a user of the repository can lose."""
    return dict(line.split() for line in git("for-each-ref", "--format=%(refname) %(objectname)",
                                             "refs/heads", "refs/stash").splitlines())


def write_stamp(git, checkout, version):
    """Of what the branches and the checkout have in common."""
    tips = [tip for tip, _ in checkout.tips]
    ours = {f"refs/heads/{end}" for tip in tips for end in checkout.ends(tip).values()}
    write_atomically(git.folder / ".git/imported.json", json.dumps({
        "version": version,
        "refs": {name: commit for name, commit in refs(git).items() if name in ours},
        "files": {name: digest(content) for name, content in checkout.files(tips).items()}}))


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
    part = checkout.repository.with_name("series-git.part")
    git = Git(part)
    # New patches are whoever's signs the series off. See make series.
    name, mail = re.fullmatch(r"(.+) <(.+)>", AUTHOR).groups()
    for setting in (("user.name", name), ("user.email", mail), ("rebase.updateRefs", "true")):
        git("config", *setting)
    commit_base(git, checkout, plan, base.tree, base.version)
    commit_branches(git, checkout, plan, [tip for tip, _ in checkout.tips])
    write_stamp(git, checkout, base.version)
    shutil.rmtree(checkout.repository, ignore_errors=True)
    part.rename(checkout.repository)
    return checkout.repository


def mail_of(git, commit, brought):
    """A commit as git mails it, without the files of ours that it brings: its name without a number, and the text."""
    own = [f":(exclude){name}" for name in brought]
    with tempfile.TemporaryDirectory() as folder:
        git("format-patch", "-q", "--zero-commit", "--no-signature", "-N", "--abbrev=7", "-o", folder,
            f"{commit}^..{commit}", "--", ".", *own)
        written = list(Path(folder).iterdir())
        if not written:
            raise Error(f"{git('log', '-1', '--format=%h %s', commit)} changes nothing but files that it brings",
                        "add them to MAINTAINERS by it")
        return NUMBER.sub("", written[0].name), written[0].read_bytes()


def makes(git, patch, commit, brought):
    """Whether a patch, with the files that come with it, makes a commit of its parent."""
    index = Git(git.folder, there=True)
    index.env |= {"GIT_INDEX_FILE": str(git.folder / ".git/export-index")}
    index("read-tree", f"{commit}^")
    if index.run("apply", "--cached", "--whitespace=nowarn", patch).returncode:
        return False
    return set(index("diff-index", "--cached", "--name-only", commit).splitlines()) == set(brought)


def head(mail):
    """Who says what and when, wherever lines are folded."""
    return mail.partition(b"\n---\n")[0].replace(b"\n ", b" ")


def brought_by(git, checkout, commit, ours):
    """The files of ours that a commit of the series adds."""
    added = git("diff-tree", "-r", "--no-renames", "--diff-filter=A", "--name-only", f"{commit}^", commit).splitlines()
    found = [name for name in added if checkout.place(name)]
    if gone := [name for name in found if checkout.place(name) not in ours]:
        raise Error(f"{git('log', '-1', '--format=%h %s', commit)} brings {gone[0]}, and the series ends without it",
                    f"git rebase, so that no patch brings it, in {git.folder}")
    return found


def table(old, brought):
    """The text of a folder's files, from patch -> names: the old one if it says the same."""
    text = "".join(line for line in re.findall(r"^.*\n", old, re.M) if line.startswith("#"))
    return text + "\n".join(f"{patch}\n" + "".join(f"\t{name}\n" for name in sorted(names))
                            for patch, names in brought.items() if names)


def export_folder(git, checkout, folder, commits, there, ours):
    """What patches/<folder>/ is to have of these commits: name -> content.

    A patch that is there already and still makes the commit stays as it is, whatever lines it says that the hunks
    are at, and whatever context somebody gave them. So one that nobody changed does not change.
    """
    found, brought = {}, {}
    for number, commit in enumerate(commits, 1):
        brings = brought_by(git, checkout, commit, ours) if folder in checkout.folders(SERIES_TIP) else []
        name, mail = mail_of(git, commit, brings)
        patch = there.get(name)
        if patch and head(patch.read_bytes()) == head(mail) and makes(git, patch, commit, brings):
            mail = patch.read_bytes()
        found[f"patches/{folder}/{number:04}-{name}"] = mail
        brought[name] = brings
    source = checkout.patches / folder / "files"
    before = {patch: set(names) for patch, names in listed(folder, checkout.patches).items()}
    if {p: set(n) for p, n in brought.items() if n} == before:
        if source.exists():
            found[f"patches/{folder}/files"] = source.read_bytes()
    else:
        found[f"patches/{folder}/files"] = table(source.read_text() if source.exists() else "", brought).encode()
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


def ours_of(git, checkout):
    """Our files as the series leaves them: where the checkout has them -> content."""
    there = [name for name in git("ls-tree", "-r", "--name-only", SERIES_TIP).splitlines() if checkout.place(name)]
    base = git("ls-tree", "-r", "--name-only", "base").splitlines()
    return {checkout.place(name): git.content(f"{SERIES_TIP}:{name}") for name in sorted(set(there) - set(base))}


def check_leads_back(git, checkout, new, old, exported):
    """What is to be written makes the branches again; and what is not written goes on with it."""
    with tempfile.TemporaryDirectory() as folder:
        would = Checkout(Path(folder, "checkout"), checkout.tips)
        for part in ("patches", *(str(source) for source, _ in OURS)):
            shutil.copytree(checkout.top / part, would.top / part)
        write(would.top, new, old)
        again = Git(Path(folder, "git"))
        (again.folder / ".git/objects/info/alternates").write_text(f"{git.folder}/.git/objects\n")
        again("fetch", "-q", git.folder, "tag", "base")
        again("reset", "-q", "--hard", "base")
        plan = would.plan()
        for tip, _ in checkout.tips:
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


def write(top, new, old):
    """Replaces files by others; returns the names of those that change."""
    changed = []
    for name in sorted(set(new) | set(old)):
        if new.get(name) == old.get(name):
            continue
        changed.append(name)
        file = top / name
        if name in new:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(new[name])
        else:
            file.unlink()
    return changed


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
    now = refs(git)
    # A variant that nobody changed stays as it is, whatever became of the series.
    exported = [tip for tip, _ in checkout.tips if tip == SERIES_TIP or is_on(git, SERIES_TIP, tip)
                or now.get(f"refs/heads/{tip}") != imported.refs[f"refs/heads/{tip}"]]
    there = {NUMBER.sub("", p.name): p for tip in exported for f in checkout.folders(tip)
             for p in patches_of(f, checkout.patches)}
    ours = ours_of(git, checkout)
    new = dict(ours)
    for tip in exported:
        for folder, commits in commits_of(git, checkout, tip).items():
            new |= export_folder(git, checkout, folder, commits, there, ours)
    old = checkout.files(exported)
    for name in sorted(set(new) | set(old)):
        mine = old.get(name)
        if new.get(name) != mine and (digest(mine) if mine is not None else None) != imported.files.get(name):
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
