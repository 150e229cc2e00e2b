# SPDX-License-Identifier: GPL-2.0
"""make evaluate, itself tested: what a row's runs print, what is made of it, and what is refused."""

import dataclasses
import itertools
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest
from unittest import mock

from mmb.kernel.built import built
from mmb import paths
from mmb.base.cache import TOP
from mmb.base.errors import FAIL, PASS, Error
from mmb.paths import boots, model
from mmb.guest import payload, splats
from mmb.guest.boot import Ended
from mmb.measure import evaluate, events, report, rows

LIMITS = model.Limits(release=0.75, distro=0.90, noinline=None, better_c=0.60)
GAINS = model.Limits(release=4, distro=None, noinline=None, better_c=None)
ROW = model.Row("w", "", "m", "page", boots.RECLAIM, LIMITS, GAINS, more=("n",), path="file_unmap")


def result(mode, metric, value, workload="w"):
    return f"RESULT file_unmap {workload} {mode} {metric} {value}"


def console(**by_mode):
    """What a boot prints: of each mode, the values of m; those of n are ten times as large."""
    return [line for mode, values in by_mode.items() for value in values
            for line in (result(mode, "m", f"{value:.3f}"), "words", result(mode, "n", f"{10 * value:.3f}"))]


def written(lines, config="release", scale="short", gcc=None, arch="x86_64"):
    """results.json and the report."""
    build = mock.Mock(arch=arch, named=config)
    build.base.version = "7.3.0"
    build.symbol.return_value = "y"
    build.toolchain.return_value = {"rustc": "1", "clang": "2", "gcc": gcc, "llvm_match": not gcc, "inline_helpers": not gcc}
    with mock.patch.object(report.subprocess, "run", return_value=mock.Mock(stdout="version 7.2.1")), \
            mock.patch.object(report, "emulator", return_value="qemu"):
        data = report.results(build, "commit", lines, scale, "icount")
    return data, report.markdown(build, lines, data, "icount")


class Results(unittest.TestCase):
    def lines(self, text, of=ROW):
        return report.lines_of([of], report.collect(text), "release")

    def problems(self, off=(1000,), config="release", **by_mode):
        (line,), missing = self.lines(console(off=off, **by_mode))
        self.assertEqual(missing, [])
        return list(line.problems(True, config))

    def test_limit_and_noise(self):
        self.assertEqual(self.problems(c=[100, 100.1], rust=[75.1]), [])
        self.assertEqual(len(self.problems(c=[100, 100], rust=[75.2])), 1)
        self.assertEqual(len(self.problems(c=[100, 101], rust=[50.0])), 1)

    def test_each_configuration_has_its_limits(self):
        for config, rust, problems in (("release", 80, 1), ("distro", 80, 0), ("distro", 90.2, 1), ("noinline", 500, 0),
                                       ("better_c", 70, 1), ("better_c", 60, 0)):
            self.assertEqual(len(self.problems(c=[100, 100.1], rust=[rust], config=config)), problems, config)
        self.assertEqual(self.problems(c=[100, 100], rust=[70], config="better_c"),
                         ["w: Rust/twin 0.700 is above 0.60 + 0.00% noise"])

    def test_wall_time_has_no_limits(self):
        (line,), _ = self.lines(console(off=[100], c=[100, 110], rust=[200]))
        self.assertEqual(list(line.problems(False, "release")), [])

    def test_gain(self):
        self.assertEqual(self.problems(off=[280], c=[100], rust=[70]), [])
        self.assertEqual(self.problems(off=[279], c=[100], rust=[70]), ["w: off/Rust 3.99 is below 4"])
        self.assertEqual(self.problems(off=[100], c=[100], rust=[70], config="distro"), [])

    def test_several_metrics(self):
        (line,), _ = self.lines(console(c=[100, 101, 100], off=[500], rust=[70]))
        self.assertEqual(line.by_mode, {"c": [100, 101, 100], "off": [500], "rust": [70]})
        self.assertEqual(line.more, {"n": {"c": [1000, 1010, 1000], "off": [5000], "rust": [700]}})

    def test_what_is_missing(self):
        text = console(c=[100], off=[500], rust=[70])
        for gone, missing in ((" rust n ", "w has no n"), (" off m ", "w has no m"), (" n ", "w has no n")):
            self.assertEqual(self.lines([line for line in text if gone not in line]), ([], [missing]))

    def test_another_rows_results(self):
        text = [line.replace(" w ", " x ") for line in console(c=[100], off=[500], rust=[70])]
        self.assertEqual(self.lines(text), ([], ["w has no m", "w has no n"]))

    def test_written_down(self):
        (line,), _ = self.lines(console(c=[100, 102], off=[500], rust=[70]))
        found = written([line])[0]["results"]
        self.assertEqual([(r["metric"], r["mode"], r["median"]) for r in found],
                         [("m", "off", 500), ("m", "c", 101), ("m", "rust", 70),
                          ("n", "off", 5000), ("n", "c", 1010), ("n", "rust", 700)])


class Written(unittest.TestCase):
    """The report, of all rows."""

    def lines(self, of=rows.ROWS):
        values = {"c": [100e6, 102e6], "off": [500e6], "rust": [70e6]}
        return [(events.Line if row.counts else report.Line)(row, values, {metric: values for metric in row.more})
                for row in of]

    def test_a_table_for_each_path(self):
        first, *sections = written(self.lines())[1].split("\n## ")
        self.assertIn("one CPU (two: ext4-64k-2cpu, zero-64k-2cpu), NUMA on", first)
        self.assertEqual([s.split()[0] for s in sections], paths.ORDER)
        for text, path in zip(sections, paths.ORDER):
            named = [line.split(" | ")[0].removeprefix("| ") for line in text.splitlines() if line.startswith("| ")]
            here = [row for row in rows.ROWS if row.path == path and not row.counts]
            counted = [row for row in rows.ROWS if row.path == path and row.counts]
            self.assertEqual(named, ["row", *(r.workload for r in here)] + (
                ["row, in millions", *(r.workload for r in here for _ in r.more)] if any(r.more for r in here) else []) + (
                ["row", *(r.workload for r in counted for _ in r.counters)] if counted else []))
        self.assertIn("| ext4-64k | insn_total | 500.000 | 101.000 | 70.000 | 0.693 | 7.14 |", sections[1])
        self.assertIn("32 MiB of clean pages", sections[1])

    def test_the_command_that_wrote_it(self):
        self.assertIn("`make evaluate`", written(self.lines())[1])
        self.assertIn("`make evaluate SCALE=full`", written(self.lines(), scale="full")[1])

    def test_the_compilers(self):
        self.assertIn("rustc 1, clang 2\n(one LLVM, helpers inlined)", written(self.lines())[1])
        self.assertIn("rustc 1, gcc 3\n(no LLVM for C, helpers not inlined)", written(self.lines(), gcc="3")[1])

    def test_some_rows(self):
        text = written(self.lines([rows.ROWS[0]]))[1]
        self.assertIn("one CPU, NUMA on", text)
        self.assertNotIn("file_unmap", text)
        self.assertNotIn("in millions", text)

    def test_another_configuration(self):
        some = self.lines([dataclasses.replace(rows.ROWS[0], limits=limits) for limits in (LIMITS, model.NONE)])
        data, text = written(some, "distro")
        self.assertEqual(data["configuration"], "distro")
        self.assertIn("with tests/kernel/config/distro.config.\nThe release kernel with what Debian's", text)
        self.assertIn("`make evaluate CONFIG=distro`", text)
        self.assertIn("| 0.693 | 0.90 | - | 7.14 |", text)
        self.assertIn("| 0.693 | - | - | 7.14 |", text)
        self.assertIn("A row without a limit is shown only.", text)
        # That a figure is no figure is another matter.
        noisy = report.Line(ROW, {"c": [100, 110], "rust": [70], "off": [500]})
        self.assertEqual(len(list(noisy.problems(True, "noinline"))), 1)

    def test_another_architecture(self):
        data, text = written(self.lines(), arch="arm64")
        self.assertEqual(data["arch"], "arm64")
        self.assertIn("`make evaluate ARCH=arm64`", text)
        self.assertIn("`make evaluate`", written(self.lines())[1])

    def test_the_twin_is_named(self):
        """C is the kernel's own, but for a path that patches/better_c/ has something for, and only there."""
        for config, twin in (("release", False), ("distro", False), ("better_c", True)):
            text = written(self.lines(), config)[1]
            contig, unmap = text.split("\n## ")[1:3]
            self.assertIn("`C` the kernel's batch as 7.3 has it", contig)
            self.assertIn("| off | C | Rust | Rust/C |", contig)
            self.assertEqual("`C` the kernel's batch as 7.3 has it" in unmap, not twin)
            self.assertEqual("`twin` the kernel's batch with what it can have" in unmap, twin)
            self.assertEqual(unmap.count("| off | twin | Rust | Rust/twin |"), 2 * twin)
            self.assertEqual(unmap.count("| off | C | Rust | Rust/C |"), 2 * (not twin))

    def test_a_path_without_mode_c(self):
        bare = dataclasses.replace(paths.PATHS["file_unmap"], c=None, rows=(ROW,))
        values = {"off": [500e6, 501e6], "rust": [70e6]}
        with mock.patch.dict(paths.PATHS, {"file_unmap": bare}):
            self.assertEqual(rows.runs_of(ROW, "release", 2), ["off", "rust"] * 2 + ["off"])
            self.assertEqual(rows.runs_of(ROW, "better_c", 1), ["c", "off", "rust", "c"])
            found = {("file_unmap", "w", metric): values for metric in ("m", "n")}
            (line,), missing = report.lines_of([ROW], found, "release")
            self.assertEqual(missing, [])
            self.assertEqual(report.lines_of([ROW], found, "better_c")[1], ["w has no m", "w has no n"])
            self.assertEqual(list(line.problems(True)), [])
            text = report.console([line], "release")
            self.assertIn("500500000.0  -  70000000.0       -", text)
        self.assertRegex(text, r"w +n +500.500 +- +70.000 +-")


class RowsOfTheTable(unittest.TestCase):
    def test_a_job_has_one_kind_of_boot_and_every_mode(self):
        for row in rows.ROWS:
            job = rows.job([row], "release", "short", 3, 1)
            runs = [line for line in job.splitlines() if line.startswith("count " if row.counts else "row ")]
            modes = [line.split()[3] for line in runs]
            self.assertEqual(modes, rows.runs_of(row, "release", 3))
            if row.counts:
                self.assertEqual(modes, ["off", "rust"] * 5)
            else:
                self.assertEqual((modes[0], set(modes)), (modes[-1], set(rows.modes_of(row, "release"))))
            self.assertEqual({line.split()[4] for line in runs}, {",".join((row.metric, *row.more))})

    def test_free_lists_are_not_those_of_booting(self):
        bench, other = ([r for r in rows.ROWS if r.boot == boot] for boot in (boots.BENCH, boots.RECLAIM))
        job = rows.job(bench, "release", "short", 3, 4).splitlines()
        before = job[:[line.startswith("row ") for line in job].index(True)]
        first = bench[0]
        self.assertEqual(before[-3:], [f"set_mode {first.path} {mode} && settle && {first.command_for('short', 4)}"
                                       for mode in rows.modes_of(first, "release")])
        self.assertNotIn("set_mode", rows.job(other, "release", "short", 3, 4))

    def test_longer_is_longer(self):
        for row in [row for row in rows.ROWS if not row.counts]:
            short = rows.job([row], "release", "short", 3, 1)
            self.assertNotEqual(short, rows.job([row], "release", "short", 3, 4))
            self.assertNotEqual(short, rows.job([row], "release", "full", 3, 1))

    def test_what_is_mapped_fits(self):
        for given, memory, disk in (("", 2048, 2048), ("32", 2048, 2048), ("10240", 13824, 12800)):
            with mock.patch.dict(os.environ, {"RECLAIM_MIB": given}), \
                    mock.patch.object(rows, "scratch_image", lambda mib: mib):
                guest = rows.guest(boots.RECLAIM)
            self.assertEqual((guest["memory"], guest["drives"]), (memory, [disk]))
            self.assertIn(" init_on_alloc=0", guest["arguments"])

    def test_the_size_reaches_the_workload(self):
        for given, mib in (("", "32"), ("10240", "10240")):
            with mock.patch.dict(os.environ, {"RECLAIM_MIB": given}):
                text = rows.job([r for r in rows.ROWS if r.boot == boots.RECLAIM], "release", "full", 1, 4)
            self.assertEqual({line.split()[8] for line in text.splitlines() if line.startswith("row ")}, {mib})
            self.assertTrue(text.startswith(f"mib={mib}\n"))
            self.assertIn("\nswap_on $((mib > 512 ? mib : 512))\n", text)


class InTheGuest(unittest.TestCase):
    """lib.sh's row() in a shell of the host's, whose PATH has what it needs and no more."""

    def row(self, workload, metrics, idle="echo 0"):
        with tempfile.TemporaryDirectory() as path:
            for tool in ("awk", "sh"):
                os.symlink(shutil.which(tool), f"{path}/{tool}")
            script = f""". {TOP}/tests/kernel/lib.sh
set_mode() {{ :; }}
settle() {{ settled=$((settled + 1)); }}
poweroff() {{ exit 9; }}
idle() {{ {idle}; }}
n=0
workload() {{ n=$((n + 1)); {workload}; }}
parts=2
row p w c {metrics} workload
"""
            done = subprocess.run([f"{path}/sh", "-c", script], env={"PATH": path}, capture_output=True, text=True)
        return done.stdout.splitlines(), done.returncode

    def test_mean_of_the_parts(self):
        # Of three, the first does not count.
        self.assertEqual(self.row('value="$n.5"', "m"), (["RESULT p w c m 3.000"], 0))

    def test_nothing_is_left_of_the_last_row(self):
        self.assertEqual(self.row("value=$((settled - n))", "m"), (["RESULT p w c m 0.000"], 0))

    def test_several_metrics(self):
        self.assertEqual(self.row('value="$n $((n * 100))"', "m,n"),
                         (["RESULT p w c m 2.500", "RESULT p w c n 250.000"], 0))

    def test_an_idle_part_is_repeated(self):
        self.assertEqual(self.row("value=$n; ticks=$((n >= 2))", "m", idle="echo ${ticks:-0}"),
                         (["REPEAT p w c: idle for 1 ticks", "RESULT p w c m 3.500"], 0))

    def test_always_idle(self):
        lines, code = self.row("value=$n", "m", idle='echo "$n"')
        self.assertEqual((len(lines), code), (5, 9))
        self.assertEqual(lines[-1], "mm_batch: job failed: w, mode c: too much idle time")

    def test_a_failure_names_the_row(self):
        self.assertEqual(self.row("fail 'no luck'", "m"), (["mm_batch: job failed: w, mode c: no luck"], 9))


    def whole(self, log, command="true"):
        """The end of a job, as init has it, after the kernel printed `log`."""
        with tempfile.TemporaryDirectory() as folder:
            for tool in ("grep", "sh", "true"):
                os.symlink(shutil.which(tool), f"{folder}/{tool}")
            (pathlib.Path(folder) / "splats").write_text(splats.for_grep())
            (pathlib.Path(folder) / "log").write_text(log)
            lib = (TOP / "tests/kernel/lib.sh").read_text().replace("/splats", f"{folder}/splats")
            script = f"""{lib}
dmesg() {{ while read -r line; do echo "$line"; done <{folder}/log; }}
poweroff() {{ exit 9; }}
{command}
workload=
no_complaint
"""
            done = subprocess.run([f"{folder}/sh", "-c", script], env={"PATH": folder}, capture_output=True, text=True)
        return done.stdout.splitlines(), done.returncode

    def test_what_the_kernel_complained_of(self):
        self.assertEqual(self.whole("[ 0.1] Linux version 7.3\n[ 0.2] all is well\n"), ([], 0))
        for line in ("[ 0.2] WARNING: arch/x86/kernel/smpboot.c:332 at topology_sane", "[ 1.0] BUG: x",
                     "[ 1.0] pagealloc: memory corruption"):
            self.assertEqual(self.whole(f"[ 0.1] up\n{line}\n[ 9.0] on\n", "workload=w"),
                             ([f"mm_batch: job failed: the kernel complained: {line}"], 9))


class OneBoot(unittest.TestCase):
    """A figure of one boot is never set against one of another."""

    def run_of(self, selected, figures):
        """The lines of rows.ROWS, each boot printing other figures."""
        def boot(_build, initrd, on_line, **_):
            job = initrd
            scale = next(figures)
            lines = []
            for line in job.splitlines():
                if line.startswith("row "):
                    _, path_, workload, mode, metrics, *_ = line.split()
                    lines += [f"RESULT {path_} {workload} {mode} {metric} {scale * {'c': 100, 'off': 300, 'rust': 50}[mode]}"
                              for metric in metrics.split(",")]
            for line in lines:
                on_line(line)
            return Ended(PASS, "finished", lines)

        build = mock.Mock(arch="x86_64", named="release")
        with mock.patch.object(evaluate, "boot", boot), \
                mock.patch.object(evaluate.initrd, "archive", lambda _folder, job, *_, **__: job), \
                mock.patch.object(rows, "scratch_image", lambda mib: "disk"):
            return evaluate.Boots(build, [], [], pathlib.Path("/nowhere"), mock.Mock()).run(selected, "short", 3, 1)

    def test_each_boots_ratios_are_its_own(self):
        selected = [row for row in rows.ROWS if "c" in rows.modes_of(row, "release")]
        lines = self.run_of(selected, itertools.count(1))
        self.assertEqual([line.row for line in lines], selected)
        self.assertEqual({(line.ratio("rust", "c"), line.ratio("off", "rust"), line.noise) for line in lines}, {(0.5, 6, 0)})
        self.assertEqual(len({line.median["c"] for line in lines}), len({row.boot for row in selected}))


class Verdict(unittest.TestCase):
    """make evaluate, but for its boots: its exit code, and where it writes."""

    def evaluated(self, config="", rust=70e6, limits=LIMITS):
        row = dataclasses.replace(ROW, limits=limits)
        values = {"c": [100e6, 100e6], "off": [500e6], "rust": [rust]}
        build = mock.MagicMock(arch="x86_64", named=config or "release")
        build.base.work = pathlib.Path("/nowhere")
        with tempfile.TemporaryDirectory() as folder, mock.patch.dict(
                os.environ, {"CONFIG": config, "ROW": "", "DEBUG": "", "ACCEL": "", "EXTRA_CONFIG": "", "KDIR": ""}), \
                mock.patch.object(rows, "ROWS", [row]), mock.patch.object(evaluate, "TOP", pathlib.Path(folder)), \
                mock.patch.object(evaluate, "staged_build", return_value=(build, mock.Mock())), \
                mock.patch.object(evaluate, "guest_files", return_value=([], [])), \
                mock.patch.object(evaluate.Boots, "run", return_value=[report.Line(row, values)]), \
                mock.patch.object(evaluate.report, "results", return_value={}), \
                mock.patch.object(evaluate.report, "markdown", return_value=""), mock.patch("builtins.print"):
            code = evaluate.evaluate("x86_64", "full")
            return code, [str(p.relative_to(folder)) for p in pathlib.Path(folder).rglob("*.json")]

    def test_beyond_a_limit(self):
        for config, rust, code in (("", 70e6, PASS), ("", 76e6, FAIL), ("distro", 76e6, PASS), ("distro", 91e6, FAIL),
                                   ("better_c", 59e6, PASS), ("better_c", 61e6, FAIL), ("noinline", 900e6, PASS)):
            name = f"report/x86_64{config and '-' + config}/results.json"
            self.assertEqual(self.evaluated(config, rust), (code, [name]), config)


class Boots(unittest.TestCase):
    """Needs the built kernel, with the meter: rows that must be refused."""

    @classmethod
    def setUpClass(cls):
        cls.build = built(cls.addClassCleanup)
        cls.row = next(r for r in rows.ROWS if r.workload == "ext4-64k")

    def refused(self, why, row=None):
        with tempfile.TemporaryDirectory() as folder:
            programs = [payload.program(self.build, TOP / "tests/kernel/workloads/reclaim.c")]
            boots = evaluate.Boots(self.build, [], programs, pathlib.Path(folder), mock.Mock())
            with self.assertRaisesRegex(Error, why), mock.patch.dict(os.environ, {"RECLAIM_MIB": "8"}):
                boots.run([row or self.row], "short", 1, 1)

    def test_folios_of_another_size(self):
        # A tmpfs has folios of one page.
        script = (model.WORKLOADS / "reclaim.sh").read_text()
        other = script.replace("-t ext4 /dev/vda", "-t tmpfs none")
        self.assertNotEqual(other, script)
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(model, "WORKLOADS", pathlib.Path(folder)):
            (model.WORKLOADS / "reclaim.sh").write_text(other)
            self.refused("ext4-64k, mode c: reclaim: 0 of 2048 pages are in folios of 64 KiB, less than 95 %")

    def test_no_scratch_disk(self):
        kind = dataclasses.replace(boots.RECLAIM, disk=False)
        self.refused("job failed: no scratch disk", dataclasses.replace(self.row, boot=kind))

    def test_a_metric_is_missing(self):
        self.refused("^ext4-64k has no insn_none: ", dataclasses.replace(self.row, more=("insn_total", "insn_none")))


if __name__ == "__main__":
    unittest.main(verbosity=2)
