# SPDX-License-Identifier: GPL-2.0
"""Results: from the guest's lines to results.json, the table, and the verdict."""

import json
import re
import statistics
import subprocess
from itertools import takewhile

from ..base.cache import TOP
from ..paths import PATHS
from ..paths.model import mib, stress_mib
from ..kernel.kbuild import CONFIG
from ..guest.boot import MACHINES, emulator, version
from . import events
from .rows import NOISE_LIMIT, modes_of

RESULT = re.compile(r"RESULT (\S+) (\S+) (\S+) (\S+) ([\d.]+)$")


def collect(lines):
    """{(path, workload, metric): {mode: [values]}} in the order of the runs."""
    values = {}
    for line in lines:
        found = RESULT.search(line)
        if found:
            path, workload, mode, metric, value = found.groups()
            values.setdefault((path, workload, metric), {}).setdefault(mode, []).append(float(value))
    return values


def spread(values):
    """The spread of runs of one mode, relative to their median."""
    return (max(values) - min(values)) / statistics.median(values)


class Line:
    """One row of the table."""

    def __init__(self, row, by_mode, more=None):
        self.row = row
        self.by_mode = by_mode
        self.more = more or {}  # metric -> the same
        self.median = {mode: statistics.median(v) for mode, v in by_mode.items()}
        self.noise = spread(by_mode["c"] if "c" in by_mode else by_mode["off"])

    def ratio(self, over, under):
        if over in self.median and under in self.median:
            return self.median[over] / self.median[under]
        return None

    def problems(self, icount, config="release"):
        """What is not met, by the limits of a configuration; no limit is for wall time."""
        if icount and self.noise > NOISE_LIMIT:
            yield f"{self.row.workload}: noise {self.noise:.2%} is above {NOISE_LIMIT:.1%}; run it with longer loops"
        ratio, limit = self.ratio("rust", "c"), self.row.limit(config)
        if icount and limit and ratio and ratio > limit + self.noise:
            head = PATHS[self.row.path].head(config)
            yield f"{self.row.workload}: Rust/{head} {ratio:.3f} is above {limit:.2f} + {self.noise:.2%} noise"
        ratio, limit = self.ratio("rust", "off"), getattr(self.row.not_above, config)
        if icount and limit and ratio and ratio > limit + self.noise:
            yield f"{self.row.workload}: Rust/off {ratio:.3f} is above {limit:.2f} + {self.noise:.2%} noise"
        whole = {metric: Line(self.row, by_mode) for metric, by_mode in self.more.items()}
        for metric, line, gains in [("", self, self.row.gains)] + [
                (f" of {metric}", whole[metric], gains) for metric, gains in self.row.more_gains.items()]:
            ratio, gain = line.ratio("off", "rust"), getattr(gains, config)
            if icount and gain and ratio and ratio < gain:
                yield f"{self.row.workload}: off/Rust{metric} {ratio:.2f} is below {gain:g}"


def lines_of(rows, values, config, scale="full", notes=None):
    """The rows' lines. A row without each of its metrics in each mode has none: (lines, what is missing)."""
    lines, missing = [], []
    for row in rows:
        found = {metric: values.get((row.path, row.workload, metric), {}) for metric in (row.metric, *row.more)}
        gone = [metric for metric, by_mode in found.items() if set(by_mode) != set(modes_of(row, config))]
        missing += [f"{row.workload} has no {metric}" for metric in gone]
        if gone:
            continue
        if row.counts:
            beside = (notes or {}).get((row.path, row.workload), [])
            lines.append(events.Line(row, found.pop(row.metric), found, scale, beside))
        else:
            lines.append(Line(row, found.pop(row.metric), found))
    return lines, missing


def number(value, digits=1):
    return "-" if value is None else f"{value:.{digits}f}"


def table(lines, config="release"):
    """Rows of text, the head first; of one path."""
    c = PATHS[lines[0].row.path].head(config)
    out = [["row", "off", c, "Rust", f"Rust/{c}", "limit", "aim", "off/Rust", "noise", "min..max of Rust", "published"]]
    for line in lines:
        rust = line.by_mode.get("rust", [])
        out.append([
            line.row.workload,
            *(number(line.median.get(mode)) for mode in ("off", "c", "rust")),
            number(line.ratio("rust", "c"), 3),
            number(line.row.limit(config), 2),
            number(line.row.aim if config == "release" else None, 2),
            number(line.ratio("off", "rust"), 2),
            f"{line.noise:.2%}",
            f"{min(rust):.1f}..{max(rust):.1f}" if rust else "-",
            line.row.published or "-",
        ])
    return out


def more_table(lines, config="release"):
    """What is measured beside the rows' figures, in millions. Nothing if nothing is."""
    c = PATHS[lines[0].row.path].head(config)
    out = [["row, in millions", "metric", "off", c, "Rust", f"Rust/{c}", "off/Rust"]]
    for line in lines:
        for metric, by_mode in line.more.items():
            whole = Line(line.row, by_mode)
            out.append([line.row.workload, metric,
                        *(number(whole.median[mode] / 1e6 if mode in whole.median else None, 3)
                          for mode in ("off", "c", "rust")),
                        number(whole.ratio("rust", "c"), 3), number(whole.ratio("off", "rust"), 2)])
    return out if len(out) > 1 else []


def text_table(rows):
    widths = [max(len(r[i]) for r in rows) for i in range(len(rows[0]))]
    return "\n".join("  ".join(c.ljust(w) if i in (0, len(r) - 1) else c.rjust(w)
                               for i, (c, w) in enumerate(zip(r, widths))).rstrip() for r in rows)


def markdown_table(rows):
    head, *body = ["| " + " | ".join(r) + " |" for r in rows]
    return "\n".join([head, "|" + "---|" * len(rows[0]), *body])


def commit():
    """What was measured: HEAD, with a mark if the work tree differs."""
    def git(*args):
        return subprocess.run(["git", "-C", TOP, *args], capture_output=True, text=True).stdout.strip()

    changed = git("status", "--porcelain", "--", "rust", "patches", "tests")
    return (git("rev-parse", "HEAD") or "unknown") + ("-dirty" if changed else "")


def results(build, measured, lines, scale, clock):
    """The content of results.json; `measured` is the commit."""
    threads = any(line.row.boot.threads for line in lines)
    rows = []
    for line in lines:
        kind = "counter" if line.row.counts else clock
        for metric, by_mode in ({line.row.metric: line.by_mode} | line.more).items():
            rows += [{
                "path": line.row.path, "workload": line.row.workload, "mode": mode, "metric": metric,
                "clock": kind, "cpus": line.row.boot.cpus, "scale": scale, "min": min(values),
                "median": statistics.median(values), "max": max(values), "runs": len(values),
                "published": line.row.published,
            } for mode in ("off", "c", "rust") if (values := by_mode.get(mode))]
    return {
        "schema": 1, "kernel": build.base.version, "arch": build.arch, "commit": measured,
        "configuration": build.named, "reclaim_mib": mib(), "stress_mib": stress_mib(),
        "toolchain": build.toolchain(), "qemu": version(MACHINES[build.arch][0]),
        "qemu_threads": version(emulator(build.arch, threads=True)) if threads else None,
        "results": rows, "notes": events.notes_of([line for line in lines if line.row.counts]),
    }


def markdown(build, lines, data, clock):
    unit = "guest instructions (QEMU icount)" if clock == "icount" else "nanoseconds of wall time"
    tools = data["toolchain"]
    hooks = [name.lower() for name in ("PAGE_OWNER", "PAGE_POISONING", "PAGE_TABLE_CHECK")
             if build.symbol(f"CONFIG_{name}") == "y"]
    config = data["configuration"]
    what = "the release kernel's." if config == "release" else (
        f"the release kernel's with tests/kernel/config/{config}.config.\n{about(config)}")
    compiler = f"gcc {tools['gcc']}" if tools["gcc"] else f"clang {tools['clang']}"
    llvm = "no LLVM for C" if tools["gcc"] else "one LLVM" if tools["llvm_match"] else "different LLVMs"
    numa = "on" if build.symbol("CONFIG_NUMA") == "y" else "off"
    several = ", ".join(line.row.workload for line in lines if line.row.boot.cpus > 1 and not line.row.counts)
    paths = "\n\n".join(section(path, some, config) for path, some in by_path(lines).items())
    given = "" if config == "release" else f" CONFIG={config}"
    arch = "" if build.arch == "x86_64" else f" ARCH={build.arch}"
    counted = COUNTED.format(qemu=data["qemu_threads"]) if data["qemu_threads"] else ""
    scale = " SCALE=full" if data["results"][0]["scale"] == "full" else ""
    return f"""<!-- SPDX-License-Identifier: GPL-2.0 -->
# Figures, {build.arch}{given and "," + given}

Linux {build.base.version}, commit {data['commit']}, rustc {tools['rustc']}, {compiler}
({llvm}, helpers {'' if tools['inline_helpers'] else 'not '}inlined),
QEMU {data['qemu']}, one CPU{several and f' (two: {several})'}, NUMA {numa}.
The configuration is {what}
Hooks that are compiled in, and off: {', '.join(hooks) or 'none'}.

The unit is {unit}. Every mode of a row ran in one boot, C first and last; the
figures are medians of runs, a run is the mean of its parts, and a row's noise is the spread of all its C runs.
A row without a limit is shown only.
{counted}"Published" is the series' own figure, on its own machine, and compares with nothing else here. Written by
`make evaluate{arch}{scale}{given}`.

{paths}
"""


# What the report says of rows that count.
COUNTED = """Rows in a table of their own count events, in a boot with a host thread per CPU (QEMU {qemu}), off and rust in
turn; their figures are medians, and "worst pair" is the worst change between two runs that followed each other. What
is to be less by some % is judged with SCALE=full alone.
"""


def about(config):
    """What the file of a named configuration says of the whole of it: its first comment, without the licence's line."""
    text = (CONFIG / f"{config}.config").read_text().splitlines()[1:]
    return "\n".join(line[2:] for line in takewhile(re.compile(r"# (?!CONFIG_)").match, text))


def by_path(lines):
    """Path -> its lines."""
    return {path: [line for line in lines if line.row.path == path]
            for path in dict.fromkeys(line.row.path for line in lines)}


def section(name, lines, config):
    """What the report has of a path."""
    path = PATHS[name]
    text = path.about.format(mib=mib(), stress_mib=stress_mib(), head=path.head(config), c=path.what_c_is(config))
    notes = events.notes_of([line for line in lines if line.row.counts])
    return "\n\n".join([f"## {name}", text, *map(markdown_table, tables(lines, config)),
                        *(["\n".join(f"* {note}" for note in notes)] if notes else [])])


def tables(lines, config):
    """The tables of a path: rows, what is measured beside them, and rows that count."""
    counted = [line for line in lines if line.row.counts]
    timed = [line for line in lines if not line.row.counts]
    found = [table(timed, config), more_table(timed, config)] if timed else []
    return [t for t in (*found, events.table(counted, config)) if t]


def console(lines, config):
    """The tables alone, and what was said beside."""
    parts = [text_table(t) for some in by_path(lines).values() for t in tables(some, config)]
    notes = events.notes_of([line for line in lines if line.row.counts])
    return "\n\n".join([*parts, *(["\n".join(notes)] if notes else [])])


def to_json(data):
    return json.dumps(data, indent=1) + "\n"
