# SPDX-License-Identifier: GPL-2.0
"""The rows of the evaluation, of all paths, and the guest's job that runs them."""

from .path import mib
from .paths import PATHS
from .rootfs import SCRATCH_MIB, scratch_image

ROWS = [row for path in PATHS.values() for row in path.rows]
NOISE_LIMIT = 0.005


def modes_of(row, config):
    """The modes in which a row runs in a configuration."""
    return PATHS[row.path].modes(config)


def runs_of(row, config, runs):
    """The modes of a row's runs, in order: what its noise is taken from is first and last."""
    first, *others = sorted(modes_of(row, config), key=["c", "off", "rust"].index)
    return [first, *others] * runs + [first]


def guest(boot):
    """What boot() gives the guest of a kind of boot."""
    sizes = {"memory": max(2048, 1024 + mib() * 5 // 4),
             "drives": [scratch_image(max(SCRATCH_MIB, mib() * 5 // 4))]} if boot.disk else {}
    # A distribution clears each page that it hands out: 4400 instructions, to TCG, in front of each that is freed.
    arguments = f"quiet loglevel=3 cma=160M init_on_alloc=0 {boot.arguments}".strip()
    return {"arguments": arguments, "cpus": boot.cpus} | sizes


def job(rows, config, scale, runs, longer):
    """The guest's shell script, for rows of one boot; `longer` multiplies the loops, or the parts."""
    lines = [rows[0].boot.commands(), f"parts={rows[0].parts_for(scale, longer)}"]
    for r in rows:
        metrics = ",".join((r.metric, *r.more))
        lines += [f"row {r.path} {r.workload} {mode} {metrics} {r.command_for(scale, longer)}"
                  for mode in runs_of(r, config, runs)]
    return "\n".join(lines) + "\n"
