# SPDX-License-Identifier: GPL-2.0
"""Results: from the guest's lines to results.json, the table, and the verdict."""

import json
import re
import statistics
import subprocess
from itertools import takewhile

from .boot import MACHINES
from .common import TOP
from .kbuild import CONFIG
from .rows import ABOUT, BOOTS, NOISE_LIMIT, ROUND, mib

# Of what a row's figure is a quotient.
UNITS = {"insn_per_page": "page", "insn_per_loop": "loop of test_vmalloc",
         "insn_per_page_ttu": "page in try_to_unmap()"}
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

    def problems(self, icount, limits=True):
        if icount and self.noise > NOISE_LIMIT:
            yield f"{self.row.workload}: noise {self.noise:.2%} is above {NOISE_LIMIT:.1%}; run it with longer loops"
        ratio = self.ratio("rust", "c")
        if icount and limits and self.row.limit and ratio and ratio > self.row.limit + self.noise:
            yield f"{self.row.workload}: Rust/C {ratio:.3f} is above {self.row.limit:.2f} + {self.noise:.2%} noise"
        gain = self.ratio("off", "rust")
        if icount and limits and self.row.gain and gain and gain < self.row.gain:
            yield f"{self.row.workload}: off/Rust {gain:.2f} is below {self.row.gain:.0f}"


def lines_of(rows, values):
    """The rows' lines. A row without each of its metrics in each mode has none: (lines, what is missing)."""
    lines, missing = [], []
    for row in rows:
        found = {metric: values.get((row.path, row.workload, metric), {}) for metric in (row.metric, *row.more)}
        gone = [metric for metric, by_mode in found.items() if set(by_mode) != set(ROUND)]
        missing += [f"{row.workload} has no {metric}" for metric in gone]
        if not gone:
            lines.append(Line(row, found.pop(row.metric), found))
    return lines, missing


HEAD = ["row", "off", "C", "Rust", "Rust/C", "limit", "aim", "off/Rust", "noise", "min..max of Rust", "published"]


def number(value, digits=1):
    return "-" if value is None else f"{value:.{digits}f}"


def table(lines, limits=True):
    """Rows of text, the head first."""
    out = [HEAD]
    for line in lines:
        rust = line.by_mode.get("rust", [])
        out.append([
            line.row.workload,
            *(number(line.median.get(mode)) for mode in ("off", "c", "rust")),
            number(line.ratio("rust", "c"), 3),
            number(line.row.limit if limits else None, 2),
            number(line.row.aim if limits else None, 2),
            number(line.ratio("off", "rust"), 2),
            f"{line.noise:.2%}",
            f"{min(rust):.1f}..{max(rust):.1f}" if rust else "-",
            line.row.published or "-",
        ])
    return out


def more_table(lines):
    """What is measured beside the rows' figures, in millions. Nothing if nothing is."""
    out = [["row, in millions", "metric", "off", "C", "Rust", "Rust/C", "off/Rust"]]
    for line in lines:
        for metric, by_mode in line.more.items():
            whole = Line(line.row, by_mode)
            out.append([line.row.workload, metric,
                        *(number(whole.median[mode] / 1e6, 3) for mode in ("off", "c", "rust")),
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
    qemu = subprocess.run([MACHINES[build.arch][0], "--version"], capture_output=True, text=True).stdout
    rows = []
    for line in lines:
        for metric, by_mode in ({line.row.metric: line.by_mode} | line.more).items():
            rows += [{
                "path": line.row.path, "workload": line.row.workload, "mode": mode, "metric": metric,
                "clock": clock, "cpus": BOOTS[line.row.boot].cpus, "scale": scale, "min": min(values),
                "median": statistics.median(values), "max": max(values), "runs": len(values),
                "published": line.row.published,
            } for mode in ("off", "c", "rust") if (values := by_mode.get(mode))]
    return {
        "schema": 1, "kernel": build.base.version, "arch": build.arch, "commit": measured,
        "configuration": build.named, "reclaim_mib": mib(),
        "toolchain": build.toolchain(), "qemu": re.search(r"\d+\.\d+\.\d+", qemu).group(0),
        "results": rows,
    }


def markdown(build, lines, data, clock, limits=True):
    unit = "guest instructions (QEMU icount)" if clock == "icount" else "nanoseconds of wall time"
    tools = data["toolchain"]
    hooks = [name.lower() for name in ("PAGE_OWNER", "PAGE_POISONING", "PAGE_TABLE_CHECK")
             if build.symbol(f"CONFIG_{name}") == "y"]
    config = data["configuration"]
    what = "the release kernel's." if config == "release" else (
        f"the release kernel's with tests/kernel/config/{config}.config: shown, without limits.\n{about(config)}")
    llvm = "one LLVM" if tools["llvm_match"] else "different LLVMs"
    numa = "on" if build.symbol("CONFIG_NUMA") == "y" else "off"
    several = ", ".join(line.row.workload for line in lines if BOOTS[line.row.boot].cpus > 1)
    paths = "\n\n".join(section(path, [line for line in lines if line.row.path == path], limits)
                        for path in dict.fromkeys(line.row.path for line in lines))
    given = "" if config == "release" else f" CONFIG={config}"
    scale = " SCALE=full" if data["results"][0]["scale"] == "full" else ""
    return f"""<!-- SPDX-License-Identifier: GPL-2.0 -->
# Figures, {build.arch}{given and "," + given}

Linux {build.base.version}, commit {data['commit']}, rustc {tools['rustc']}, clang {tools['clang']}
({llvm}, helpers {'' if tools['inline_helpers'] else 'not '}inlined),
QEMU {data['qemu']}, one CPU{several and f' (two: {several})'}, NUMA {numa}.
The configuration is {what}
Hooks that are compiled in, and off: {', '.join(hooks) or 'none'}.

The unit is {unit}. Every mode of a row ran in one boot, C first and last; the
figures are medians of runs, a run is the mean of its parts, and a row's noise is the spread of all its C runs.
"Published" is the series' own figure, on its own machine, and compares with nothing else here. Written by
`make evaluate{scale}{given}`.

{paths}
"""


def about(config):
    """What the file of a named configuration says of the whole of it: its first comment, without the licence's line."""
    text = (CONFIG / f"{config}.config").read_text().splitlines()[1:]
    return "\n".join(line[2:] for line in takewhile(re.compile(r"# (?!CONFIG_)").match, text))


def section(path, lines, limits):
    """What the report has of a path."""
    more = more_table(lines)
    return "\n\n".join([f"## {path}", ABOUT[path].format(mib=mib()), markdown_table(table(lines, limits)),
                        *([markdown_table(more)] if more else [])])


def to_json(data):
    return json.dumps(data, indent=1) + "\n"
