# SPDX-License-Identifier: GPL-2.0
"""The rows of the evaluation, of all paths, and the guest that runs them."""

from dataclasses import replace

from ..base.errors import Error, say
from ..paths import PATHS
from ..paths.model import NONE, mib
from ..guest import initrd
from ..guest.boot import THREADS_ARCH, boot
from ..guest.rootfs import SCRATCH_MIB, scratch_image

ROWS = [row for path in PATHS.values() for row in path.rows]
NOISE_LIMIT = 0.005
# Of runs of a row that counts, off and rust in turn.
PAIRS = 5
# What the kernel counts for a row only if an option is set: as of /proc/vmstat, which has no such line otherwise.
COUNTED_BY = {"interrupts_per_page": "CONFIG_DEBUG_TLBFLUSH"}
# Whose figures the limits are of that are neither against C nor against off.
LIMITS_ARCH = "x86_64"


def known(arch, scale):
    """The rows that there are on an architecture, at a scale; with limits against C and off, and all others if they are
    of it.
    """
    found = [row for row in ROWS if (scale == "full" or not row.full_only)
             and (arch == THREADS_ARCH or not row.boot.threads)]
    return found if arch == LIMITS_ARCH else [
        replace(row, not_above=NONE if row.x86_alone else row.not_above, gains=NONE, more_gains={}, aim=None)
        for row in found]


def countable(build, selected):
    """Those of these rows for which the kernel counts what they count; says which it does not."""
    lacks = {metric: symbol for metric, symbol in COUNTED_BY.items() if build.symbol(symbol) != "y"}
    left_out = [row for row in selected if any(counter.metric in lacks for counter in row.counters)]
    if left_out:
        why = f"{', '.join(lacks.values())} is not set: {', '.join(row.workload for row in left_out)}"
        if left_out == selected:
            raise Error(f"no row is left, as {why}", "choose others by ROW=")
        say(f"  left out, as {why}")
    return [row for row in selected if row not in left_out]


def modes_of(row, config):
    return ("off", "rust") if row.counts else PATHS[row.path].modes(config)


def runs_of(row, config, runs):
    """The modes of a row's runs, in order: what its noise is taken from is first and last."""
    if row.counts:
        return [*modes_of(row, config)] * PAIRS
    first, *others = sorted(modes_of(row, config), key=["c", "off", "rust"].index)
    return [first, *others] * runs + [first]


def guest(kind):
    """What boot() gives the guest of a kind of boot."""
    # A distribution clears each page that it hands out: 4400 instructions, to TCG, in front of each that is freed.
    arguments = f"quiet loglevel=3 cma=160M init_on_alloc=0 {kind.arguments}".strip()
    drives = {"drives": [scratch_image(max(SCRATCH_MIB, mib() * 5 // 4))]} if kind.disk else {}
    return {"arguments": arguments, "cpus": kind.cpus, "threads": kind.threads,
            "memory": max(2048, 1024 + kind.maps() * 5 // 4)} | drives


def job(rows, config, scale, runs, longer):
    """The guest's shell script, for rows of one boot; `longer` multiplies the loops, or the parts."""
    first = rows[0]
    lines = [first.boot.commands(), f"parts={first.parts(longer)}", "remember_modes"]
    # A guest that has just booted has free lists that no later run finds: the first run would count as noise.
    lines += [f"set_mode {first.path} {mode} && settle && {first.command_for(scale, longer)}"
              for mode in modes_of(first, config)] if first.boot.loops else []
    path = None
    for row in rows:
        lines += ["default_modes"] if row.path != path else []
        path, what, metrics = row.path, "count" if row.counts else "row", ",".join((row.metric, *row.more))
        lines += [f"{what} {row.path} {row.workload} {mode} {metrics} {row.command_for(scale, longer)}"
                  for mode in runs_of(row, config, runs)]
        lines += [row.filled(row.after, scale)] if row.after else []
    return "\n".join(lines) + "\n"


def done(build, console, job, modules=(), programs=(), debian=(), finished=initrd.ENDED, **how):
    """Boots to a job, which must come to its end: the lines of the console."""
    archive = initrd.archive(console.parent, job, modules, programs, build.arch, debian)
    ended = boot(build, initrd=archive, log=console, finished=finished, **how)
    if failed := initrd.failure(ended):
        raise Error(failed[1], f"the console is in {console}", failed[0])
    return ended.lines
