"""The report: one HTML file that needs nothing else, opens anywhere, and answers the question first."""

from __future__ import annotations

import base64
import hashlib
import re
import shlex
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from harness.render.columns import COLUMNS, Column, failed, measured, visible, wrong
from harness.render.formats import PUBLISHED_COLUMNS, notes, parts, published_lines, published_notes
from harness.render.headline import headline
from harness.render.text import clean, numbers, percent, plain, ratio, seconds
from harness.rows import Row
from harness.run import Run
from instances.canonical import write_atomically
from instances.registry import PAPERS

if TYPE_CHECKING:
    from harness.plots import Drawn

MAX_DESCRIBED = 20
"""So many instances of a run are described; their names are in the table in any case."""

MAX_LINES = 60
"""So many lines of a fact about an instance are shown."""

LONG = 28
"""Longer cells may break into lines."""

SVG_ELEMENTS = {
    "svg",
    "g",
    "path",
    "use",
    "defs",
    "clipPath",
    "rect",
    "image",
    "circle",
    "ellipse",
    "line",
    "text",
}
"""What a figure is made of; anything else (styles, scripts, metadata) is left out."""


@dataclass(frozen=True)
class Cell:
    """A table cell: its text, what it sorts by, and its classes."""

    text: str
    sort: str
    classes: str


@dataclass(frozen=True)
class Table:
    """A table: headings are (text, explanation, side), rows hold as many cells."""

    caption: str
    headings: Sequence[tuple[str, str, str]]
    rows: Sequence[Sequence[Cell]]


@dataclass(frozen=True)
class FigureBlock:
    """A figure as it stands in the page."""

    svg: Markup
    caption: str


def to_html(run: Run, drawn: Sequence[Drawn] | None = None) -> str:
    """Return the report of `run` as one self-contained HTML page.

    Parameters
    ----------
    run
        The run.
    drawn
        Its figures, where :func:`harness.plots.draw_all` has drawn them already.
    """
    if drawn is None:
        from harness.plots import draw_all

        drawn = draw_all(run)
    script = _source("report.js")
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            **_results(run),
            title=_title(run),
            style=Markup(_source("report.css")),
            script=Markup(script),
            script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
            figures=[_figure(item, f"f{i}-") for i, item in enumerate(drawn)],
            columns=_explained(run),
            problems=_problems(run),
            described=_described(run),
            undescribed=max(0, len(run.instances) - MAX_DESCRIBED),
            environment=_environment_facts(run.meta),
            commands=_commands(run.meta),
            edited=str(run.meta.get("git_commit") or "").endswith("+changes"),
            when=clean(run.meta.get("started_utc", ""), 40),
        )
    )


def save(run: Run, path: Path, figures: Path | None = None) -> None:
    """Write the page to `path` and, where `figures` names the run's folder, the figures below it as files.

    Raises
    ------
    OSError
        If a folder or file cannot be written.
    """
    from harness.plots import draw_all, save_all

    drawn = draw_all(run)
    if figures is not None:
        save_all(run, figures, drawn)
    write_atomically(path, to_html(run, drawn).encode())


def to_fragment(run: Run) -> str:
    """Return headline, tables and notes as HTML to show inside another page, such as a notebook."""
    return _environment().get_template("fragment.html.j2").render(**_results(run))


def to_figures(drawn: Sequence[Drawn]) -> str:
    """Return figures with their captions as HTML to show inside another page, such as a notebook."""
    # ids of one page: the same figure may stand in it twice, others beside it
    blocks = [_figure(item, f"f{hashlib.sha256(item.svg.encode()).hexdigest()[:12]}-") for item in drawn]
    return _environment().get_template("figures.html.j2").render(figures=blocks)


def _environment() -> Environment:
    loader = PackageLoader("harness", "templates")
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)


def _source(name: str) -> str:
    """Return a file of the template folder, which goes into the page as it is."""
    environment = _environment()
    assert environment.loader is not None
    return environment.loader.get_source(environment, name)[0]


def _results(run: Run) -> dict[str, Any]:
    """Return what page and fragment have in common."""
    return {
        "headline": headline(run),
        "trouble": any(wrong(row) or failed(row) for row in run.rows),
        "tables": _tables(run),
        "notes": notes(run.rows),
        "published": _published_table(run.rows),
        "published_notes": published_notes(run.rows, only_differing=False),
    }


def _title(run: Run) -> str:
    names = list(dict.fromkeys(row.instance for row in run.rows))
    return clean(names[0], 60) if len(names) == 1 else f"{len(names)} instances"


# ---------------------------------------------------------------- tables


def _tables(run: Run) -> list[Table]:
    """Return the tables of each paper: by method where that sums up, all results, properties."""
    found: list[Table | None] = []
    for caption, rows in parts(run):
        found += [
            _by_method(rows),
            _table(caption, rows),
            _property_table([row for row in rows if row.metrics]),
        ]
    return [table for table in found if table is not None]


def _table(caption: str, rows: Sequence[Row]) -> Table:
    columns = visible(rows, leave_out=("published", "metrics"))
    headings = [(column.header, column.explanation, column.align) for column in columns]
    return Table(caption, headings, [[_cell(column, row) for column in columns] for row in rows])


def _cell(column: Column, row: Row) -> Cell:
    classes = [column.key, column.align]
    if (column.key == "verified" and wrong(row)) or (column.key == "status" and failed(row)):
        classes.append("bad")
    text = column.text(row)
    if column.key == "status" and len(text) > LONG / 2:
        classes.append("wide")
    return Cell(text, _sort_key(column.value(row)), " ".join(classes))


def _sort_key(value: object) -> str:
    """Return what the page sorts by: a number in full, text without case, nothing for what is absent."""
    if value is None:
        return ""
    return repr(float(value)) if isinstance(value, int | float) else str(value).casefold()


def _by_method(rows: Sequence[Row]) -> Table | None:
    """Return a line per method over several instances or seeds, or ``None`` where each method ran once."""
    methods = list(dict.fromkeys(row.method for row in rows))
    if len(methods) == len(rows):
        return None
    groups = [[row for row in rows if row.method == method] for method in methods]
    cells = [[Cell(text, _sort_key(value), css) for text, value, css in _method_line(group)] for group in groups]
    names = ("method", "kind", "verified", "median gap", "largest gap", "largest proved ratio", "median time")
    headings = [(name, "", "left" if name in ("method", "kind") else "right") for name in names]
    caption = (
        f"{len(rows)} results by method. The largest proved ratio over many instances is only a lower bound "
        "on the competitive ratio."
    )
    return Table(caption, headings, cells)


def _method_line(group: Sequence[Row]) -> list[tuple[str, float | str | None, str]]:
    """Return text, value and classes of a method's cells."""
    gaps = [row.gap for row in group if measured(row) and row.gap is not None]
    proved = [row.ratio for row in group if measured(row) and row.ratio_is_upper is False and row.ratio is not None]
    times = [row.solve_s for row in group if row.solve_s is not None]
    middle, worst = (median(gaps), max(gaps)) if gaps else (None, None)
    largest, time = max(proved, default=None), median(times) if times else None
    good = sum(row.verified is True for row in group)
    return [
        (clean(group[0].method, 60), group[0].method, "method"),
        (group[0].kind, group[0].kind, ""),
        (f"{good} of {len(group)}", good, "right"),
        (percent(middle), middle, "right"),
        (percent(worst, up=True), worst, "right"),
        (ratio(largest, is_upper=False), largest, "right"),
        (seconds(time), time, "right"),
    ]


def _property_table(rows: Sequence[Row]) -> Table | None:
    names = list(dict.fromkeys(name for row in rows for name in row.metrics))
    if not names:
        return None
    fixed = [column for column in visible(rows) if column.key in ("instance", "seed", "method")]
    headings = [(column.header, column.explanation, column.align) for column in fixed]
    headings += [(clean(name, 40).replace("_", " "), "", "right") for name in names]
    cells = [
        [_cell(column, row) for column in fixed]
        + [Cell(numbers(row.metrics.get(name), 5), _sort_key(plain(row.metrics.get(name))), "right") for name in names]
        for row in rows
    ]
    return Table("Properties of the decisions, as the checker found them. ✓: holds; ✗: does not.", headings, cells)


def _published_table(rows: Sequence[Row]) -> Table | None:
    """Return the numbers that papers printed beside ours, or ``None`` where there are none."""
    headings = [(name, "", "left") for name in (*PUBLISHED_COLUMNS, "unit")]
    found = []
    for _, entry, cells in published_lines(rows):
        unit = clean(entry.get("unit") or "", 60)
        found.append([_published_cell(text) for text in (*cells, "" if unit == "1" else unit)])
    caption = (
        "Numbers that the paper printed about this instance, beside ours. ✓: equal to its last place; "
        "≠: not. Exact, ✓: what we measured is the exact value."
    )
    return Table(caption, headings, found) if found else None


def _published_cell(text: str) -> Cell:
    classes = ["bad"] if text.endswith("≠") else []
    if len(text) > LONG:
        classes.append("note" if len(text) > 3 * LONG else "wide")
    return Cell(text, text.casefold(), " ".join(classes))


def _explained(run: Run) -> list[Column]:
    """Return the columns that some table shows, for the legend."""
    shown = {column.key for _, rows in parts(run) for column in visible(rows)}
    return [column for column in COLUMNS if column.key in shown]


def _problems(run: Run) -> list[tuple[str, str]]:
    """Return the problems of the rows with title, sense and unit."""
    found = []
    for paper, name in dict.fromkeys((row.paper, row.problem) for row in run.rows):
        known = {problem.id: problem for problem in PAPERS.get(paper).problems} if paper in PAPERS else {}
        if problem := known.get(name):
            found.append((problem.id, f"{problem.title} ({problem.sense}, in {problem.unit})"))
    return found


# ---------------------------------------------------------------- instances, environment, reproduction


def _described(run: Run) -> list[tuple[str, list[tuple[str, list[str]]]]]:
    from instances.summary import describe

    names = {row.fingerprint: row.instance for row in run.rows}
    found = []
    for fingerprint, instance in list(run.instances.items())[:MAX_DESCRIBED]:
        facts = [(clean(key, 60), _lines(text)) for key, text in describe(instance)]
        found.append((clean(names.get(fingerprint, instance.name), 100), facts))
    return found


def _lines(text: str) -> list[str]:
    """Return the lines of a fact, each harmless, and how many more there are."""
    lines = text.splitlines()
    more = [f"… and {len(lines) - MAX_LINES} more"] if len(lines) > MAX_LINES else []
    return [clean(line, 400) for line in lines[:MAX_LINES]] + more


def _environment_facts(meta: Mapping[str, Any]) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return versions, machine and limits as named lists of (name, value)."""
    groups = [(name, meta.get(name) or {}) for name in ("versions", "machine", "limits")]
    return [(name, [(clean(k, 60), clean(v, 120)) for k, v in facts.items()]) for name, facts in groups if facts]


def _commands(meta: Mapping[str, Any]) -> list[str]:
    """Return the lines that repeat the run."""
    command = meta.get("command") or ""
    line = shlex.join(map(str, command)) if isinstance(command, list | tuple) else str(command)
    commit = str(meta.get("git_commit") or "").removesuffix("+changes")
    return [*([f"git checkout {clean(commit, 80)}"] if commit else []), clean(line)]


# ---------------------------------------------------------------- figures


def _figure(drawn: Drawn, prefix: str) -> FigureBlock:
    return FigureBlock(inline_svg(drawn.svg, prefix, f"{drawn.title}. {drawn.caption}"), drawn.caption)


def inline_svg(svg: str, prefix: str, alt: str) -> Markup:
    """Return an SVG file as an element of a page: with ids of its own, no styles or scripts, no fixed size.

    Parameters
    ----------
    svg
        The file's text.
    prefix
        Put before every id, so that figures in one page do not refer to each other's parts.
    alt
        Alternative text.
    """
    root = ET.fromstring(svg)
    used = set(re.findall(r'(?:url\(|href=")#([^")]+)', svg))
    _strip(root)
    for element in root.iter():
        element.tag = _local(element.tag)
        element.attrib = _attributes(element.attrib, prefix, used)
    root.attrib = {
        "viewBox": root.attrib["viewBox"],
        "role": "img",
        "aria-label": alt,
        "stroke-linejoin": "round",
        "stroke-linecap": "butt",
    }
    return Markup(ET.tostring(root, encoding="unicode"))


def _strip(element: ET.Element) -> None:
    """Remove all descendants that are not part of the picture, and the white space between."""
    for child in list(element):
        if _local(child.tag) in SVG_ELEMENTS:
            child.tail = None
            _strip(child)
        else:
            element.remove(child)
    if _local(element.tag) != "text":
        element.text = None


def _local(name: str) -> str:
    """Return a tag's or attribute's name without its namespace."""
    return name.rsplit("}", 1)[-1]


def _attributes(attributes: Mapping[str, str], prefix: str, used: set[str]) -> dict[str, str]:
    """Return attributes with renamed ids and references, without handlers and references to elsewhere."""
    kept = {}
    for full, value in attributes.items():
        name = _local(full)
        if name.startswith("on") or (name == "id" and value not in used):
            continue
        if name == "href" and not value.startswith(("#", "data:image/png;base64,")):
            continue
        renamed = prefix + value if name == "id" else re.sub(r"^#", f"#{prefix}", value) if name == "href" else value
        kept[name] = renamed.replace("url(#", f"url(#{prefix}")
    return kept
