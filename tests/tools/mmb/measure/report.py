# SPDX-License-Identifier: GPL-2.0
"""What is made of rows' figures: results.json, the report, and the tables of the console."""

import re
import statistics
import subprocess
from itertools import groupby, takewhile
from textwrap import fill

from ..base.cache import TOP
from ..base.tables import markdown_table, number, text_table
from ..paths import PATHS
from ..paths.model import ANON_MIB, mib, stress_mib
from ..kernel.kbuild import CONFIG
from ..guest.boot import MACHINES, emulator, version
from . import stack
from .verdict import percent, plain

MODES = ("off", "c", "rust")
# What the report says of rows that count.
COUNTED = """Rows in a table of their own count events, off and rust in turn; their figures are medians, and "worst pair" is the
worst change between two runs that followed each other. Those of flushes and interrupts are of a boot with a host
thread per CPU (QEMU {qemu}). What is to be less by some % is judged with SCALE=full alone.
"""


def tables(lines, config):
    """The tables of a path, each as rows of text with the head first: rows, in millions what is measured beside them,
    and rows that count."""
    c = PATHS[lines[0].row.path].head(config)
    modes = ["off", c, "Rust", f"Rust/{c}"]
    timed = [["row", *modes, "limit", "aim", "off/Rust", "noise", "min..max of Rust", "published"]]
    more = [["row, in millions", "metric", *modes, "off/Rust"]]
    counted = [["row", "metric", "off", "min..max", "Rust", "min..max", "change", "worst pair", "limit", "aim"]]
    for line in lines:
        row = line.row
        counted += [[row.workload, *counts(line, counter, config)] for counter in row.counters]
        if row.counts:
            continue
        rust = line.values[row.metric].get("rust")
        timed.append([
            row.workload,
            *(number(line.median(mode)) for mode in MODES),
            number(line.ratio("rust", "c"), 3),
            number(getattr(row.limits, config), 2),
            number(row.aim if config == "release" else None, 2),
            number(line.ratio("off", "rust"), 2),
            f"{line.noise:.2%}",
            f"{min(rust):.1f}..{max(rust):.1f}" if rust else "-",
            row.published or "-",
        ])
        for metric in row.more:
            medians = [line.median(mode, metric) for mode in MODES]
            more.append([row.workload, metric, *(number(value and value / 1e6, 3) for value in medians),
                         number(line.ratio("rust", "c", metric), 3), number(line.ratio("off", "rust", metric), 2)])
    return [table for table in (timed, more, counted) if len(table) > 1]


def counts(line, counter, config):
    """What the table has of a counter of a row."""
    metric, at_most, less = counter.metric, getattr(counter.at_most, config), getattr(counter.less, config)
    limits = [f"<= {plain(at_most)}"] if at_most is not None else []
    limits += [f"-{less:g} %"] if less is not None else []
    not_above = getattr(counter.not_above, config)
    limits += [f"<= {not_above:.2f} of off"] if not_above is not None else []
    figures = []
    for mode in ("off", "rust"):
        values = line.values[metric][mode]
        figures += [plain(line.median(mode, metric)), f"{plain(min(values))}..{plain(max(values))}"]
    return [metric, *figures, percent(line.change(metric)), percent(line.worst_pair(metric)), ", ".join(limits) or "-",
            f"-{counter.aim:g} %" if counter.aim else "-"]


def commit():
    """What was measured: HEAD, with a mark if the work tree differs."""
    def git(*args):
        return subprocess.run(["git", "-C", TOP, *args], capture_output=True, text=True).stdout.strip()

    changed = git("status", "--porcelain", "--", "rust", "patches", "tests")
    return (git("rev-parse", "HEAD") or "unknown") + ("-dirty" if changed else "")


def notes_of(lines):
    return [f"{line.row.workload}: {note}" for line in lines for note in line.notes]


def results(build, measured, lines, scale, clock):
    """The content of results.json; `measured` is the commit."""
    threads = any(line.row.boot.threads for line in lines)
    found = [(line.row, metric, mode, by_mode[mode]) for line in lines for metric, by_mode in line.values.items()
             for mode in MODES if mode in by_mode]
    return {
        "schema": 1, "kernel": build.base.version, "arch": build.arch, "commit": measured,
        "configuration": build.named, "reclaim_mib": mib(), "stress_mib": stress_mib(),
        "toolchain": build.toolchain(), "qemu": version(MACHINES[build.arch][0]),
        "qemu_threads": version(emulator(build.arch, threads=True)) if threads else None,
        "results": [{
            "path": row.path, "workload": row.workload, "mode": mode, "metric": metric,
            "clock": "counter" if row.counts else clock, "cpus": row.boot.cpus, "scale": scale,
            "min": min(values), "median": statistics.median(values), "max": max(values), "runs": len(values),
            "published": row.published,
        } for row, metric, mode, values in found],
        "notes": notes_of(lines),
    }


def markdown(build, lines, data, clock):
    unit = "guest instructions (QEMU icount)" if clock == "icount" else "nanoseconds of wall time"
    tools, config = data["toolchain"], data["configuration"]
    hooks = [name.lower() for name in ("PAGE_OWNER", "PAGE_POISONING", "PAGE_TABLE_CHECK")
             if build.symbol(f"CONFIG_{name}") == "y"]
    what = "the release kernel's." if config == "release" else (
        f"the release kernel's with tests/kernel/config/{config}.config.\n{about(config)}")
    compiler = f"gcc {tools['gcc']}" if tools["gcc"] else f"clang {tools['clang']}"
    llvms = "no LLVM for C" if tools["gcc"] else "one LLVM" if tools["llvm_match"] else "different LLVMs"
    numa = "on" if build.symbol("CONFIG_NUMA") == "y" else "off"
    several = ", ".join(line.row.workload for line in lines if line.row.boot.cpus > 1 and not line.row.counts)
    given = "" if config == "release" else f" CONFIG={config}"
    arch = "" if build.arch == "x86_64" else f" ARCH={build.arch}"
    counted = COUNTED.format(qemu=data["qemu_threads"]) if data["qemu_threads"] else ""
    scale = " SCALE=full" if data["results"][0]["scale"] == "full" else ""
    paths = "\n\n".join(section(path, some, config) for path, some in by_path(lines))
    frames = fill(stack.said(data["stack"]), 120) + "\n" if data.get("stack") else ""
    return f"""<!-- SPDX-License-Identifier: GPL-2.0 -->
# Figures, {build.arch}{given and "," + given}

Linux {build.base.version}, commit {data['commit']}, rustc {tools['rustc']}, {compiler}
({llvms}, helpers {'' if tools['inline_helpers'] else 'not '}inlined),
QEMU {data['qemu']}, one CPU{several and f' (two: {several})'}, NUMA {numa}.
The configuration is {what}
Hooks that are compiled in, and off: {', '.join(hooks) or 'none'}.

The unit is {unit}. Every mode of a row ran in one boot, C first and last; the
figures are medians of runs, a run is the mean of its parts, and a row's noise is the spread of all its C runs.
A row without a limit is shown only.
{counted}{frames}"Published" is the series' own figure, on its own machine, and compares with nothing else here. Written by
`make evaluate{arch}{scale}{given}`.

{paths}
"""


def about(config):
    """What the file of a named configuration says of the whole of it: its first comment, without the licence's line."""
    text = (CONFIG / f"{config}.config").read_text().splitlines()[1:]
    return "\n".join(line[2:] for line in takewhile(re.compile(r"# (?!CONFIG_)").match, text))


def by_path(lines):
    return [(path, list(some)) for path, some in groupby(lines, lambda line: line.row.path)]


def section(name, lines, config):
    path = PATHS[name]
    text = path.about.format(mib=mib(), anon_mib=ANON_MIB, stress_mib=stress_mib(), head=path.head(config),
                             c=path.what_c_is(config))
    parts = [f"## {name}", text, *map(markdown_table, tables(lines, config))]
    return "\n\n".join(filter(None, [*parts, "\n".join(f"* {note}" for note in notes_of(lines))]))


def console(lines, config):
    """The tables alone, and what was said beside."""
    parts = [text_table(table) for _, some in by_path(lines) for table in tables(some, config)]
    return "\n\n".join(filter(None, [*parts, "\n".join(notes_of(lines))]))
