# SPDX-License-Identifier: GPL-2.0
"""What reads the meter's and the profile's figures, with inputs that are right and inputs that are not."""

import os
import pathlib
import tempfile
import unittest
from unittest import mock

from mmb import paths
from mmb.base.errors import Error
from mmb.paths import contig_free, dirty_flush, file_unmap
from mmb.kernel import tree
from mmb.measure import figures, meter, plots, profile, rows

SELFTEST = ["SELFTEST known_whole 1000000", "SELFTEST known_metered_raw 1070000",
            "SELFTEST known_metered_net 999000", "SELFTEST selftest pass"]


def run_lines(kib, how, on):
    """A run of 65536 pages, as the guest prints it."""
    calls = 262144 // kib
    # 1000 per page in the whole call, 500 of them in try_to_unmap(); the meter costs 75 and 9.
    own = calls * 75 + 65536 * 9 if on else 0
    stats = {"calls": calls, "pages": 65536, "ns": 33_000_000, "ns_net": 32_768_000, "runs": 65536, "run_pages": 65536,
             "runs_1": 65536, "runs_2": 0, "flush_dirty_asked": calls, "flush_dirty_done": 0, "flush_asked": calls,
             "flush_done": 0}
    stats = {name: value if on else 0 for name, value in stats.items()}
    stats |= {"cost_inside": "34.000", "cost_call": "75.000", "cost_run": "9.000"}
    return [f"PAGEOUT {on} {kib} {how} ns {65_536_000 + own} pages 65536 left 0 idle 0 interrupts 0",
            *(f"METER {on} {kib} {how} {name} {value}" for name, value in stats.items())]


def console():
    lines = list(SELFTEST)
    for kib, how in meter.SHAPES:
        for _ in range(meter.RUNS):
            lines += run_lines(kib, how, 0) + run_lines(kib, how, 1)
    return lines + SELFTEST


def given(**variables):
    """With these variables, and no others that the tools know."""
    none = dict.fromkeys(("ROW", "MODE", "ACCEL", "DEBUG", "CONFIG", "METER"), "")
    return mock.patch.dict(os.environ, none | variables)


class Meter(unittest.TestCase):
    def test_good(self):
        results = meter.Results(console())
        self.assertEqual(list(results.problems()), [])
        self.assertEqual(meter.cost_table(results)[1][:3], ["2048 KiB whole", "500.0", "503.5"])
        counts = meter.count_table(results)[1]
        self.assertEqual((counts[1], counts[-1]), ("128", "1:65536"))
        # Not every architecture counts its TLB flushes.
        self.assertEqual(counts[-2], "-")

    def test_wrong(self):
        """The first problem, of how many, if a word is another one."""
        for old, new, problem, how_many in (
                ("selftest pass", "selftest fail", "the meter's self test: 999000 metered instead of 1000000", 2),
                ("SELFTEST", "", "0 of 2 self tests", 1), ("PAGEOUT 1 64 whole", "", "64 KiB whole: 3 of 6 runs", 1),
                ("METER 1 4 whole ns_net", "", "4 KiB whole: the meter did not show all that it should", 1),
                ("METER 0 4 whole calls 0", "METER 0 4 whole calls 1", "4 KiB whole: something was counted with", 3),
                ("left 0", "left 9", "2048 KiB whole: 65536 pages, of which 65536 were metered, 65536 unmapped, 9", 12),
                ("METER 1 4 whole pages 65536", "METER 1 4 whole pages 64", "4 KiB whole: 65536 pages, of which 64", 3),
                ("cost_call 75.000", "cost_call 7.000", "4 KiB whole: the meter cost 5.51 M, by its own account", 1)):
            with self.subTest(old):
                found = list(meter.Results([line.replace(old, new) for line in console()]).problems())
                self.assertEqual((found[0][:len(problem)], len(found)), (problem, how_many))


SYMBOLS = ["ffffffff81000000 T _text", "ffffffff81000000 T _stext", "ffffffff81000100 t one", "ffffffff81000100 T two",
           "ffffffff81000200 t crate::free_run::<crate::Port>", "ffffffff810002f0 t __pfx_three",
           "ffffffff81000300 T three", "ffffffff81000400 t two.cold", "ffffffff81000480 t last",
           "ffffffff81000500 D data", "ffffffff81001000 B _end",
           "                 U undefined", "ffffffffa0000000 t run_set\t[mm_batch_bench]"]


IMAGE = profile.Image([line for line in SYMBOLS if "[" not in line], "x86_64")
IMAGE.where |= {profile.CLOCK: 0xffffffff81000100, file_unmap.RECLAIM.reader: 0xffffffff81000200,
                "do_madvise": 0xffffffff81000300, "do_syscall_64": 0xffffffff81000400}
MODULES = profile.Symbols(line for line in SYMBOLS if "[" in line)


class Profile(unittest.TestCase):
    def test_names(self):
        rust = "crate::free_run::<crate::Port>"
        for address, name in ((0x100, "two"), (0x1ff, "two"), (0x2f4, rust), (0x300, "three"), (0x410, "two")):
            self.assertEqual(IMAGE.name(0xffffffff81000000 + address), name)
        self.assertIsNone(profile.Symbols([]).name(1))

    def test_functions(self):
        dump = ["ffffffff81000104 5 32", "ffffffff81000404 1 2", "ffffffffa0000010 1 3", "400000 1 4", "end"]
        self.assertEqual(profile.functions(dump, IMAGE, MODULES), {"two": 0x34, "run_set": 3, "user space": 4})
        self.assertEqual(profile.functions(dump[2:], IMAGE, profile.Symbols([])),
                         {"code of other modules": 3, "user space": 4})
        for cut_short in [], dump[:1]:
            with self.assertRaisesRegex(Error, "no whole profile"):
                profile.functions(cut_short, IMAGE, MODULES)

    def test_difference_of_two_boots(self):
        few, many = (100, {"two": 5000, "three": 777}), (300, {"two": 15000, "three": 777, "one": 20})
        self.assertEqual(profile.per_unit(few, many), {"two": 50, "three": 0, "one": 0.1})

    def test_who_times_a_row(self):
        for boot, window in (
                (file_unmap.RECLAIM, "clock=ffffffff81000100,readers=ffffffff81000200-ffffffff81000300"),
                (contig_free.BENCH, "clock=ffffffff81000100,readers=8000000000000000-ffffffff81000000,"
                                    "readers=ffffffff81001000-ffffffffffffffff"),
                (dirty_flush.WHOLE, "call=ffffffff81000300,readers=ffffffff81000400-ffffffff81000480")):
            self.assertEqual(IMAGE.window(next(row for row in rows.ROWS if row.boot == boot)), window)

    def test_what_the_meter_spent_on_runs(self):
        lines, found = ["UNITS 100 30", "words", "UNITS 20 6"], {profile.METERED: 100, "two": 5}
        self.assertEqual(profile.without_meter(lines, found), (120, {profile.METERED: 64, "two": 5}))
        self.assertEqual(profile.without_meter(["UNITS 7", "UNITS 8"], {"two": 5}), (15, {"two": 5}))

    def test_a_second_boot_is_longer(self):
        for row in [row for row in rows.ROWS if row.boot.profiled]:
            few, many = (profile.job(row, "c", longer) for longer in (1, profile.MORE))
            self.assertNotEqual(few, many, row.workload)
            # Each command says of how many units it was, and says so in the shell that the guest has.
            self.assertIn(f"\n{row.command.split()[0]}_units() {{", few)
            if not row.boot.loops:
                self.assertEqual(many.count("UNITS"), profile.MORE * few.count("UNITS"))

    def test_table(self):
        by_mode = {"c": {"two": 60, "one": 40, "three": 0.5}, "rust": {"two": 30, "three": 0.2}}
        shown = profile.table(by_mode, {"c": 100, "rust": 30}, "page")
        self.assertEqual([line[0] for line in shown],
                         ["instructions per page", "two", "one", "the rest, each below 1%", "sum",
                          "as make evaluate measures it"])
        self.assertEqual(shown[3][1:3], ["0.50", "0.20"])
        self.assertEqual(shown[4][1:3], ["100.50", "30.20"])

    def test_what_report_has_of_it(self):
        row = next(row for row in rows.ROWS if row.workload == "call-64k")
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(profile, "TOP", pathlib.Path(folder)), \
                mock.patch.object(figures, "TOP", pathlib.Path(folder)):
            profile.written(row, {"rust": {"two": 60.004, "one": 0.5}}, "short", "head")
            self.assertEqual(figures.profiles(), {})
            profile.written(row, {"rust": {"two": 60.004, "one": 0.5}}, "full", "head")
            self.assertEqual(figures.profiles(), {"call-64k": {"rust": {"two": 60.0}}})

    def test_stages_of_a_call(self):
        for function, name in (("swap_writeout", "search for zeroes, write"), ("__mod_memcg_lruvec_state", "statistics"),
                               ("mod_node_page_state", "statistics"), ("try_to_unmap_one", "unmapping: PTEs, counts, flush"),
                               ("mm_batch_unmap_anon_run", "unmapping: PTEs, counts, flush"),
                               ("mm_batch::dirty_flush::x", "the loop, isolation, the call"),
                               ("shrink_batch_remove", "swap slots and swap cache"), ("two", plots.REST)):
            self.assertEqual(plots.stage(function), name)
        found = plots.by_stage({"swap_writeout": 5, "two": 1, "one": 2})
        self.assertEqual((found["search for zeroes, write"], found[plots.REST], sum(found.values())), (5, 3, 8))
        self.assertEqual(len(found), len(plots.SHADES))

    def test_the_sum_must_be_the_row(self):
        by_mode = {"c": {"two": 102.1}, "rust": {"two": 50}}
        self.assertEqual(len(list(profile.problems(by_mode, {"c": 100, "rust": 50}, 0))), 1)
        self.assertEqual(list(profile.problems(by_mode, {"c": 100, "rust": 50}, 0.002)), [])

    def test_chosen(self):
        # The very name of a row, though it begins that of another.
        for row, mode, modes in ("order9", "", ["c", "rust"]), ("vmalloc-p1-h0", "off", ["off"]):
            with given(ROW=row, MODE=mode):
                found, wanted = profile.chosen()
            self.assertEqual((found.workload, wanted), (row, modes))
        # Nothing tells the plugin when the first is timed.
        for wrong in ({"ROW": "pageout-2cpu"}, {}, {"ROW": "order"}, {"ROW": "order9", "MODE": "fast"},
                      {"ROW": "order9", "ACCEL": "kvm"}, {"ROW": "order9", "DEBUG": "1"}):
            with given(**wrong), self.assertRaises(Error):
                profile.chosen()


class Series(unittest.TestCase):
    @staticmethod
    def of(patches):
        return list(dict.fromkeys(str(p.parent.relative_to(tree.TOP / "patches")) for p in patches))

    def test_what_is_only_there_when_asked_for(self):
        plain = ["fixes", "reclaim_c", *paths.ORDER]
        self.assertEqual(tree.SERIES, plain)
        twins = ["better_c", "better_c/mode", "anon_unmap_c", "anon_unmap_c/mode", "dirty_flush_c", "contig_free_c",
                 "folio_batch_c"]
        for variables, folders in (({}, plain), ({"METER": "0", "CONFIG": "distro"}, plain),
                                   ({"METER": "1"}, [*plain, "meter"]),
                                   ({"METER": "1", "CONFIG": "better_c"}, [*plain, *twins, "meter"])):
            with given(**variables):
                self.assertEqual(self.of(tree.series()), folders)

    def test_every_folder_has_its_place(self):
        there = {p.name for p in (tree.TOP / "patches").iterdir() if p.is_dir()}
        evaluated = {"better_c", "anon_unmap_c", "dirty_flush_c", "contig_free_c", "folio_batch_c", "meter", "uml"}
        self.assertEqual(there - set(tree.SERIES) - evaluated, set())
