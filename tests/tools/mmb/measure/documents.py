# SPDX-License-Identifier: GPL-2.0
"""`make report`: the documents that have figures, from docs/templates/, and the plots that they show. Nothing in them
is copied by hand; lint fails if what is committed is not what comes out here.
"""

import tempfile
from pathlib import Path

from ..base.cache import TOP
from ..base.errors import FAIL, PASS, Error, say
from ..base.tables import number
from .figures import all_figures

TEMPLATES = TOP / "docs/templates"
FOLDER = "docs/plots"


def shown(value, digits=2):
    """A figure, or a dash where there is none."""
    return number(value, digits)


def percent(value):
    """A quotient, as what changed."""
    return "-" if value is None else f"{round(100 * (value - 1)):+d} %"


def span(pair, digits=2):
    return " to ".join(shown(value, digits) for value in pair)


def rendered(figures):
    """Path in the work tree -> text, of each document that has a template."""
    import jinja2
    loader = jinja2.FileSystemLoader(TEMPLATES)
    env = jinja2.Environment(loader=loader, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True,
                             keep_trailing_newline=True)
    env.filters |= {"shown": shown, "percent": percent, "span": span}
    found = {}
    for template in sorted(TEMPLATES.glob("*.md.j2")):
        name = template.name.removesuffix(".j2")
        place = name if name == "README.md" else f"docs/{name}"
        head = f"<!-- SPDX-License-Identifier: GPL-2.0 -->\n<!-- By make report, of docs/templates/{template.name} -->\n"
        try:
            found[place] = head + env.get_template(template.name).render(figures)
        except jinja2.TemplateError as error:
            raise Error(f"{template.relative_to(TOP)}: {error}", "correct it") from None
    return found


def make_report(check=False):
    """Writes what differs, or with `check` only names it."""
    from .plots import PLOTS
    figures = all_figures()
    texts = rendered(figures)
    with tempfile.TemporaryDirectory() as folder:
        for name, draw in PLOTS.items():
            file = Path(folder) / f"{name}.svg"
            draw(figures, file)
            texts[f"{FOLDER}/{name}.svg"] = file.read_text()
    stale = [place for place, text in texts.items() if not (TOP / place).exists() or (TOP / place).read_text() != text]
    gone = [str(file.relative_to(TOP)) for file in (TOP / FOLDER).glob("*.svg") if f"{FOLDER}/{file.name}" not in texts]
    if check:
        for place in stale + gone:
            say(f"{place} is not what make report makes of report/ and docs/templates/")
        return FAIL if stale or gone else PASS
    for place in stale:
        (TOP / place).parent.mkdir(parents=True, exist_ok=True)
        (TOP / place).write_text(texts[place])
        say(f"wrote {place}")
    for place in gone:
        (TOP / place).unlink()
        say(f"removed {place}")
    say(f"report: {len(texts)} documents and plots, {len(stale)} of them new")
    return PASS
