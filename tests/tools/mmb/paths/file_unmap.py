# SPDX-License-Identifier: GPL-2.0
"""file_unmap: unmapping file, shmem and lazyfree folios in reclaim."""

from dataclasses import replace

from .model import MANY_TASKS, MIB, RECLAIM, KunitBoot, Limits, Path, Row, everywhere, remote

ABOUT = """{mib} MiB of clean pages are mapped and used in a memory cgroup, and 80 % of them reclaimed by
a write to its memory.reclaim. The series' own workload is 10 GiB, 8 of them reclaimed, that is RECLAIM_MIB=10240. A
row has folios of the size in its name, at least 95 % of the pages, or it fails; with -pte they are mapped by PTEs
where a PMD could. lazyfree-2m is mapped by PMDs, each of which is split in try_to_unmap(), since 7.3.

The figures are per page in try_to_unmap(), by the meter (patches/meter), its own cost subtracted: rmap walk,
unmapping and flushing, but no other part of reclaim. `insn_total`, in the second table, is the whole write to
memory.reclaim, in millions, with what the meter costs.

`off` is one PTE at a time, `{head}` {c}, both with the fixes that come first in this series;
`Rust` is this project's. A folio of one page never enters Rust, in no mode: ext4-4k shows what the others pay. One
CPU flushes at once, in try_to_unmap(); in ext4-64k-2cpu another one has run in the same mm, and the flush is deferred
to what the figure does not have in it. In ext4-64k-100tasks so many tasks map each page, of 8 MiB. In ext4-64k-mixed
every second page was written to through its mapping and written back: it is soft-dirty, which ends a run of the
kernel's own C. C could go on there as well (patches/better_c/)."""

RECLAIM_2CPU = replace(RECLAIM, name="reclaim-2cpu", cpus=2)
# Rust/C at most.
SAME = everywhere(1.02)


def reclaim(workload, kind, kib, boot=RECLAIM, more="", mib="{mib}", **kw):
    command = f"reclaim {kind} {kib} {mib} {'2cpu' if boot.cpus == 2 else more}".rstrip()
    return Row(workload, command, "insn_per_page_ttu", "page in try_to_unmap()", boot, SAME, more=("insn_total",), **kw)


PATH = Path(
    name="file_unmap",
    about=ABOUT,
    rows=(
        reclaim("ext4-4k", "file", 4),
        reclaim("ext4-16k", "file", 16),
        reclaim("ext4-64k", "file", 64, gains=everywhere(4),
                published="1.018 -> 0.249 s"),
        reclaim("ext4-64k-mixed", "file-mixed", 64),
        reclaim("ext4-2m-pte", "file-pte", 2048),
        reclaim("shmem-64k", "shmem", 64),
        reclaim("lazyfree-64k", "lazyfree", 64),
        reclaim("lazyfree-2m", "lazyfree", 2048),
        reclaim("lazyfree-2m-pte", "lazyfree-pte", 2048),
        reclaim("ext4-64k-100tasks", "file", 64, more="100tasks", mib=8, not_above=MANY_TASKS),
        reclaim("ext4-64k-300tasks", "file", 64, more="300tasks", mib=8, not_above=MANY_TASKS),
        reclaim("ext4-64k-2cpu", "file", 64, boot=RECLAIM_2CPU),
    ),
    timed=tuple(remote(f"{name}-{kib}k", kind, kib, how="reclaim", counted=counted, metric=counted and "insn_total",
                       pages=MIB * 256 * 4 // 5)
                for name, kind, kib, counted in (("ext4", "file", 4, "ext4-4k"), ("ext4", "file", 16, "ext4-16k"),
                                                 ("ext4", "file", 64, "ext4-64k"), ("shmem", "shmem", 64, None))),
    suites=("mm_batch_pte_run", "mm_batch_folio_pte_batch", "mm_batch_file_unmap", "mm_batch_file_unmap_as_c"),
    uml_lacks=("mm_batch_file_unmap", "mm_batch_file_unmap_as_c"),  # no large folios
    boot_needs="thp_anon={large}:always thp_shmem={large}:always",
    # x86 puts a flush off only if another CPU has the mm.
    conditions={"mm_batch_file_unmap.test_deferred_flush": "2cpu"},
    kunit_boots=tuple(KunitBoot("kunit-2cpu", flavour, on=frozenset({"2cpu"}), cpus=2, only="mm_batch_file_unmap")
                      for flavour in ("release", "debug")),
    twin="the kernel's batch with what it can have of these gains (patches/better_c/)",
)
