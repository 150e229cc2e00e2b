# SPDX-License-Identifier: GPL-2.0
"""Rows that count: what a guest prints of them, what is made of it, and in which guest that is."""

import dataclasses
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest
from unittest import mock

from mmb import paths
from mmb.base.cache import TOP
from mmb.base.errors import PASS, Error
from mmb.paths import model
from mmb.guest import boot, initrd
from mmb.guest.boot import Ended
from mmb.measure import evaluate, events, report, rows

BOOT = model.Boot("b", "stress.sh", cpus=4, loops=False, threads=True, profiled=False, workers=4)
COUNTERS = (
    model.Counter("rate", at_most=model.Limits(release=0.5, distro=None, noinline=0.1, better_c=None)),
    model.Counter("flushes", less=model.Limits(release=70, distro=None, noinline=None, better_c=60), aim=80),
    model.Counter("oom_kills"),
)
ROW = model.counting("w", "stress 4 gen {stolen}", "page", BOOT, COUNTERS, after="batches 4 gen {stolen}")
ROW = dataclasses.replace(ROW, path="dirty_flush")


def line(rate=(0.4,) * 5, off=(100, 110, 90, 100, 100), rust=(29, 35, 25, 28, 31), scale="full", notes=()):
    return events.Line(ROW, {"off": [1.0] * 5, "rust": list(rate)},
                         {"flushes": {"off": list(off), "rust": list(rust)},
                          "oom_kills": {"off": [0] * 5, "rust": [0, 0, 1, 0, 0]}}, scale, notes)


class Judged(unittest.TestCase):
    def problems(self, config="release", judged=True, **how):
        return list(line(**how).problems(judged, config))

    def test_medians_meet_the_limits(self):
        # One run beyond each limit, and a pair of them, say nothing.
        self.assertEqual(self.problems(rate=(0.4, 0.9, 0.5, 0.5, 0.4)), [])
        self.assertEqual(self.problems(rust=(29, 90, 30, 90, 30)), [])

    def test_above(self):
        self.assertEqual(self.problems(rate=(0.4, 0.6, 0.51, 0.6, 0.4)), ["w: rate 0.5100 is above 0.5000"])

    def test_too_little_less(self):
        self.assertEqual(self.problems(rust=(31, 30, 31, 32, 1)), ["w: flushes goes by -69.0 %, and must by -70 %"])
        # What off does not have, Rust cannot have less of.
        self.assertEqual(self.problems(off=[0] * 5), ["w: flushes goes by -, and must by -70 %"])

    def test_a_short_run_is_no_measure_of_less(self):
        self.assertEqual(self.problems(rust=[100] * 5, scale="short"), [])
        self.assertEqual(len(self.problems(rate=[1] * 5, scale="short")), 1)

    def test_each_configuration_has_its_limits(self):
        bad = {"rate": [0.45] * 5, "rust": [35] * 5}
        for config, problems in (("release", 1), ("distro", 0), ("noinline", 1), ("better_c", 0)):
            self.assertEqual(len(self.problems(config, **bad)), problems, config)

    def test_wall_time_has_no_limits(self):
        self.assertEqual(self.problems(judged=False, rate=[9] * 5, rust=[900] * 5), [])


class Shown(unittest.TestCase):
    def test_table(self):
        head, rate, flushes, kills = events.table([line()])
        self.assertEqual(rate, ["w", "rate", "1", "1..1", "0.4000", "0.4000..0.4000", "-60.0 %", "-60.0 %", "<= 0.5000",
                                "-"])
        # The worst of the pairs, and not the worst of Rust by the median of off.
        self.assertEqual(flushes, ["w", "flushes", "100", "90..110", "29", "25..35", "-71.0 %", "-68.2 %", "-70 %",
                                   "-80 %"])
        self.assertEqual(kills, ["w", "oom_kills", "0", "0..0", "0", "0..1", "-", "-", "-", "-"])
        self.assertEqual({len(row) for row in (head, rate, flushes, kills)}, {10})

    def test_no_row_no_table(self):
        self.assertEqual(events.table([]), [])

    def test_numbers(self):
        self.assertEqual([events.number(n) for n in (0, 0.03321, 12.345, 250123, 4321.7)],
                         ["0", "0.0332", "12.3", "250123", "4322"])

    def section(self, config="release"):
        text = ["NOTE dirty_flush w of 31", "NOTE dirty_flush w floor: 6"]
        here = line(notes=events.collect_notes(text)["dirty_flush", "w"])
        return report.section("dirty_flush", [here], config), report.console([here], config)

    def test_in_the_report_with_notes(self):
        text, console = self.section()
        self.assertIn("\n| w | rate | 1 | 1..1 |", text)
        self.assertNotIn("off/Rust", text)
        self.assertTrue(text.endswith("\n\n* w: of 31\n* w: floor: 6"))
        self.assertRegex(console, r"(?m)^w +flushes +100 .*\n(.*\n)+w: of 31\nw: floor: 6$")

    def test_beside_rows_of_instructions(self):
        timed = next(row for row in rows.ROWS if row.workload == "whole-4k")
        both = [report.Line(timed, {"off": [100], "rust": [100]}), line()]
        self.assertEqual([table[0][1] for table in report.tables(both, "release")], ["off", "metric"])

    def test_in_results(self):
        build = mock.Mock(arch="x86_64", named="release")
        with mock.patch.object(report, "version", lambda program: program), \
                mock.patch.object(report, "emulator", lambda _arch, threads: f"threads {threads}"):
            data = report.results(build, "commit", [line(notes=["x"])], "full", "icount")
            no_threads = report.Line(rows.ROWS[0], {"off": [1], "c": [1]})
            timed = report.results(build, "commit", [no_threads], "full", "icount")
        self.assertEqual({r["clock"] for r in data["results"]}, {"counter"})
        self.assertEqual((data["qemu_threads"], data["notes"]), ("threads True", ["w: x"]))
        self.assertEqual((timed["qemu_threads"], timed["notes"]), (None, []))
        found = {(r["metric"], r["mode"]): (r["min"], r["median"], r["max"]) for r in data["results"]}
        self.assertEqual(found["flushes", "rust"], (25, 29, 35))
        self.assertEqual(len(found), 6)


class Jobs(unittest.TestCase):
    def test_off_and_rust_in_turn_in_each_configuration(self):
        for config in model.CONFIGURATIONS:
            job = [l.split() for l in rows.job([ROW], config, "short", 3, 1).splitlines() if l.startswith("count ")]
            self.assertEqual([words[3] for words in job], ["off", "rust"] * 5)
            self.assertEqual({" ".join(words[4:]) for words in job}, {"rate,flushes,oom_kills stress 4 gen 25000"})

    def test_what_is_said_beside_is_behind_all_runs(self):
        *_, run, after = rows.job([ROW], "release", "full", 3, 1).splitlines()
        self.assertEqual((run.split()[:4], after), (["count", "dirty_flush", "w", "rust"], "batches 4 gen 250000"))

    def test_only_this_paths_mode_changes(self):
        for row in paths.PATHS["dirty_flush"].rows:
            self.assertIn(" mm_batch.anon_unmap=rust", rows.guest(row.boot)["arguments"], row.workload)

    def test_the_guest(self):
        for given, memory in (("", 2048), ("512", 3584)):
            with mock.patch.dict(os.environ, {"STRESS_MIB": given}):
                found = rows.guest(BOOT)
                self.assertEqual((found["cpus"], found["threads"], found["memory"]), (4, True, memory))
                self.assertIn(f"\nstress_mib={4 * int(given or 128)}\n", BOOT.commands())

    def test_known(self):
        def names(*how):
            return {row.workload for row in rows.known(*how)}

        long = {"pageout-16cpu", "stress-ng-16cpu", "pageout-16k", "pageout-64k", "pageout-2m", "stress-ng-4cpu-60s",
                "stress-ng-4cpu-classic-60s"}
        self.assertEqual(names("x86_64", "full") - names("x86_64", "short"), long)
        self.assertEqual(names("x86_64", "full"), {row.workload for row in rows.ROWS})
        self.assertEqual({row.boot.threads for row in rows.known("arm64", "full")}, {False})
        limits = {(row.limits, row.not_above, row.gains, *row.more_gains.items()) for row in rows.known("arm64", "full")}
        self.assertEqual(limits, {(model.NONE, model.NONE, model.NONE)})
        self.assertTrue(any(row.more_gains for row in rows.known("x86_64", "short")))
        self.assertIn("whole-4k", names("arm64", "short"))

    def test_a_row_of_full_runs(self):
        with mock.patch.dict(os.environ, {"ROW": "pageout-16cpu"}):
            self.assertEqual(len(evaluate.chosen_rows(rows.known("x86_64", "full"))), 1)
            with self.assertRaisesRegex(Error, "ROW=pageout-16cpu matches no row"):
                evaluate.chosen_rows(rows.known("x86_64", "short"))

    def test_what_is_fetched(self):
        timed = rows.ROWS[0]
        packages = dataclasses.replace(ROW, boot=dataclasses.replace(BOOT, debian=("stress-ng",)))
        for selected, wanted in (([timed], []), ([timed, ROW], ["qemu"]), ([packages], ["qemu", "guest"])):
            found = []
            with mock.patch.object(evaluate, "emulator", lambda _arch, threads: found.append("qemu")), \
                    mock.patch.object(evaluate.initrd, "tree", lambda _: found.append("guest")):
                evaluate.fetch("x86_64", selected)
            self.assertEqual(found, wanted)

    def test_a_boot(self):
        """Its figures and notes, of a guest that has the packages' programs."""
        asked = {}

        def booted(_build, initrd, on_line, **how):
            asked.update(how)
            lines = [f"RESULT dirty_flush w {mode} {metric} {value}" for mode, value in (("off", 10), ("rust", 2))
                     for _ in range(5) for metric in (ROW.metric, *ROW.more)]
            for text in lines:
                on_line(text)
            return Ended(PASS, "finished", [*lines, "NOTE dirty_flush w said", "NOTE dirty_flush other not"])

        def archive(*_, **how):
            asked.update(how)

        build = mock.Mock(arch="x86_64", named="better_c")
        row = dataclasses.replace(ROW, boot=dataclasses.replace(BOOT, debian=("stress-ng",)))
        with mock.patch.object(evaluate, "boot", booted), mock.patch.object(evaluate.initrd, "archive", archive):
            found, = evaluate.Boots(build, [], [], pathlib.Path("/nowhere"), mock.Mock()).run([row], "short", 3, 1)
        self.assertEqual((asked["threads"], asked["cpus"], asked["debian"]), (True, 4, ("stress-ng",)))
        self.assertEqual((found.notes, found.scale, found.noise), (["said"], "short", 0))
        self.assertEqual(found.change("flushes"), -80)


class Emulator(unittest.TestCase):
    """A host thread per CPU wants a QEMU that is new enough, and no icount."""

    def command(self, version, threads=True, accel=""):
        build = mock.Mock(arch="x86_64", flavour="release", image="image")
        with mock.patch.object(boot, "version", lambda _: version), mock.patch.dict(os.environ, {"ACCEL": accel}), \
                mock.patch.object(boot.shutil, "which", lambda name: name if version else None), \
                mock.patch.object(boot.os, "access", return_value=True), \
                mock.patch.object(boot, "brought", lambda name: f"/cache/{name}"):
            with mock.patch.object(boot.shutil, "which", lambda name: name if version or "/" in name else None):
                command = boot.qemu_command(build, "", None, 4, 2048, True, threads=threads)
        return command[0], " ".join(command)

    def test_new_enough(self):
        program, text = self.command("10.0.2")
        self.assertEqual(program, "qemu-system-x86_64")
        self.assertIn(" -accel tcg,thread=multi ", text)
        self.assertNotIn("icount", text)
        self.assertIn(" no_timer_check ", text)

    def test_brought(self):
        for version in ("7.2.22", "9.9.9", None):
            program, text = self.command(version)
            self.assertEqual(program, "/cache/threads/mm_batch/bin/qemu-system-x86_64")
            self.assertIn(" -accel tcg,thread=multi ", text)

    def test_other_boots_keep_theirs(self):
        program, text = self.command("7.2.22", threads=False)
        self.assertEqual(program, "qemu-system-x86_64")
        self.assertIn(" -icount shift=0,sleep=off ", text)

    def test_kvm_needs_none(self):
        program, text = self.command("7.2.22", accel="kvm")
        self.assertEqual(program, "qemu-system-x86_64")
        self.assertIn(" -accel kvm ", text)


class Programs(unittest.TestCase):
    """A program of the guest's packages, with its libraries."""

    def found(self, listed, code=0):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "usr/lib64").mkdir(parents=True)
            loader = root / "usr/lib64/ld-linux-x86-64.so.2"
            loader.write_text(f"#!/bin/sh\ncat <<'END'\n{listed.format(root=root)}\nEND\nexit {code}\n")
            loader.chmod(0o755)
            with mock.patch.object(initrd, "tree", lambda _: root):
                return [str(name) for name, _ in initrd.with_libraries("x86_64", "p")]

    def test_libraries(self):
        self.assertEqual(self.found("\tlinux-vdso.so.1 (0x1)\n"
                                    "\tlibc.so.6 => {root}/usr/lib/x86_64-linux-gnu/libc.so.6 (0x2)\n"
                                    "\t/lib64/ld-linux-x86-64.so.2 => {root}/lib64/ld-linux-x86-64.so.2 (0x3)"),
                         ["lib64/ld-linux-x86-64.so.2", "usr/bin/p", "usr/lib/x86_64-linux-gnu/libc.so.6"])

    def test_one_is_missing(self):
        with self.assertRaisesRegex(Error, "p lacks libjudy.so.1"):
            self.found("\tlibjudy.so.1 => not found")
        with self.assertRaisesRegex(Error, "p lacks a loader"):
            self.found("", 1)


def functions(source):
    """Of a workload's script what it defines, without what makes the guest ready."""
    text = (model.WORKLOADS / source).read_text()
    return text[text.index("settle() {"):]


class InTheGuest(unittest.TestCase):
    """lib.sh's count(), and what stress.sh makes of a run, in a shell of the host's."""

    def shell(self, script, *sources):
        with tempfile.TemporaryDirectory() as folder:
            for tool in ("awk", "sh", "cat"):
                os.symlink(shutil.which(tool), f"{folder}/{tool}")
            text = (TOP / "tests/kernel/lib.sh").read_text() + "".join(map(functions, sources))
            script = f"{text}\nset_mode() {{ echo MODE $*; }}\npoweroff() {{ exit 9; }}\n{script}"
            done = subprocess.run([f"{folder}/sh", "-c", script], env={"PATH": folder}, capture_output=True, text=True)
        return done.stdout.splitlines(), done.returncode

    def test_a_run_counts_once_and_is_not_repeated(self):
        lines, code = self.shell('settle() { echo SETTLED; }; run() { value="$1 0.5"; }; count p w off a,b run 7')
        self.assertEqual((lines, code), (["MODE p off", "SETTLED", "RESULT p w off a 7", "RESULT p w off b 0.5"], 0))

    COUNTS = "tlb 40\ncal 20\nflush_dirty_done 10\nstolen 80\npgscan_anon 90\npgsteal_anon 79\npgmajfault 3\n" \
             "oom_kill 1\nseconds 12.3\nbogo 5\n"

    def stress(self, command, out=COUNTS, more=""):
        return self.shell(f"""
path=dirty_flush workload=w mode=off stress_mib=512
loaded() {{ echo LOADED "$@"; out='{out}'; }}
lru=/dev/null tracing=/nowhere event=/nowhere
{more}
{command}
""", "stress.sh")

    def test_a_run_of_stress(self):
        names = [counter.metric for counter in next(
            row for row in rows.ROWS if row.workload == "stress-ng-4cpu").counters]
        lines, _ = self.stress('stress 4 gen 75; for v in $value; do echo "$v"; done')
        self.assertEqual(lines[0], "LOADED 4 128M 75 1200")
        self.assertEqual(dict(zip(names, lines[1:])), {
            "tlb_shootdowns_per_stolen": "0.500000", "call_ipis_per_stolen": "0.250000",
            "dirty_flushes_per_stolen": "0.125000", "pgscan_anon": "90", "pgsteal_anon": "79", "pages_stolen": "80",
            "major_faults": "3", "oom_kills": "1", "seconds": "12.3", "bogo_ops": "5"})

    def test_nothing_stolen(self):
        lines, code = self.stress("stress 4 classic 75", self.COUNTS.replace("stolen 80", "stolen 0"))
        self.assertEqual((lines[-1], code), ("mm_batch: job failed: w, mode off: nothing was stolen", 9))

    def test_no_such_lru(self):
        lines, code = self.stress("stress 4 new 75")
        self.assertEqual((lines[-1], code), ("mm_batch: job failed: w, mode off: no LRU new", 9))

    def test_the_floor(self):
        lines, _ = self.stress("floor 4")
        self.assertEqual(lines, ["LOADED 4 max 0 10", "NOTE dirty_flush w without a limit 40 shootdowns and "
                                                      "20 call IPIs in 12.3 s, 80 pages stolen"])

    def batches(self, *runs):
        trace = "".join(f"  stress-ng-12 [001] d..1. 1.{n}: mm_batch_run: path={path} nr_pages={nr} outcome={outcome}\n"
                        for n, (path, nr, outcome) in enumerate(runs))
        with tempfile.TemporaryDirectory() as folder:
            text = f"""tracing={folder} event={folder}
reclaimed() {{ echo RECLAIMED "$@"; cat >$tracing/trace <<'END'
{trace}END
}}"""
            lines, code = self.stress("batches 4 gen 75", more=text)
        self.assertEqual((lines[:2], code), (["MODE dirty_flush rust", "RECLAIMED 4 gen 75"], 0))
        return lines[2]

    def test_batches(self):
        done = [("dirty_flush", nr, "done") for nr in (1, 2, 3, 9, 15, 16, 30, 31, 31, 512)]
        self.assertEqual(self.batches(*done, ("dirty_flush", 7, "restored"), ("contig_free", 400, "done")),
                         "NOTE dirty_flush w 10 batches, of 65.0 pages on the mean; of 1 pages 10.0 %, "
                         "2-3 pages 20.0 %, 4-7 pages 0.0 %, 8-15 pages 20.0 %, 16-30 pages 20.0 %, "
                         "31 pages 20.0 %, more pages 10.0 %")

    def test_no_batch(self):
        self.assertEqual(self.batches(("anon_unmap", 16, "done")), "NOTE dirty_flush w no batch was traced")

    def pageout(self, command, out, stats="flush_dirty_done 17\n"):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "stats").write_text(stats)
            (pathlib.Path(folder) / "pageout").write_text(f"#!/bin/sh\necho {out}\n")
            (pathlib.Path(folder) / "pageout").chmod(0o755)
            text = functions("pageout.sh").replace("/pageout ", f"{folder}/pageout ")
            return self.shell(f"workload=w mode=off meter={folder}\n{text}\n{command}; echo $value $idle_allowed")

    def test_flushes(self):
        self.assertEqual(self.pageout("flushes 4 2 2", "PAGEOUT 4 whole ns 5 pages 512 left 2 idle 1")[0], ["0.033333"])
        self.assertEqual(self.pageout("flushes 64 2 2", "PAGEOUT 64 whole ns 5 pages 512 left 0 idle 1")[0],
                         ["0.531250"])
        lines, code = self.pageout("flushes 4 2 2", "PAGEOUT 4 whole ns 5 pages 512 left 40 idle 1")
        self.assertEqual((lines, code), (["mm_batch: job failed: w, mode off: 40 of 512 pages are still mapped"], 9))

    def test_whole(self):
        self.assertEqual(self.pageout("whole zero 4 2", "PAGEOUT 4 whole ns 5120 pages 512 left 0 idle 0")[0],
                         ["10.000 1000000"])
        # The clock jumps over idle time: such a part is repeated.
        self.assertEqual(self.pageout("whole zero 4 2", "PAGEOUT 4 whole ns 5120 pages 512 left 0 idle 1")[0],
                         ["10.000 -1"])
        lines, code = self.pageout("whole zero 4 2", "PAGEOUT 4 whole ns 5 pages 512 left 1 idle 0")
        self.assertEqual((lines, code), (["mm_batch: job failed: w, mode off: 1 of 512 pages are still mapped"], 9))


if __name__ == "__main__":
    unittest.main(verbosity=2)
