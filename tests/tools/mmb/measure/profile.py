# SPDX-License-Identifier: GPL-2.0
"""Where a row's instructions go: guest instructions per kernel function, counted by a QEMU plugin.

The kernel is the one that `make evaluate` measures. The plugin counts while the row is timed, that is between one clock
read of who times it and its next (plugin/profile.c): a module, or for reclaim the meter, around try_to_unmap(). A row
that user space times is what is done within a call of the kernel. Two boots differ in the loops alone, or in how often
the workload runs; the difference of their counts, divided by that of their pages or loops, is the row and nothing else.
That its sum is the row's figure is checked. Functions are those of the symbol table, with what is inlined in them.
With SCALE=full the profile is written to report/, for the plot of what a call is made of.
"""

import bisect
import json
import os
import pathlib
import re
import subprocess
from collections import Counter

from ..base.cache import TOP, write_atomically
from ..base.errors import Error
from ..base.process import run
from ..base.tables import text_table
from ..kernel.kbuild import staged_build
from ..guest import payload
from ..guest.boot import MACHINES, kvm, version
from . import rows
from .evaluate import Boots, chosen_rows, configuration, refuse_debug
from .figures import PROFILES
from .report import commit
from .verdict import judged

PLUGIN = pathlib.Path(__file__).with_name("plugin") / "profile.c"
MORE = 3  # times as long is the second boot
TOLERANCE = 0.02
CUT = 0.01
KERNEL = 1 << 63
CLOCK = "ktime_get"
METERED = "try_to_unmap_one"  # what counts its runs for the meter
SYSCALL = {"x86_64": "do_syscall_64", "arm64": "do_el0_svc"}  # what system calls return to


class Symbols:
    def __init__(self, lines):
        """Lines of nm or /proc/kallsyms, in any order; what has no address is left out."""
        by_address, self.where = {}, {}
        for found in filter(None, (re.fullmatch(r"([0-9a-f]+) (\w) (.*?)(\t\[\w+\])?", line) for line in lines)):
            address, kind, name = int(found[1], 16), found[2], found[3]
            self.where[name] = address
            if kind in "tTwW" and not name.startswith(("__pfx_", "__cfi_", ".")):
                # Of several names of one address, a global one that marks no section.
                by_address.setdefault(address, []).append((name.endswith("_start"), kind not in "TW", name))
        self.addresses = sorted(by_address)
        self.names = [min(by_address[a])[-1] for a in self.addresses]

    def name(self, address):
        at = bisect.bisect_right(self.addresses, address) - 1
        # What the compiler moved out of the way belongs to its function.
        return self.names[at].removesuffix(".cold") if at >= 0 else None


class Image(Symbols):
    """The kernel's own symbols, and where its image lies."""

    def __init__(self, lines, arch):
        super().__init__(lines)
        self.start, self.end, self.syscall = self.where["_text"], self.where["_end"], SYSCALL[arch]

    def span(self, name):
        start = self.where[name]
        return start, self.addresses[bisect.bisect_right(self.addresses, start)]

    def window(self, row):
        """What the plugin is to know of when the row is timed.

        What reads the clock for it is in the meter, or in the modules, which is all outside of the image.
        """
        if row.boot.call:
            opens, readers = f"call={self.where[row.boot.call]:x}", [self.span(self.syscall)]
        elif row.boot.reader:
            opens, readers = f"clock={self.where[CLOCK]:x}", [self.span(row.boot.reader)]
        else:
            opens, readers = f"clock={self.where[CLOCK]:x}", [(KERNEL, self.start), (self.end, (1 << 64) - 1)]
        return ",".join([opens, *(f"readers={start:x}-{end:x}" for start, end in readers)])


def functions(dump, image, modules):
    if not dump or dump[-1] != "end":
        raise Error("QEMU wrote no whole profile", "check the disk's free space, then run the same command again")
    found = Counter()
    for line in dump[:-1]:
        pc, _, executed = (int(x, 16) for x in line.split())
        if pc < KERNEL:
            name = "user space"
        elif image.start <= pc < image.end:
            name = image.name(pc) or "?"
        else:
            name = modules.name(pc) or "code of other modules"
        found[name] += executed
    return dict(found)


def per_unit(few, many):
    """{function: instructions per unit}, of two (units, {function: instructions})."""
    units = many[0] - few[0]
    return {name: (many[1].get(name, 0) - few[1].get(name, 0)) / units for name in few[1] | many[1]}


def table(by_mode, figures, unit):
    """Functions by size, cut where they are below CUT in every mode; sums, and the figures they should be."""
    sums = {mode: sum(found.values()) for mode, found in by_mode.items()}
    sizes = {name: [found.get(name, 0) for found in by_mode.values()] for found in by_mode.values() for name in found}
    shown = {name: size for name, size in sorted(sizes.items(), key=lambda item: max(item[1]), reverse=True)
             if max(part / whole for part, whole in zip(size, sums.values())) >= CUT}
    shown[f"the rest, each below {CUT:.0%}"] = [
        sum(found[name] for name in found if name not in shown) for found in by_mode.values()]
    shown |= {"sum": sums.values(), "as make evaluate measures it": [figures[mode] for mode in by_mode]}
    return [[f"instructions per {unit}", *by_mode, ""],
            *([name, *(f"{value:.2f}" for value in values), ""] for name, values in shown.items())]


def problems(by_mode, figures, noise):
    for mode, found in by_mode.items():
        off = sum(found.values()) / figures[mode] - 1
        if abs(off) > TOLERANCE + noise:
            yield f"{mode}: the sum is {off:+.1%} from the row's figure; beyond {TOLERANCE:.0%} it is not the row"


def written(row, by_mode, scale, measured):
    """What report/ has of it then: functions of less than an instruction are no loss."""
    if scale != "full":
        return
    modes = {mode: {name: round(value, 2) for name, value in sorted(found.items()) if value >= 1}
             for mode, found in by_mode.items()}
    data = {"schema": 1, "workload": row.workload, "unit": row.unit, "commit": measured, "modes": modes}
    write_atomically(TOP / PROFILES / f"{row.workload}.json", json.dumps(data, indent=1) + "\n")


def build_plugin(build):
    major = int(version(MACHINES[build.arch][0]).split(".")[0])
    out = build.base.work / f"{build.out.name}-profile/libprofile.so"
    out.parent.mkdir(exist_ok=True)
    part = out.with_name(out.name + ".part")
    # QEMU 9 takes no plugin of interface 1 any more, and QEMU 8 none of 2. What is used is in both.
    run(["cc", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-fvisibility=hidden",
         f"-DPLUGIN_VERSION={1 if major < 9 else 2}", "-o", part, PLUGIN],
        out.with_name(out.name + ".log"), "building the plugin")
    part.replace(out)
    return out


def job(row, mode, longer):
    """The row's command, in as many parts as a run has, each with its units, and what the meter takes of it."""
    command = row.command_for("short", longer)
    name, _, arguments = command.partition(" ")
    part = f"settle\n{command}\necho UNITS $({name}_units {arguments})\n"
    return f"""{row.boot.commands()}
sed -n 's/\\[mm_batch_bench\\]/&/p' /proc/kallsyms | sed 's/^/SYMBOL /'
set_mode {row.path} {mode}
{part * row.parts(longer)}"""


def measure(boots, image, plugin, row, mode, longer):
    """(units, {function: instructions}) of one boot under the plugin."""
    dump = plugin.with_name("blocks")
    dump.unlink(missing_ok=True)
    # QEMU must exit by itself to write the counts, so the guest's end is its power off.
    lines = rows.done(boots.build, plugin.with_name(f"console-{mode}.log"), job(row, mode, longer), boots.modules,
                      boots.programs, finished=None, timeout=900,
                      more=["-plugin", f"{plugin},out={dump},{image.window(row)}"], **rows.guest(row.boot))
    modules = Symbols(line.removeprefix("SYMBOL ") for line in lines if line.startswith("SYMBOL "))
    return without_meter(lines, functions(dump.read_text().splitlines() if dump.exists() else [], image, modules))


def without_meter(lines, found):
    """(units, {function: instructions}), by the job's lines, without what the meter spent on counting runs."""
    counts = [[int(word) for word in line.split()[1:]] for line in lines if line.startswith("UNITS ")]
    own = sum(sum(more) for _, *more in counts)
    return sum(units for units, *_ in counts), found | ({METERED: found[METERED] - own} if own else {})


def chosen():
    """The one row of ROW=, and the modes of MODE=."""
    known = [r for r in rows.ROWS if r.boot.profiled]
    names = ", ".join(r.workload for r in known)
    found = [r for r in known if r.workload == os.environ.get("ROW")] or chosen_rows(known)
    if len(found) != 1:
        raise Error("ROW= must name one row", f"one of {names}")
    mode, modes = os.environ.get("MODE"), rows.modes_of(found[0], configuration())
    if mode and mode not in modes:
        raise Error(f"MODE={mode} is no mode of {found[0].workload}", f"one of {', '.join(modes)}")
    refuse_debug()
    if kvm():
        raise Error("a profile counts instructions, which ACCEL=kvm does not", "leave ACCEL= out")
    return found[0], [mode] if mode else list(modes)[-2:]


def profile(arch, scale):
    row, modes = chosen()
    measured = commit()
    figure_step, boots_step = f"{arch} {row.workload} figure", f"{arch} {row.workload} profile {len(modes)}"
    more = {"plugin": 2, figure_step: 15, boots_step: 25 * len(modes)}
    build, steps = staged_build(arch, "profile", payload.STEP | more)
    modules, programs = payload.modules(build, steps), payload.workloads(build)
    steps.start("plugin", "building the plugin")
    plugin = build_plugin(build)
    nm = subprocess.run(["llvm-nm", "--demangle", build.out / "vmlinux"], capture_output=True, text=True, check=True)
    image = Image(nm.stdout.splitlines(), arch)
    steps.start(figure_step, f"{row.workload} as make evaluate runs it")
    boots = Boots(build, modules, programs, plugin.with_name("figure"), steps)
    line, = boots.run([row], "short", 3, 1)
    steps.start(boots_step, f"booting {2 * len(modes)} times, counting")
    by_mode = {}
    for mode in modes:
        by_mode[mode] = per_unit(*(measure(boots, image, plugin, row, mode, longer) for longer in (1, MORE)))
        steps.progress(len(by_mode) / len(modes), f"{mode} done")
    steps.done()

    print(f"{row.workload}, guest instructions; what is inlined counts for the function that it is in\n")
    figures = {mode: line.median(mode) for mode in modes}
    print(text_table(table(by_mode, figures, row.unit)))
    wrong = list(problems(by_mode, figures, line.noise))
    if not wrong:
        written(row, by_mode, scale, measured)
    return judged(wrong)
