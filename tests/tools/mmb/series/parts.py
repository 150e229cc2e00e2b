# SPDX-License-Identifier: GPL-2.0
"""What can be sent without the rest of the series: the parts that make series PART= writes, each with its letter."""

from dataclasses import dataclass, field
from itertools import takewhile

from ..kernel.tree import SERIES, patches_of, unnumbered


@dataclass(frozen=True)
class Part:
    """The folder of the letter, the patches that are sent, and what must be there before, which the letter names."""

    letter: str
    own: list
    below: list = field(default_factory=list)


def alone(folder):
    """A folder that needs nothing else."""
    return Part(folder, patches_of(folder))


def of_fixes(*beginnings):
    """Some of the fixes, by how their names begin."""
    return [patch for patch in patches_of("fixes") if unnumbered(patch).startswith(beginnings)]


def twin(path, *folders, below=()):
    """What is C's alone of a path, and its twin."""
    own = takewhile(lambda patch: "mm_batch/" not in patch.read_text(), patches_of(path))
    return Part(folders[0], [*own, *(patch for folder in folders for patch in patches_of(folder))], list(below))


def on_the_others(path):
    """A path, on what is before it in the series."""
    before = SERIES[:SERIES.index(path)]
    return Part(path, patches_of(path), [patch for folder in before for patch in patches_of(folder)])


# Name -> what makes it. The fixes below anon_unmap_c see to it that PTEs of a run come back as they were.
PARTS = {
    "fixes": lambda: alone("fixes"),
    "selftests": lambda: Part("fixes/selftests", of_fixes("selftests-")),
    "reclaim_c": lambda: alone("reclaim_c"),
    "better_c": lambda: alone("better_c"),
    "contig_free_c": lambda: twin("contig_free", "contig_free_c"),
    "anon_unmap_c": lambda: twin("anon_unmap", "anon_unmap_c", "anon_unmap_c/plain", below=of_fixes(
        "mm-do-not-make-PTEs-soft-dirty", "mm-rmap-flush-before-the-PTEs-of-a-lazyfree", "mm-change-and-unmap-the-PTEs-of")),
    "folio_batch": lambda: on_the_others("folio_batch"),
}
