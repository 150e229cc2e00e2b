# SPDX-License-Identifier: GPL-2.0
"""The rows of the evaluation, of all paths, and the guest's job that runs them."""

from dataclasses import replace

from ..paths import PATHS
from ..paths.model import NONE, mib
from ..guest.boot import THREADS_ARCH
from ..guest.rootfs import SCRATCH_MIB, scratch_image

ROWS = [row for path in PATHS.values() for row in path.rows]
NOISE_LIMIT = 0.005
# Of runs of a row that counts, off and rust in turn.
PAIRS = 5
# What says of a CPU that it was told to flush is x86's.
# Whose figures the limits are of.
LIMITS_ARCH = "x86_64"


def shown(row):
    """The row without limits."""
    return replace(row, limits=NONE, not_above=NONE, gains=NONE, more_gains={}, aim=None)


def known(arch, scale):
    """The rows that there are on an architecture, at a scale."""
    found = [row for row in ROWS if (scale == "full" or not row.full_only)
             and (arch == THREADS_ARCH or not row.boot.threads)]
    return found if arch == LIMITS_ARCH else [shown(row) for row in found]


def modes_of(row, config):
    """The modes in which a row runs in a configuration."""
    return ("off", "rust") if row.counts else PATHS[row.path].modes(config)


def runs_of(row, config, runs):
    """The modes of a row's runs, in order: what its noise is taken from is first and last."""
    if row.counts:
        return [*modes_of(row, config)] * PAIRS
    first, *others = sorted(modes_of(row, config), key=["c", "off", "rust"].index)
    return [first, *others] * runs + [first]


def guest(boot):
    """What boot() gives the guest of a kind of boot."""
    sizes = {"memory": max(2048, 1024 + boot.maps() * 5 // 4)} if boot.maps() else {}
    if boot.disk:
        sizes["drives"] = [scratch_image(max(SCRATCH_MIB, mib() * 5 // 4))]
    # A distribution clears each page that it hands out: 4400 instructions, to TCG, in front of each that is freed.
    arguments = f"quiet loglevel=3 cma=160M init_on_alloc=0 {boot.arguments}".strip()
    return {"arguments": arguments, "cpus": boot.cpus, "threads": boot.threads} | sizes


def job(rows, config, scale, runs, longer):
    """The guest's shell script, for rows of one boot; `longer` multiplies the loops, or the parts."""
    first = rows[0]
    lines = [first.boot.commands(), f"parts={first.parts_for(scale, longer)}"]
    # A guest that has just booted has free lists that no later run finds: the first run would count as noise.
    lines += [f"set_mode {first.path} {mode} && settle && {first.command_for(scale, longer)}"
              for mode in modes_of(first, config)] if first.boot.loops else []
    for r in rows:
        metrics = ",".join((r.metric, *r.more))
        what = "count" if r.counts else "row"
        lines += [f"{what} {r.path} {r.workload} {mode} {metrics} {r.command_for(scale, longer)}"
                  for mode in runs_of(r, config, runs)]
        lines += [r.filled(r.after, scale)] if r.after else []
    return "\n".join(lines) + "\n"
