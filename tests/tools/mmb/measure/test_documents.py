# SPDX-License-Identifier: GPL-2.0
"""Documents are what their templates and the figures make, each time the same."""

import json
import re
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from ..base.cache import TOP
from ..base.errors import FAIL, PASS, Error
from . import documents, figures


def entry(mode, median, metric="insn"):
    return {"path": "p", "workload": "row", "metric": metric, "mode": mode, "median": median, "published": None}


class Documents(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.top = Path(folder.name)
        (self.top / "docs/templates").mkdir(parents=True)
        for name in figures.REPORTS.values():
            (self.top / "report" / name).mkdir(parents=True)
            (self.top / "report" / name / "results.json").write_text(json.dumps(
                {"results": [entry("off", 1000.0), entry("c", 200.0), entry("rust", 100.0), entry("off", 8.0, "more")]}))
        timed = [{"workload": "order9", "c": head, "mode": mode, "median": median} for head, mode, median in (
            ("C", "off", 60.0), ("C", "c", 6.0), ("C", "rust", 3.3))]
        ratios = [{"workload": "order9", "c": head, "over": over, "median": median, "low": 0.95 * median,
                   "high": 1.05 * median} for head, over, median in (
            ("C", "off", 20.0), ("C", "c", 2.0), ("twin", "off", 25.0), ("twin", "c", 2.0))]
        (self.top / figures.TIMES).mkdir()
        (self.top / figures.TIMES / "results.json").write_text(json.dumps(
            {"cpu": "one", "results": timed, "ratios": ratios}))
        for module in (documents, figures):
            patch = mock.patch.object(module, "TOP", self.top)
            patch.start()
            self.addCleanup(patch.stop)
        patches = (mock.patch.object(documents, "TEMPLATES", self.top / "docs/templates"),
                   mock.patch.dict("sys.modules", {"mmb.measure.plots": mock.Mock(PLOTS={"p": self.draw})}))
        for patch in patches:
            patch.start()
            self.addCleanup(patch.stop)

    @staticmethod
    def draw(_, file):
        file.write_text("a plot\n")

    def template(self, text):
        (self.top / "docs/templates/README.md.j2").write_text(text)

    def test_filled_in(self):
        self.template('{{ release.ratio("row", "off", "rust")|shown }} {{ release.median("row", "none")|shown }} '
                      '{{ release.ratio("row", "rust", "c")|percent }} {{ release.ratios("p", "rust", "c")|span(1) }}\n')
        self.assertEqual(documents.make_report(), PASS)
        self.assertEqual((self.top / "README.md").read_text().splitlines()[2:], ["10.00 - -50 % 0.5 to 0.5"])
        self.assertEqual((self.top / "docs/plots/p.svg").read_text(), "a plot\n")

    def test_time(self):
        self.template('{{ time.about.cpu }} {{ time.rows|join }} {{ time.median("order9", "rust") }} '
                      '{{ time.median("order3", "c", "twin")|shown }} {{ time.ratio("order9", "off") }} '
                      '{{ time.ratio("order9", "c") }}\n')
        documents.make_report()
        self.assertEqual((self.top / "README.md").read_text().splitlines()[2:], ["one order9 3.3 - 20.00 ±5% 2.00 ±5%"])

    def test_gains_in_time(self):
        found = figures.Times()
        found.ratios = {(row, over, head): mock.Mock(median=median) for row, over, head, median in (
            ("ext4-4k", "off", "C", 1.0), ("ext4-16k", "off", "C", 1.2), ("ext4-4k", "off", "twin", 0.9),
            ("ext4-4k", "c", "C", 0.8), ("zero-4k", "off", "C", 1.4))}
        self.assertEqual(found.gains("ext4-"), (1.0, 1.2))
        self.assertEqual(found.gains("ext4-16", "zero-"), (1.2, 1.4))

    def test_time_in_parts_of_off(self):
        """A kernel's own off."""
        found = figures.Times().of_off("order9")
        self.assertEqual({mode: round(part, 3) for mode, part in found.items()}, {"C": 0.1, "twin": 0.08, "Rust": 0.05})
        self.assertEqual(figures.Times().of_off("vmalloc-p512-h1"), {})

    def test_what_differs_is_named_and_left(self):
        self.template("1\n")
        documents.make_report()
        self.assertEqual(documents.make_report(check=True), PASS)
        for place in ("README.md", "docs/plots/p.svg", "docs/plots/gone.svg"):
            before = (self.top / place).read_text() if (self.top / place).exists() else None
            (self.top / place).write_text("by hand\n")
            self.assertEqual(documents.make_report(check=True), FAIL, place)
            self.assertEqual((self.top / place).read_text(), "by hand\n")
            documents.make_report()
            self.assertEqual((self.top / place).read_text() if (self.top / place).exists() else None, before)

    def test_what_was_not_measured_is_an_error(self):
        for text, said in (('{{ release.median("other", "off") }}', "no row other"),
                           ('{{ release.median("row", "off", "ns") }}', "no ns row"),
                           ("{{ nonsense }}", "README.md.j2"), ("{% if %}", "README.md.j2")):
            self.template(text)
            with self.assertRaisesRegex(Error, said):
                documents.make_report()


class Plots(unittest.TestCase):
    def test_the_same_each_time(self):
        from .plots import PLOTS
        with tempfile.TemporaryDirectory() as folder:
            for name, draw in PLOTS.items():
                files = [Path(folder) / f"{name}{i}.svg" for i in range(2)]
                for file in files:
                    draw(figures.all_figures(), file)
                self.assertEqual(*(file.read_bytes() for file in files))


class Links(unittest.TestCase):
    def test_lead_somewhere(self):
        texts = {file: file.read_text() for file in (TOP / "README.md", *(TOP / "docs").glob("*.md"))}
        for file, text in texts.items():
            for link in re.findall(r"\]\(([^)]+)\)", text):
                place, _, anchor = link.partition("#")
                target = (file.parent / place).resolve() if place else file
                self.assertTrue(target.exists(), f"{file.name}: {link}")
                self.assertTrue(not anchor or f'id="{anchor}"' in texts[target], f"{file.name}: {link}")


if __name__ == "__main__":
    unittest.main()
