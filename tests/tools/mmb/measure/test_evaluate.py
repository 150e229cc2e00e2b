# SPDX-License-Identifier: GPL-2.0
"""make evaluate, itself tested: what guests are told to run, what they make of it, and what is refused."""

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
from mmb.paths import contig_free, file_unmap, model
from mmb.guest import initrd, payload, splats
from mmb.guest.boot import Ended
from mmb.measure import evaluate, report, rows, verdict
from mmb.measure.test_verdict import BOOT, COUNTING, LIMITS, ROW

PACKAGED = dataclasses.replace(COUNTING, boot=dataclasses.replace(BOOT, debian=("stress-ng",)))


class Wall(unittest.TestCase):
    """With ACCEL=kvm: what one is sure of."""

    def test_medians_and_signs(self):
        values = {"c": [20.0] * 11, "off": [30.0] * 10, "rust": [10.0] * 10}
        self.assertEqual(evaluate.sure_of([verdict.Line(ROW, {"m": values})]).splitlines()[1].split(),
                         ["w", "30.0", "20.0", "10.0", "3.00", "±0%", "(I)", "2.00", "±0%", "(I)"])

    def test_too_few_runs(self):
        self.assertEqual(evaluate.sure_of([verdict.Line(ROW, {"m": {"off": [1.0] * 5, "rust": [1.0] * 5}})]), "")


class Jobs(unittest.TestCase):
    def test_one_kind_of_boot_and_every_mode(self):
        for row, config in itertools.product(rows.ROWS, model.CONFIGURATIONS):
            job = [line.split() for line in rows.job([row], config, "short", 3, 1).splitlines()]
            runs = [words for words in job if words[:1] == ["count" if row.counts else "row"]]
            modes = [words[3] for words in runs]
            self.assertEqual(modes, rows.runs_of(row, config, 3))
            if row.counts:
                self.assertEqual(modes, ["off", "rust"] * 5)
            else:
                self.assertEqual((modes[0], set(modes)), (modes[-1], set(rows.modes_of(row, config))))
            self.assertEqual({words[4] for words in runs}, {",".join((row.metric, *row.more))})

    def test_what_is_said_beside_is_behind_all_runs(self):
        *_, run, after = rows.job([COUNTING], "release", "full", 3, 1).splitlines()
        self.assertEqual((run, after), ("count dirty_flush w rust rate,flushes,oom_kills,scanned stress 4 gen "
                                        "250000", "batches 4 gen 250000"))

    def test_free_lists_are_not_those_of_booting(self):
        bench, other = ([r for r in rows.ROWS if r.boot == kind] for kind in (contig_free.BENCH, file_unmap.RECLAIM))
        job = rows.job(bench, "release", "short", 3, 4).splitlines()
        before = job[:[line.startswith("row ") for line in job].index(True)]
        first = bench[0]
        loops = [f"set_mode {first.path} {mode} && settle && {first.command_for('short', 4)}"
                 for mode in rows.modes_of(first, "release")]
        self.assertEqual(before[-4:], [*loops, "default_modes"])
        self.assertNotRegex(rows.job(other, "release", "short", 3, 4), "(?m)^set_mode")

    def test_longer_is_longer(self):
        for row in [row for row in rows.ROWS if not row.counts]:
            short = rows.job([row], "release", "short", 3, 1)
            self.assertNotEqual(short, rows.job([row], "release", "short", 3, 4))

    def test_sizes(self):
        """What is mapped fits, and reaches the workload."""
        reclaim = [r for r in rows.ROWS if r.boot == file_unmap.RECLAIM]
        for given, mib, memory, disk in ("", "32", 2048, 2048), ("10240", "10240", 13824, 12800):
            with mock.patch.dict(os.environ, {"RECLAIM_MIB": given}), \
                    mock.patch.object(rows, "scratch_image", lambda mib: mib):
                guest, text = rows.guest(file_unmap.RECLAIM), rows.job(reclaim, "release", "full", 1, 4)
            self.assertEqual((guest["memory"], guest["drives"]), (memory, [disk]))
            self.assertIn(" init_on_alloc=0", guest["arguments"])
            # Those that many tasks map are of a size of their own.
            sizes = {line.split()[8] for line in text.splitlines() if line.startswith("row ") and "tasks" not in line}
            self.assertEqual(sizes, {mib})
            self.assertTrue(text.startswith(f"mib={mib}\n"))
            self.assertIn("\nswap_on $((mib > 512 ? mib : 512))\n", text)
        for given, memory in (("", 2048), ("512", 3584)):
            with mock.patch.dict(os.environ, {"STRESS_MIB": given}):
                found = rows.guest(BOOT)
                self.assertEqual((found["cpus"], found["threads"], found["memory"]), (4, True, memory))
                self.assertIn(f"\nstress_mib={4 * int(given or 128)}\n", BOOT.commands())

    def test_only_this_paths_mode_changes(self):
        for row in paths.PATHS["dirty_flush"].rows:
            self.assertIn(" mm_batch.anon_unmap=rust", rows.guest(row.boot)["arguments"], row.workload)

    def test_known(self):
        def names(*how):
            return {row.workload for row in rows.known(*how)}

        long = {"pageout-16cpu", "stress-ng-16cpu", "pageout-16k", "pageout-64k", "pageout-2m", "stress-ng-4cpu-20s",
                "stress-ng-4cpu-classic-20s"}
        self.assertEqual(names("x86_64", "full") - names("x86_64", "short"), long)
        self.assertEqual(names("x86_64", "full"), {row.workload for row in rows.ROWS})
        self.assertEqual({row.boot.threads for row in rows.known("arm64", "full")}, {False})
        limits = {(r.gains, *r.more_gains.items()) for r in rows.known("arm64", "full")}
        self.assertEqual(limits, {(model.NONE,)})
        lost = {r.workload for r in rows.ROWS if r.not_above != model.NONE} - {
            r.workload for r in rows.known("arm64", "full") if r.not_above != model.NONE}
        self.assertEqual(lost, {"whole-4k", "whole-64k"})
        against_c = [r.limits.release for r in rows.known("arm64", "full") if rows.modes_of(r, "release") == ("off", "c", "rust")]
        self.assertLessEqual(max(against_c), 1.02)
        self.assertTrue(any(row.more_gains for row in rows.known("x86_64", "short")))
        self.assertIn("whole-4k", names("arm64", "short"))
        with mock.patch.dict(os.environ, {"ROW": "pageout-16cpu"}):
            self.assertEqual(len(evaluate.chosen_rows(rows.known("x86_64", "full"))), 1)
            with self.assertRaisesRegex(Error, "ROW=pageout-16cpu matches no row"):
                evaluate.chosen_rows(rows.known("x86_64", "short"))

    def test_what_is_fetched(self):
        timed = rows.ROWS[0]
        for selected, wanted in (([timed], []), ([timed, COUNTING], ["qemu"]), ([PACKAGED], ["qemu", "guest"])):
            found = []
            with mock.patch.object(evaluate, "emulator", lambda _arch, threads: found.append("qemu")), \
                    mock.patch.object(initrd, "tree", lambda _: found.append("guest")):
                evaluate.fetch("x86_64", selected)
            self.assertEqual(found, wanted)


# The stubs of what needs a kernel; HERE is a folder, which has what is in PATH and no more.
STUBS = """
set_mode() { echo MODE $*; }
poweroff() { exit 9; }
"""
ROW_RUN = """
set_mode() { :; }
settle() { settled=$((settled + 1)); }
n=0
workload() { n=$((n + 1)); %s; }
idle() { %s; }
parts=2
row p w c %s workload
"""
STRESS = """
path=dirty_flush workload=w mode=off stress_mib=512 lru=/dev/null tracing=/nowhere event=/nowhere
loaded() { echo LOADED "$@"; out="tlb 40
cal 20
flush_dirty_done 10
stolen ${stolen-80}
pgscan_anon 90
pgsteal_anon 79
refault_anon 15
refault_file 5
pgmajfault 3
oom_kill 1
seconds 12.3
bogo 5"; }
"""
FAILED = "mm_batch: job failed: w, mode off: "


class InTheGuest(unittest.TestCase):
    """lib.sh, and what workloads make of a run, in a shell of the host's."""

    def shell(self, script, *workloads, **files):
        """The lines and the exit code of a script behind lib.sh, and of workloads all that is behind `settle`."""
        text = (TOP / "tests/kernel/lib.sh").read_text()
        for name in workloads:
            _, settle, functions = (model.WORKLOADS / name).read_text().partition("settle() {")
            text += settle + functions
        text = (text + STUBS + script).replace("/splats", "HERE/splats").replace("/pageout ", "HERE/pageout ")
        with tempfile.TemporaryDirectory() as folder:
            for tool in ("awk", "cat", "grep", "sh", "true"):
                os.symlink(shutil.which(tool), f"{folder}/{tool}")
            for name, content in files.items():
                pathlib.Path(folder, name).write_text(content)
                pathlib.Path(folder, name).chmod(0o755)
            done = subprocess.run([f"{folder}/sh", "-c", text.replace("HERE", folder)], env={"PATH": folder},
                                  capture_output=True, text=True)
        return done.stdout.splitlines(), done.returncode

    def test_row(self):
        for workload, idle, metrics, lines in (
                # The mean of the parts: of three, the first does not count.
                ('value="$n.5"', "echo 0", "m", ["RESULT p w c m 3.000"]),
                # Nothing is left of the last row.
                ("value=$((settled - n))", "echo 0", "m", ["RESULT p w c m 0.000"]),
                ('value="$n $((n * 100))"', "echo 0", "m,n", ["RESULT p w c m 2.500", "RESULT p w c n 250.000"]),
                ("value=$n; ticks=$((n >= 2))", "echo ${ticks:-0}", "m",
                 ["REPEAT p w c: idle for 1 ticks", "RESULT p w c m 3.500"])):
            with self.subTest(workload):
                self.assertEqual(self.shell(ROW_RUN % (workload, idle, metrics)), (lines, 0))
        lines, code = self.shell(ROW_RUN % ("value=$n", 'echo "$n"', "m"))
        self.assertEqual((len(lines), code), (5, 9))
        self.assertEqual(lines[-1], "mm_batch: job failed: w, mode c: too much idle time")
        self.assertEqual(self.shell(ROW_RUN % ("fail 'no luck'", "echo 0", "m")),
                         (["mm_batch: job failed: w, mode c: no luck"], 9))

    def test_what_the_kernel_complained_of(self):
        """The end of a job, as init has it, after the kernel printed a log."""
        end = 'dmesg() { cat HERE/log; }\nworkload=\nno_complaint\n'
        for line in ("all is well", "[ 0.2] WARNING: arch/x86/kernel/smpboot.c:332 at topology_sane", "[ 1.0] BUG: x",
                     "[ 1.0] pagealloc: memory corruption"):
            complaint = ([f"mm_batch: job failed: the kernel complained: {line}"], 9) if line[0] == "[" else ([], 0)
            log = f"[ 0.1] up\n{line}\n[ 9.0] on\n"
            self.assertEqual(self.shell(end, splats=splats.for_grep(), log=log), complaint)

    def test_a_run_counts_once_and_is_not_repeated(self):
        lines, code = self.shell('settle() { echo SETTLED; }; run() { value="$1 0.5"; }; count p w off a,b run 7')
        self.assertEqual((lines, code), (["MODE p off", "SETTLED", "RESULT p w off a 7", "RESULT p w off b 0.5"], 0))

    def test_stress(self):
        names = [counter.metric for counter in next(
            row for row in rows.ROWS if row.workload == "stress-ng-4cpu").counters]
        lines, _ = self.shell(STRESS + 'stress 4 gen 75; for v in $value; do echo "$v"; done', "stress.sh")
        self.assertEqual(lines[0], "LOADED 4 128M 75 1200")
        self.assertEqual(dict(zip(names, lines[1:])), {
            "tlb_shootdowns_per_stolen": "0.500000", "call_ipis_per_stolen": "0.250000",
            "dirty_flushes_per_stolen": "0.125000", "scanned_per_stolen": "1.139241", "refaults_per_stolen": "0.250000",
            "pgscan_anon": "90", "pgsteal_anon": "79", "pages_stolen": "80",
            "major_faults": "3", "oom_kills": "1", "seconds": "12.3", "bogo_ops": "5"})
        for command, last, ended in (
                ("stolen=0; stress 4 classic 75", FAILED + "nothing was stolen", 9),
                ("stress 4 new 75", FAILED + "no LRU new", 9),
                ("floor 4", "NOTE dirty_flush w without a limit 40 shootdowns and 20 call IPIs in 12.3 s, "
                            "80 pages stolen", 0)):
            lines, code = self.shell(STRESS + command, "stress.sh")
            self.assertEqual((lines[-1], code), (last, ended))

    def test_all_paths(self):
        """Each has the row's mode while it runs, and then what it was booted with."""
        script = 'path=b mode=rust modes="a:off b:rust" params=HERE\nreclaim() { echo RUN "$@"; }\nall_paths anon 4'
        lines, _ = self.shell(script, "reclaim.sh", a="", b="")
        before = [line.split()[1:] for line in lines[:lines.index("RUN anon 4")]]
        self.assertLessEqual({("a", "rust"), ("b", "rust")}, set(map(tuple, before)))
        self.assertEqual({mode for _, mode in before}, {"rust"})
        self.assertEqual(lines[len(before):], ["RUN anon 4", "MODE a off", "MODE b rust", "MODE b rust"])

    def test_batches(self):
        done = [("dirty_flush", nr, "done") for nr in (1, 2, 3, 9, 15, 16, 31, 32, 32, 512)]
        for runs, note in (
                ([*done, ("dirty_flush", 7, "restored"), ("contig_free", 400, "done")],
                 "10 batches, of 65.3 pages on the mean; of 1 pages 10.0 %, 2-3 pages 20.0 %, 4-7 pages 0.0 %, "
                 "8-15 pages 20.0 %, 16-31 pages 20.0 %, 32 pages 20.0 %, more pages 10.0 %"),
                ([("anon_unmap", 16, "done")], "no batch was traced")):
            trace = "".join(f"  stress-ng-12 [001] d..1. 1.2: mm_batch_run: path={path} nr_pages={nr} outcome={end}\n"
                            for path, nr, end in runs)
            traced = 'tracing=HERE event=HERE\nreclaimed() { echo RECLAIMED "$@"; cat HERE/traced >$tracing/trace; }\n'
            self.assertEqual(self.shell(STRESS + traced + "batches 4 gen 75", "stress.sh", traced=trace),
                             ([*["MODE dirty_flush rust"] * 2, "RECLAIMED 4 gen 75", "NOTE dirty_flush w " + note], 0))

    def test_pageout(self):
        mapped = FAILED + "{} of 512 pages are still mapped"
        for command, ns, left, idle, wanted, code in (
                ("flushes 4 2 2", 5, 2, 1, "0.033333 0.066667", 0),
                ("flushes 64 2 2", 5, 0, 1, "0.531250 0.066406", 0),
                ("flushes 4 2 2", 5, 40, 1, mapped.format(40), 9),
                ("whole zero 4 2", 5120, 0, 0, "10.000 1000000", 0), ("whole zero 4 2", 5, 1, 0, mapped.format(1), 9),
                # The clock jumps over idle time: such a part is repeated.
                ("whole zero 4 2", 5120, 0, 1, "10.000 -1", 0)):
            program = f"#!/bin/sh\necho PAGEOUT {command.split()[-2]} whole ns {ns} pages 512 left {left} idle {idle}\n"
            script = f"workload=w mode=off meter=HERE\n{command}; echo $value $idle_allowed"
            with self.subTest(command, left=left, idle=idle):
                self.assertEqual(self.shell(script, "pageout.sh", stats="flush_dirty_done 17\nrmap_locks 34\n",
                                            pageout=program),
                                 ([wanted], code))


class Booted(unittest.TestCase):
    """Boots, of which each prints other figures."""

    def run_of(self, selected, config="release"):
        figures, asked = itertools.count(1), []

        def booted(_build, on_line, **how):
            scale = next(figures)
            runs = [line.split() for line in how["initrd"].splitlines() if line.startswith(("row ", "count "))]
            lines = [f"RESULT {path} {workload} {mode} {metric} {scale * {'c': 100, 'off': 300, 'rust': 50}[mode]}"
                     for _, path, workload, mode, metrics, *_ in runs for metric in metrics.split(",")]
            asked.append(how)
            for line in lines:
                on_line(line)
            notes = ["NOTE dirty_flush w said", "NOTE dirty_flush other not"]
            return Ended(PASS, "finished", [*lines, *notes, initrd.DONE])

        def archive(_folder, job, _modules, _programs, _arch, debian):
            asked.append({"debian": debian})
            return job

        with tempfile.TemporaryDirectory() as name, mock.patch.object(rows, "boot", booted), \
                mock.patch.object(initrd, "archive", archive), \
                mock.patch.object(rows, "scratch_image", lambda mib: "disk"):
            image, steps = pathlib.Path(name, "image"), mock.Mock()
            image.write_text("kernel")
            build = mock.Mock(arch="x86_64", named=config, image=image)
            lines = evaluate.Boots(build, [], [], pathlib.Path(name), steps).run(selected, "short", 3, 1)
        self.assertEqual(steps.progress.call_args.args[0], 1)
        return lines, asked

    def test_each_boots_ratios_are_its_own(self):
        """A figure of one boot is never set against one of another."""
        selected = [row for row in rows.ROWS if "c" in rows.modes_of(row, "release")]
        lines, _ = self.run_of(selected)
        self.assertEqual([line.row for line in lines], selected)
        ratios = {(line.ratio("rust", "c"), line.ratio("off", "rust"), line.noise) for line in lines}
        self.assertEqual(ratios, {(0.5, 6, 0)})
        self.assertEqual(len({line.median("c") for line in lines}), len({row.boot for row in selected}))

    def test_a_row_that_counts(self):
        """Its figures and notes, of a guest that has the packages' programs."""
        (found,), (packages, asked) = self.run_of([PACKAGED], "better_c")
        self.assertEqual((asked["threads"], asked["cpus"], packages["debian"]), (True, 4, ("stress-ng",)))
        self.assertEqual((found.notes, found.scale, found.noise), (["said"], "short", 0))
        self.assertAlmostEqual(found.change("flushes"), -83.3, 1)


class Verdict(unittest.TestCase):
    """make evaluate, but for its boots: its exit code, and where it writes."""

    def evaluated(self, config, rust, frames=None):
        values = {"c": [100e6, 100e6], "off": [500e6], "rust": [rust]}
        row = dataclasses.replace(ROW, limits=LIMITS, more=())
        build = mock.MagicMock(arch="x86_64", named=config or "release")
        build.base.work = pathlib.Path("/nowhere")
        with tempfile.TemporaryDirectory() as folder, mock.patch.dict(
                os.environ, {"CONFIG": config, "ROW": "", "DEBUG": "", "ACCEL": "", "EXTRA_CONFIG": "", "KDIR": ""}), \
                mock.patch.object(rows, "ROWS", [row]), mock.patch.object(evaluate, "TOP", pathlib.Path(folder)), \
                mock.patch.object(evaluate, "staged_build", return_value=(build, mock.Mock())), \
                mock.patch.object(evaluate, "payload", mock.Mock(STEP={})), \
                mock.patch.object(evaluate.Boots, "run", return_value=[verdict.Line(row, {"m": values})]), \
                mock.patch.object(evaluate.stack, "stack", return_value=frames), \
                mock.patch.object(report, "results", return_value={}), \
                mock.patch.object(report, "markdown", return_value=""), mock.patch("builtins.print"):
            code = evaluate.evaluate("x86_64", "full")
            return code, [str(p.relative_to(folder)) for p in pathlib.Path(folder).rglob("*.json")]

    def test_beyond_a_limit(self):
        for config, rust, code in (("", 70e6, PASS), ("", 76e6, FAIL), ("distro", 76e6, PASS), ("distro", 91e6, FAIL),
                                   ("better_c", 59e6, PASS), ("better_c", 61e6, FAIL), ("noinline", 900e6, PASS)):
            name = f"report/x86_64{config and '-' + config}/results.json"
            self.assertEqual(self.evaluated(config, rust), (code, [name]), config)

    def test_a_stack_beyond_its_limit(self):
        for config, bytes_, code in ("", 900, PASS), ("", 901, FAIL), ("distro", 1000, PASS):
            frames = {"shrink_folio_list": 600, "to_write": bytes_, "to_clear": 2000}
            self.assertEqual(self.evaluated(config, 59e6, frames)[0], code, bytes_)


class Countable(unittest.TestCase):
    """Rows that count what a kernel may not count."""

    def test_rows_are_left_out_by_name(self):
        none, some = mock.Mock(symbol={}.get), mock.Mock(symbol={"CONFIG_DEBUG_TLBFLUSH": "y"}.get)
        self.assertEqual(rows.countable(some, rows.ROWS), rows.ROWS)
        with mock.patch.object(rows, "say") as said:
            left = rows.countable(none, rows.ROWS)
        out = [row for row in rows.ROWS if row not in left]
        self.assertLessEqual({"victim-4cpu", "file-pageout-4cpu"}, {row.workload for row in out})
        self.assertIn("CONFIG_DEBUG_TLBFLUSH is not set: ", said.call_args.args[0])
        with self.assertRaisesRegex(Error, "no row is left"):
            rows.countable(none, out)


class Interrupted(unittest.TestCase):
    """A run whose last boot fails, and the next one."""

    def test_boots_that_ended_are_not_repeated(self):
        kinds = [dataclasses.replace(BOOT, name=name, threads=False) for name in ("one", "two")]
        some = [dataclasses.replace(ROW, workload=kind.name, more=(), boot=kind) for kind in kinds]
        booted, fails = [], ["two"]

        def done(_build, console, *_, on_line, **__):
            name = console.parent.name
            booted.append(name)
            if name in fails:
                raise Error("no end", "look")
            console.parent.mkdir(exist_ok=True)
            lines = [f"RESULT {some[0].path} {name} {mode} {some[0].metric} 100" for mode in runs]
            for line in lines:
                on_line(line)
            return lines

        runs = rows.runs_of(some[0], "release", 1)
        with tempfile.TemporaryDirectory() as name, mock.patch.object(rows, "done", done), \
                mock.patch.object(rows, "guest", lambda _: {}), mock.patch.object(evaluate, "say"), \
                mock.patch.object(evaluate, "side_by_side", lambda booted, kinds: list(map(booted, kinds))):
            image = pathlib.Path(name, "image")
            image.write_text("kernel")
            boots = evaluate.Boots(mock.Mock(image=image, named="release"), [], [], pathlib.Path(name), mock.Mock())
            with self.assertRaisesRegex(Error, "no end"):
                boots.run(some, "short", 1, 1)
            fails.clear()
            lines = boots.run(some, "short", 1, 1)
            self.assertEqual([line.row.workload for line in lines], ["one", "two"])
            self.assertEqual(booted, ["one", "two", "two"])
            for again in image.write_text, lambda _: boots.forget():
                booted.clear()
                again("another kernel")
                boots.run(some, "short", 1, 1)
                self.assertEqual(booted, ["one", "two"])


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
        kind = dataclasses.replace(file_unmap.RECLAIM, disk=False)
        self.refused("job failed: no scratch disk", dataclasses.replace(self.row, boot=kind))

    def test_a_metric_is_missing(self):
        self.refused("^ext4-64k has no insn_none: ", dataclasses.replace(self.row, more=("insn_total", "insn_none")))
