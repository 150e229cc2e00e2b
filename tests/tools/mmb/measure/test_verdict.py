# SPDX-License-Identifier: GPL-2.0
"""What is made of rows' figures: whether they meet their limits, and what the tables and the report say."""

import dataclasses
import unittest
from unittest import mock

from mmb import paths
from mmb.paths import file_unmap, model
from mmb.measure import report, rows, verdict

LIMITS = model.Limits(release=0.75, distro=0.90, noinline=None, better_c=0.60)
GAINS = model.Limits(release=4, distro=None, noinline=None, better_c=None)
ROW = model.Row("w", "", "m", "page", file_unmap.RECLAIM, LIMITS, GAINS, more=("n",), path="file_unmap")

BOOT = model.Boot("b", "stress.sh", cpus=4, loops=False, threads=True, profiled=False, workers=4)
COUNTERS = (
    model.Counter("rate", at_most=model.Limits(release=0.5, distro=None, noinline=0.1, better_c=None)),
    model.Counter("flushes", less=model.Limits(release=70, distro=None, noinline=None, better_c=60), aim=80),
    model.Counter("oom_kills", not_above=model.Limits(release=1, distro=None, noinline=1, better_c=1)),
    model.Counter("scanned", not_above=model.everywhere(1.1), least=0.5),
)
COUNTING = dataclasses.replace(model.counting("w", "stress 4 gen {stolen}", "page", BOOT, COUNTERS,
                                              after="batches 4 gen {stolen}"), path="dirty_flush")


def console(**by_mode):
    """What a boot prints: of each mode, the values of m; those of n are ten times as large."""
    return [line for mode, values in by_mode.items() for value in values for line in (
        f"RESULT file_unmap w {mode} m {value:.3f}", "words", f"RESULT file_unmap w {mode} n {10 * value:.3f}")]


def counted(rate=(0.4,) * 5, off=(100, 110, 90, 100, 100), rust=(29, 35, 25, 28, 31), scale="full", notes=(),
            kills=(0, 0, 1, 0, 0), scanned=((2.0, 2.0, 2.1, 1.9, 2.0), (2.2, 2.1, 9.0, 2.2, 2.2))):
    return verdict.Line(COUNTING, {"rate": {"off": [1.0] * 5, "rust": list(rate)},
                                   "flushes": {"off": list(off), "rust": list(rust)},
                                   "oom_kills": {"off": [0] * 5, "rust": list(kills)},
                                   "scanned": dict(zip(("off", "rust"), map(list, scanned)))}, scale, notes)


def lines(of=rows.ROWS):
    """Lines of rows, all with the same figures."""
    values = {"c": [100e6, 102e6], "off": [500e6], "rust": [70e6]}
    return [verdict.Line(row, dict.fromkeys((row.metric, *row.more), values)) for row in of]


def written(some, config="release", scale="short", gcc=None, arch="x86_64"):
    """results.json and the report."""
    build = mock.Mock(arch=arch, named=config)
    build.base.version = "7.3.0"
    build.symbol.return_value = "y"
    build.toolchain.return_value = {"rustc": "1", "clang": "2", "gcc": gcc} | dict.fromkeys(
        ("llvm_match", "inline_helpers"), not gcc)
    with mock.patch.object(report, "version", lambda program: program), \
            mock.patch.object(report, "emulator", lambda _arch, threads: f"threads {threads}"):
        data = report.results(build, "commit", some, scale, "icount")
    return data, report.markdown(build, some, data, "icount")


class Timed(unittest.TestCase):
    def problems(self, off=(1000,), config="release", **by_mode):
        (line,), missing = verdict.lines_of([ROW], console(off=off, **by_mode), "release")
        self.assertEqual(missing, [])
        return list(line.problems(True, config))

    def test_limits_noise_and_gains(self):
        for problems, config, by_mode in (
                (0, "release", {"c": [100, 100.1], "rust": [75.1]}), (1, "release", {"c": [100, 100], "rust": [75.2]}),
                (1, "release", {"c": [100, 101], "rust": [75.0]}), (0, "release", {"c": [100, 101], "rust": [50.0]}),
                (1, "release", {"off": [281], "c": [100, 101], "rust": [70]}),
                (0, "noinline", {"c": [100, 110], "rust": [70]}),
                (1, "release", {"c": [100, 100.1], "rust": [80]}), (0, "distro", {"c": [100, 100.1], "rust": [80]}),
                (1, "distro", {"c": [100, 100.1], "rust": [90.2]}), (0, "noinline", {"c": [100, 100.1], "rust": [500]}),
                (1, "better_c", {"c": [100, 100.1], "rust": [70]}), (0, "better_c", {"c": [100, 100.1], "rust": [60]}),
                (0, "release", {"off": [280], "c": [100], "rust": [70]}),
                (0, "distro", {"off": [100], "c": [100], "rust": [70]})):
            with self.subTest(config, **by_mode):
                self.assertEqual(len(self.problems(config=config, **by_mode)), problems)
        self.assertEqual(self.problems(c=[100, 100], rust=[70], config="better_c"),
                         ["w: Rust/twin 0.700 is above 0.60 + 0.00% noise"])
        self.assertEqual(self.problems(off=[279], c=[100], rust=[70]), ["w: off/Rust 3.99 is below 4"])

    def test_a_few_instructions_are_no_failure(self):
        """Where the unit is small, so that a few are more than the limit."""
        row = dataclasses.replace(ROW, slack=dataclasses.replace(LIMITS, better_c=20, release=None))
        for problems, config, rust in ((0, "better_c", 119), (1, "better_c", 121), (1, "release", 119)):
            line = verdict.Line(row, {"m": {"off": [1000], "c": [100, 100], "rust": [rust]}})
            self.assertEqual(len(list(line.problems(True, config))), problems, (config, rust))

    def test_limits_beside(self):
        """Rust/off at most, and what is to be gained of another metric."""
        row = dataclasses.replace(ROW, not_above=GAINS, more_gains={"n": GAINS})
        values = {"m": {"c": [100], "off": [10], "rust": [41]}, "n": {"c": [1], "off": [39], "rust": [10]}}
        self.assertEqual(list(verdict.Line(row, values).problems(True)), [
            "w: Rust/off 4.100 is above 4.00 + 0.00% noise", "w: off/Rust 0.24 is below 4",
            "w: off/Rust of n 3.90 is below 4"])

    def test_off_has_none(self):
        """A row that counts what did not happen."""
        values = {name: {"off": [0.0] * 5, "rust": [0.0] * 5} for name in ("rate", "flushes", "oom_kills", "scanned")}
        self.assertEqual(list(verdict.Line(COUNTING, values, "short").problems(True)), [])

    def test_what_a_short_run_has_too_few_of(self):
        scanned = [2.0] * 5, [9.0] * 5
        self.assertEqual(len(list(counted(scanned=scanned, scale="short").problems(True))), 1)
        counters = [dataclasses.replace(counter, full_only=True) for counter in COUNTING.counters]
        row = dataclasses.replace(COUNTING, counters=counters)
        self.assertEqual([len(list(verdict.Line(row, counted(scanned=scanned).values, scale).problems(True)))
                          for scale in ("short", "full")], [0, 1])

    def test_wall_time_has_no_limits(self):
        (line,), _ = verdict.lines_of([ROW], console(off=[100], c=[100, 110], rust=[200]), "release")
        self.assertEqual(list(line.problems(False, "release")), [])
        self.assertEqual(list(counted(rate=[9] * 5, rust=[900] * 5).problems(False)), [])

    def test_each_metric_in_each_mode(self):
        text = console(c=[100, 101, 100], off=[500], rust=[70])
        (line,), missing = verdict.lines_of([ROW], text, "release")
        self.assertEqual((line.values, missing), ({"m": {"c": [100, 101, 100], "off": [500], "rust": [70]},
                                                   "n": {"c": [1000, 1010, 1000], "off": [5000], "rust": [700]}}, []))
        for gone, missing in ((" rust n ", ["w has no n"]), (" off m ", ["w has no m"]), (" n ", ["w has no n"]),
                              (" w ", ["w has no m", "w has no n"])):
            rest = [line for line in text if gone not in line]
            self.assertEqual(verdict.lines_of([ROW], rest, "release"), ([], missing))

    def test_written_down(self):
        some, _ = verdict.lines_of([ROW], console(c=[100, 102], off=[500], rust=[70]), "release")
        data, _ = written(some)
        self.assertEqual([(r["metric"], r["mode"], r["median"]) for r in data["results"]],
                         [("m", "off", 500), ("m", "c", 101), ("m", "rust", 70),
                          ("n", "off", 5000), ("n", "c", 1010), ("n", "rust", 700)])
        self.assertEqual((data["qemu_threads"], data["notes"]), (None, []))

    def test_a_path_without_mode_c(self):
        with mock.patch.dict(paths.PATHS, {"file_unmap": dataclasses.replace(paths.PATHS["file_unmap"], c=None)}):
            text = console(off=[500e6, 501e6], rust=[70e6])
            (line,), missing = verdict.lines_of([ROW], text, "release")
            self.assertEqual((missing, list(line.problems(True))), ([], []))
            self.assertEqual(verdict.lines_of([ROW], text, "better_c")[1], ["w has no m", "w has no n"])
            text = report.console([line], "release")
            self.assertIn("500500000.0  -  70000000.0       -", text)
        self.assertRegex(text, r"w +n +5005.000 +- +700.000 +-")


class Counted(unittest.TestCase):
    def test_limits(self):
        for problems, config, how in (
                # One run beyond each limit, and a pair of them, say nothing: medians meet them.
                ([], "release", {"rate": (0.4, 0.9, 0.5, 0.5, 0.4)}), ([], "release", {"rust": (29, 90, 30, 90, 30)}),
                (["w: rate 0.5100 is above 0.5000"], "release", {"rate": (0.4, 0.6, 0.51, 0.6, 0.4)}),
                (["w: flushes goes by -69.0 %, and must by -70 %"], "release", {"rust": (31, 30, 31, 32, 1)}),
                # What off does not have, Rust cannot have less of.
                (["w: flushes goes by -, and must by -70 %"], "release", {"off": [0] * 5}),
                # A short run is no measure of less.
                ([], "release", {"rust": [100] * 5, "scale": "short"}),
                (["w: rate 1 is above 0.5000"], "release", {"rate": [1] * 5, "scale": "short"}),
                ([], "distro", {"rate": [0.45] * 5, "rust": [35] * 5}), ([], "better_c", {"rust": [35] * 5}),
                # Rust/off: one run of five says nothing, nor what off has in one of its own, nor what hardly happens.
                (["w: oom_kills 1 is above 1.00 of off's 0, of which the highest is 0"], "release",
                 {"kills": (0, 1, 1, 0, 2)}),
                ([], "distro", {"kills": [1] * 5}),
                (["w: scanned 2.2100 is above 1.10 of off's 2, of which the highest is 2.1000"], "distro",
                 {"scanned": ((2.0, 2.0, 2.1, 1.9, 2.0), (2.2, 2.21, 9.0, 2.2, 2.3))}),
                (["w: scanned 2.3000 is above 1.10 of off's 2, of which the highest is 2.1000"], "release",
                 {"scanned": ((2.0, 2.0, 2.1, 1.9, 2.0), [2.3] * 5), "scale": "short"}),
                ([], "release", {"scanned": ((2.0, 2.0, 3.1, 1.9, 2.0), [3.1] * 5)}),
                ([], "release", {"scanned": ([0] * 5, [0.5] * 5)}),
                (["w: scanned 0.5100 is above 1.10 of off's 0, of which the highest is 0"], "release",
                 {"scanned": ([0] * 5, [0.51] * 5)}),
                (["w: rate 0.4500 is above 0.1000"], "noinline", {"rate": [0.45] * 5, "rust": [35] * 5})):
            with self.subTest(config, **how):
                self.assertEqual(list(counted(**how).problems(True, config)), problems)

    def test_table(self):
        (head, rate, flushes, kills, _), = report.tables([counted()], "release")
        self.assertEqual(rate, ["w", "rate", "1", "1..1", "0.4000", "0.4000..0.4000", "-60.0 %", "-60.0 %", "<= 0.5000",
                                "-"])
        # The worst of the pairs, and not the worst of Rust by the median of off.
        self.assertEqual(flushes, ["w", "flushes", "100", "90..110", "29", "25..35", "-71.0 %", "-68.2 %", "-70 %",
                                   "-80 %"])
        self.assertEqual(kills, ["w", "oom_kills", "0", "0..0", "0", "0..1", "-", "-", "<= 1.00 of off", "-"])
        self.assertEqual(len(head), 10)
        self.assertEqual([verdict.plain(n) for n in (0, 0.03321, 12.345, 250123, 4321.7)],
                         ["0", "0.0332", "12.3", "250123", "4322"])
        timed = next(row for row in rows.ROWS if row.workload == "whole-4k")
        both = [verdict.Line(timed, {timed.metric: {"off": [100], "rust": [100]}}), counted()]
        self.assertEqual([table[0][1] for table in report.tables(both, "release")], ["off", "metric"])

    def test_in_the_report_with_notes(self):
        here = counted(notes=["of 31", "floor: 6"])
        text, shown = report.section("dirty_flush", [here], "release"), report.console([here], "release")
        self.assertIn("\n| w | rate | 1 | 1..1 |", text)
        self.assertNotIn("off/Rust", text)
        self.assertTrue(text.endswith("\n\n* w: of 31\n* w: floor: 6"))
        self.assertRegex(shown, r"(?m)^w +flushes +100 .*\n(.*\n)+w: of 31\nw: floor: 6$")
        data, _ = written([here], scale="full")
        self.assertEqual({r["clock"] for r in data["results"]}, {"counter"})
        self.assertEqual((data["qemu_threads"], data["notes"]), ("threads True", ["w: of 31", "w: floor: 6"]))
        found = {(r["metric"], r["mode"]): (r["min"], r["median"], r["max"]) for r in data["results"]}
        self.assertEqual((found["flushes", "rust"], len(found)), ((25, 29, 35), 8))


class Report(unittest.TestCase):
    def test_a_table_for_each_path(self):
        first, *sections = written(lines())[1].split("\n## ")
        self.assertIn("one CPU (two: ext4-64k-2cpu, zero-64k-2cpu), NUMA on", first)
        self.assertEqual([s.split()[0] for s in sections], paths.ORDER)
        for text, path in zip(sections, paths.ORDER):
            named = [line.split(" | ")[0].removeprefix("| ") for line in text.splitlines() if line.startswith("| ")]
            here = [row for row in rows.ROWS if row.path == path and not row.counts]
            counts = [row for row in rows.ROWS if row.path == path and row.counts]
            more = [r.workload for r in here for _ in r.more]
            self.assertEqual(named, ["row", *(r.workload for r in here), *(["row, in millions", *more] if more else []),
                                     *(["row", *(r.workload for r in counts for _ in r.counters)] if counts else [])])
        self.assertIn("| ext4-64k | insn_total | 500.000 | 101.000 | 70.000 | 0.693 | 7.14 |", sections[1])
        self.assertIn("32 MiB of clean pages", sections[1])

    def test_what_was_measured(self):
        for how, text in (({}, "`make evaluate`"), ({"scale": "full"}, "`make evaluate SCALE=full`"),
                          ({"arch": "arm64"}, "`make evaluate ARCH=arm64`"),
                          ({"config": "distro"}, "`make evaluate CONFIG=distro`"),
                          ({"config": "distro"}, "config/distro.config.\nThe release kernel with what Debian's"),
                          ({}, "rustc 1, clang 2\n(one LLVM, helpers inlined)"),
                          ({"gcc": "3"}, "rustc 1, gcc 3\n(no LLVM for C, helpers not inlined)")):
            self.assertIn(text, written(lines(), **how)[1])
        data, _ = written(lines(), "distro", arch="arm64")
        self.assertEqual((data["arch"], data["configuration"]), ("arm64", "distro"))

    def test_some_rows(self):
        text = written(lines([rows.ROWS[0]]))[1]
        self.assertIn("one CPU, NUMA on", text)
        self.assertNotIn("file_unmap", text)
        self.assertNotIn("in millions", text)
        some = [dataclasses.replace(rows.ROWS[0], limits=limits) for limits in (LIMITS, model.NONE)]
        text = written(lines(some), "distro")[1]
        self.assertIn("| 0.693 | 0.90 | - | 7.14 |", text)
        self.assertIn("| 0.693 | - | - | 7.14 |", text)

    def test_the_twin_is_named(self):
        """C is the kernel's own, but with what is offered to it."""
        for config, twin in (("release", False), ("distro", False), ("better_c", True)):
            contig, unmap = written(lines(), config)[1].split("\n## ")[1:3]
            for path in contig, unmap:
                self.assertEqual("`C` the kernel's batch as 7.3 has it" in path, not twin)
            self.assertEqual("`twin` the same algorithm in C" in contig, twin)
            self.assertEqual(contig.count("| off | twin | Rust | Rust/twin |"), twin)
            self.assertEqual("`C` the kernel's batch as 7.3 has it" in unmap, not twin)
            self.assertEqual("`twin` the kernel's batch with what it can have" in unmap, twin)
            self.assertEqual(unmap.count("| off | twin | Rust | Rust/twin |"), 2 * twin)
            self.assertEqual(unmap.count("| off | C | Rust | Rust/C |"), 2 * (not twin))
