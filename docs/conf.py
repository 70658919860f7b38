"""Sphinx settings: hand-written pages, formulations and figures generated from code and data, executed lessons."""

from __future__ import annotations

import ast
import inspect
import logging
import re
import shutil
import textwrap
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import GenericAlias
from typing import TYPE_CHECKING, Any, TypeVar

from jupyter_client import KernelManager
from typer import Typer

import schedgap as sg
from schedgap.harness.ask.explain.formats import to_markdown
from schedgap.harness.engine.environment import code_digest
from schedgap.harness.engine.result import grouped
from schedgap.harness.show.measures import TABLES
from schedgap.harness.show.page import blocks
from schedgap.harness.show.page.columns import COMPARE, GROWTH, REPRODUCE
from schedgap.harness.show.page.compare import answers
from schedgap.harness.show.page.reproduce import notes
from schedgap.harness.show.table import Line, Table, of_texts, table
from schedgap.harness.show.table import to_markdown as to_table
from schedgap.harness.show.text import ABSENT, percent, seconds
from schedgap.harness.studies.compare.kept import measured, read_kept
from schedgap.harness.studies.compare.row import Row
from schedgap.harness.studies.reproduce.row import VERDICTS, Reproduction, kind, read_rows
from schedgap.harness.studies.reproduce.setting import known
from schedgap.harness.studies.statistics import statistics
from schedgap.heuristics import HEURISTICS
from schedgap.instances.registry import PAPERS
from schedgap.models import MODELS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sphinx.application import Sphinx

ROOT = Path(__file__).parents[1]

# Copies, since links between the pages of a linked folder lead out of the site.
shutil.rmtree(ROOT / "docs/lessons", ignore_errors=True)
shutil.copytree(ROOT / "notebooks", ROOT / "docs/lessons", ignore=shutil.ignore_patterns(".ipynb_checkpoints"))

# Otherwise the theme's highlighting configures logging globally, and the notebook client logs everything.
logging.basicConfig(level=logging.WARNING)
# Encrypt the connection to the kernels that execute lessons: they warn about unencrypted ones.
KernelManager.transport_encryption.default_value = "auto"

project = html_title = "schedgap"
version = release = sg.__version__
extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx-mathjax-offline",
]
html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
exclude_patterns = ["lessons/README.md"]  # the page on teaching includes it
html_copy_source = html_show_copyright = False
templates_path = ["_templates"]
# The site contains all of MathJax, so formulas are typeset without a network.
mathjax_path = "mathjax/tex-chtml-full.js"
myst_enable_extensions = ["amsmath", "colon_fence", "dollarmath"]
myst_heading_anchors = 3
nb_execution_mode = "cache"
nb_execution_raise_on_error = True
nb_execution_timeout = 600
# Cache the outputs of lessons for as long as the lessons and the code stay the same.
nb_execution_cache_path = str(ROOT / "build/executed" / code_digest())
# Widget scripts come from another host: for lessons with sliders, the site shows the initial picture.
nb_ipywidgets_js = {}
# Charts of lessons are live in notebooks only; the site shows their pictures.
suppress_warnings = ["mystnb.unknown_mime_type"]
nb_mime_priority_overrides = [("*", "application/vnd.jupyter.widget-view+json", None)]
numpydoc_show_class_members = False
autodoc_typehints = "none"
default_role = "code"


def code_of(method: str) -> str:
    """Return the source code that states a method."""
    code: Any = MODELS.get(method).build if method in MODELS else HEURISTICS.get(method).run
    while isinstance(code, partial):
        code = code.func
    return source_of(inspect.unwrap(code))


def source_of(definition: Callable[..., Any]) -> str:
    """Return the source of a function or class, with only the first line of its docstring."""
    lines = textwrap.dedent(inspect.getsource(definition)).splitlines(keepends=True)
    parsed = ast.parse("".join(lines)).body[0]
    if isinstance(parsed, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(parsed):
        first, last = parsed.body[0].lineno, parsed.body[0].end_lineno
        if last != first:
            lines[first - 1 : last] = [lines[first - 1].rstrip("\n") + '"""\n']
    return "".join(lines)


def formulations(app: Sphinx) -> None:
    """Write a page per paper: the statement of every model and algorithm, followed by its code."""
    for paper in PAPERS:
        page = [f"---\ntocdepth: 2\n---\n# {heading(paper.id)}\n\n{paper.title}\n"]
        shown: set[str] = set()
        for document in sg.explain(paper.id).documents:
            code = code_of(document.id)
            listed = "" if code in shown else f"\n````{{dropdown}} The code\n```python\n{code}```\n````\n"
            page.append(to_markdown(document) + listed)
            shown.add(code)
        write(app, f"formulations/{paper.id}.md", "\n".join(page))


def reproductions(app: Sphinx) -> None:
    """Write a page per paper: its figures and tables, their recorded verdicts, and the settings.

    Long names in tables may break between their parts, so that the verdict column stays visible.
    """
    columns = [column for column in REPRODUCE if column.key not in {"cases", "place"}]
    tables = (ROOT / f"results/{name}.json" for name in ("reproductions-whole", "reproductions"))
    whole, small = (replace(read_rows(table), settings=known()) for table in tables)

    write(app, "verdicts.md", f"Whole:\n\n{of_verdicts(whole)}\n\nSmall:\n\n{of_verdicts(small)}\n")

    def verdicts(figure: str, results: Reproduction) -> str:
        rows = results.of(figure)
        told = [column for column in columns if any(column.text(row) != ABSENT for row in rows)]
        cells = [[column.cell(row) for column in told] for row in rows]
        table = re.sub("(?<=[:.])(?=[a-z])", "\u200b", to_table([Table("", told, cells)]))
        pairs = [(f"`{which}`" if " " in which else which, what) for which, what in notes(results, known()[figure])]
        remarks = "".join(f"- {which}: {what}\n" for which, what in pairs)
        return f"**{results.verdict(figure)}**\n\n{table}\n\n{remarks}"

    pages: dict[str, list[str]] = {}
    for figure, setting in known().items():
        command = f"harness reproduce {figure}"
        small_one = f"\n````{{dropdown}} Small version: {command} --quick\n{verdicts(figure, small)}\n````\n"
        compared = f"`{command}`: {verdicts(figure, whole)}{small_one}" if setting.runs else verdicts(figure, small)
        toml = (ROOT / f"reproductions/{figure}.toml").read_text()
        said = (ROOT / "reproductions" / setting.paper / "summary.md").read_text()
        what = "figures and tables" if setting.paper in PAPERS else "what is certified about public logs"
        page = pages.setdefault(setting.paper, [f"# {heading(setting.paper)}: {what}\n\n{said}"])
        title = f"{setting.place}: {setting.title}" if setting.paper in PAPERS else setting.title
        page.append(f"## {title}\n\n{compared}\n\n````{{dropdown}} The setting\n```toml\n{toml}```\n````\n")
    for paper, page in pages.items():
        write(app, f"figures/{paper}.md", "\n".join(page))


def of_verdicts(found: Reproduction) -> str:
    """Return a table of figures by paper and verdict."""
    used = [verdict for verdict in VERDICTS if found.verdicts[verdict]]
    cells = []
    for settings in grouped(found.settings.values(), "paper"):
        names: dict[str, list[str]] = {}
        for one in settings:
            names.setdefault(kind(found.verdict(one.id)), []).append(one.id.partition("/")[2])
        cells.append([settings[0].paper, *(", ".join(names.get(verdict, [])) for verdict in used)])
    return to_table([table("", of_texts(("paper", *used)), cells)])


ANSWER = "hadar.p2.columns", "hadar.online", "hadar.gavel_throughput"
"""Methods in the table of the first page: a bound with its schedule, an online algorithm, and its best baseline."""


def answer(app: Sphinx) -> None:
    """Write what the first page shows of the kept run: a sentence with a gap, three rows, and a picture."""
    kept = sg.read_run(ROOT / "results/reference")
    run = replace(kept, rows=[row for row in kept.rows if row.instance == "gen/200jobs" and row.paper == "hadar"])
    (drawn,) = sg.figures(run, "gap")
    write(app, "answer.svg", drawn.svg)
    columns = [column for column in COMPARE if column.key in ("method", "gap", "ratio", "objective", "best_bound")]
    rows = [row for name in ANSWER for row in run.rows if row.method == name]
    ((_, sentence),) = answers(run)
    text = f"**On gen/200jobs, {sentence}.**\n\n{to_table([table('', columns, rows)])}\n"
    write(app, "answer.md", f"{text}\n![{drawn.caption}](/generated/answer.svg)\n")


def growth(app: Sphinx) -> None:
    """Write how solve times grow: for each kept sweep over sizes and each paper, a picture and the exponents."""
    parts = []
    for file in sorted(ROOT.glob("results/growth/*.json")):
        run = read_kept(file)
        parts.append(f"# {file.stem}\n\n`{run.meta['command']}`: {measured(run)}\n")
        pictures = {drawn.group: drawn for drawn in sg.figures(run, "scaling")}
        for rows in grouped(run.rows, "paper"):
            found = statistics(run).of({row.method for row in rows})
            if (paper := rows[0].paper) in pictures:
                name = f"growth-{file.stem}-{paper}.svg"
                write(app, name, pictures[paper].svg)
                parts.append(f"## {heading(paper)}\n\n![{pictures[paper].caption}](/generated/{name})\n")
                parts.append(f"{to_table([table('', GROWTH, found.growth), by_size(rows, run.instances)])}\n")
    write(app, "growth.md", "\n".join(parts))


def by_size(rows: Sequence[Row], instances: Mapping[str, sg.Instance]) -> Table:
    """Return what each search and bound took at each size, and the gap with which a search ended."""
    paper = PAPERS.get(rows[0].paper)
    size = {row.fingerprint: paper.size(instances[row.fingerprint]) for row in rows}
    sizes = sorted(set(size.values()))
    cells = []
    timed = [row for row in rows if row.kind not in ("online", "baseline") and row.solve_s is not None]
    for mine in grouped(timed, "method"):
        took = {size[row.fingerprint]: f"{seconds(row.solve_s)}{gap_of(row)}" for row in mine}
        cells.append([mine[0].method, *(took.get(n, ABSENT) for n in sizes)])
    return table("", of_texts(("method", *(f"{n:,} {paper.counts}" for n in sizes))), cells)


def gap_of(row: Row) -> str:
    """Return the certified gap with which a search ended, an upper estimate; empty if nothing else is known."""
    return "" if row.gap is None else f", {percent(row.gap, 'at most' if row.gap else 'exactly')}"


def frontier(app: Sphinx) -> None:
    """Write what fairness costs on one instance: the sentence, the tables of the command, and the picture."""
    found = sg.frontier("gen/oef-20", points=11)
    (drawn,) = sg.figures(found)
    write(app, "frontier.svg", drawn.svg)
    told, *others = blocks(found)
    assert isinstance(told, Line)
    text = to_table([block for block in others if isinstance(block, Table)])
    write(app, "frontier.md", f"**{told.text}**\n\n![{drawn.caption}](/generated/frontier.svg)\n\n{text}\n")


KINDS = {
    "compare": "Columns of a comparison",
    "simulate": "Columns of a simulation",
    "audit": "Columns of an audit",
    "adversary": "Columns of a search for worst cases",
    "reproduce": "Columns of a reproduction",
    "whatif": "Columns of the changes of a cluster",
    "frontier": "Columns of a frontier of fairness",
    "prices": "Columns of the prices of fairness",
    "quantities": "Properties of decisions",
    "methods": "Summary of a method",
    "solvers": "Summary of a solver",
}
"""Tables of measures that the site shows."""

BETTER = {"max": "larger", "min": "smaller", "same": "the same", "sense": "as its problem says", "bound": "tighter"}


def measures(app: Sphinx) -> None:
    """Write the table of measures: the columns of every kind of row, with units, and which values are better."""
    columns = of_texts(("column", "in tables", "unit", "better", "meaning"))
    parts = []
    for study, title in KINDS.items():
        rows = [(m.name, m.header, m.unit, BETTER.get(m.sense, ""), m.meaning) for m in TABLES[study].values()]
        parts.append(f"````{{dropdown}} {title}\n{to_table([table('', columns, rows)])}````\n")
    write(app, "measures.md", "\n".join(parts))


def heading(paper: str) -> str:
    """Return the display name of a paper."""
    return {"oef": "OEF", "rigid": "Rigid jobs"}.get(paper, paper.capitalize())


def write(app: Sphinx, name: str, text: str) -> None:
    """Write a generated page only if it has changed, since Sphinx rereads newer files."""
    path = Path(app.srcdir, "generated", name)
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def without_documentation(app: Sphinx, what: str, name: str, value: object, *_: object) -> bool | None:
    """Skip type aliases and the like: their only documentation is that of the types they consist of."""
    return True if isinstance(value, (GenericAlias, TypeVar, Typer)) else None


def on_the_front(app: Sphinx, what: str, name: str, value: object, skip: bool, options: object) -> bool | None:
    """Leave out a class that ``schedgap`` exports on other pages than its own: a class has one description."""
    elsewhere = app.env.current_document.docname != "generated/api/schedgap"
    return True if elsewhere and inspect.isclass(value) and value is getattr(sg, name, None) else None


def setup(app: Sphinx) -> None:
    """Generate pages before Sphinx looks for them."""
    # This extension only copies files but does not declare it, which would disable parallel reading.
    app.extensions["sphinx-mathjax-offline"].parallel_read_safe = True
    app.connect("builder-inited", formulations)
    app.connect("builder-inited", reproductions)
    app.connect("builder-inited", answer)
    app.connect("builder-inited", growth)
    app.connect("builder-inited", frontier)
    app.connect("builder-inited", measures)
    app.connect("autodoc-skip-member", without_documentation)
    app.connect("autodoc-skip-member", on_the_front)
