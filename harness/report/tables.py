"""Tables of a page: cells with what they sort by, and the tables of a comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.render.columns import COLUMNS, Column, failed, visible, wrong
from harness.render.formats import PUBLISHED_COLUMNS, parts, published_lines
from harness.render.summaries import SummaryColumn, caveat, repeated, shown
from harness.rows import Row
from harness.run import Run
from harness.summary import MethodSummary, allowed_s, by_method
from harness.text import clean, numbers, plain
from instances.registry import PAPERS

LONG = 28
"""Longer cells may break into lines."""


@dataclass(frozen=True)
class Cell:
    """A table cell: its text, what it sorts by, and its classes."""

    text: str
    sort: str
    classes: str = ""


@dataclass(frozen=True)
class Table:
    """A table: headings are (text, explanation, side), rows hold as many cells."""

    caption: str
    headings: Sequence[tuple[str, str, str]]
    rows: Sequence[Sequence[Cell]]


@dataclass(frozen=True)
class Group:
    """Tables that belong together (those of a paper): an id that links lead to, what links say, and the heading."""

    id: str
    name: str
    title: str
    tables: Sequence[Table]


def sort_key(value: object) -> str:
    """Return what the page sorts by: a number in full, text without case, nothing for what is absent."""
    if value is None:
        return ""
    return repr(float(value)) if isinstance(value, int | float) else str(value).casefold()


def slug(text: str) -> str:
    """Return an id of letters, digits and dashes."""
    return "".join(c if c.isascii() and c.isalnum() else "-" for c in text.lower())


def title_of(paper: str) -> str:
    """Return a paper's title, as its registration names it."""
    return clean(PAPERS.get(paper).title if paper in PAPERS else paper, 120)


def groups(run: Run) -> list[Group]:
    """Return the tables of each paper: by method where that sums up, all results, properties."""
    allowed = allowed_s(run.meta)
    found = []
    for caption, rows in parts(run):
        paper = rows[0].paper
        tables = (
            _by_method(rows, allowed),
            _results(caption, rows),
            _property_table([row for row in rows if row.metrics]),
        )
        found.append(
            Group(f"results-{slug(paper)}", clean(paper, 40), title_of(paper), [table for table in tables if table])
        )
    return found


# ---------------------------------------------------------------- results


def _results(caption: str, rows: Sequence[Row]) -> Table:
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
    return Cell(text, sort_key(column.value(row)), " ".join(classes))


# ---------------------------------------------------------------- by method


def _by_method(rows: Sequence[Row], allowed: float | Mapping[str, float]) -> Table | None:
    """Return a line per method over several instances or seeds, or ``None`` where each method ran once."""
    if not repeated(rows):
        return None
    lines = by_method(rows, allowed)
    columns = shown(lines)
    caption = f"{len(rows)} results by method; means are shifted geometric ones, failures counted. {caveat(lines)}"
    headings = [(column.header, column.explanation, column.align) for column in columns]
    return Table(caption.strip(), headings, [[_summary_cell(column, line) for column in columns] for line in lines])


def _summary_cell(column: SummaryColumn, line: MethodSummary) -> Cell:
    css = "method" if column.header == "method" else column.align
    bad = column.header == "trouble" and (line.failed or line.wrong)
    return Cell(column.text(line), sort_key(column.value(line)), f"{css} bad" if bad else css)


# ---------------------------------------------------------------- properties


def _property_table(rows: Sequence[Row]) -> Table | None:
    names = list(dict.fromkeys(name for row in rows for name in row.metrics))
    if not names:
        return None
    fixed = [column for column in visible(rows) if column.key in ("instance", "seed", "method")]
    headings = [(column.header, column.explanation, column.align) for column in fixed]
    headings += [(clean(name, 40).replace("_", " "), "", "right") for name in names]
    cells = [
        [_cell(column, row) for column in fixed]
        + [Cell(numbers(row.metrics.get(name), 5), sort_key(plain(row.metrics.get(name))), "right") for name in names]
        for row in rows
    ]
    return Table("Properties of the decisions, as the checker found them. ✓: holds; ✗: does not.", headings, cells)


# ---------------------------------------------------------------- published numbers


def published_table(rows: Sequence[Row]) -> Table | None:
    """Return the numbers that papers printed beside ours, or ``None`` where there are none."""
    found = []
    for _, entry, cells in published_lines(rows):
        unit = clean(entry.get("unit") or "", 60)
        found.append((*cells, "" if unit == "1" else unit))
    caption = (
        "Numbers that the paper printed about this instance, beside ours. ✓: equal to its last place; "
        "≠: not. Exact, ✓: what we measured is the exact value."
    )
    return published_of((*PUBLISHED_COLUMNS, "unit"), found, caption)


def published_of(headings: Sequence[str], lines: Sequence[Sequence[str]], caption: str) -> Table | None:
    """Return lines of texts about published numbers as a table, or ``None`` where there are none."""
    cells = [[_published_cell(text) for text in line] for line in lines]
    return Table(caption, [(name, "", "left") for name in headings], cells) if cells else None


def _published_cell(text: str) -> Cell:
    classes = ["bad"] if text.endswith("≠") else []
    if len(text) > LONG:
        classes.append("note" if len(text) > 3 * LONG else "wide")
    return Cell(text, text.casefold(), " ".join(classes))


# ---------------------------------------------------------------- legend


def legend(run: Run) -> list[tuple[str, str]]:
    """Return the columns that some table shows, and the problems of the rows, each with its explanation."""
    shown = {column.key for _, rows in parts(run) for column in visible(rows)}
    columns = [(column.header, column.explanation) for column in COLUMNS if column.key in shown]
    return columns + _problems(run)


def _problems(run: Run) -> list[tuple[str, str]]:
    """Return the problems of the rows with title, sense and unit."""
    found = []
    for paper, name in dict.fromkeys((row.paper, row.problem) for row in run.rows):
        known = {problem.id: problem for problem in PAPERS.get(paper).problems} if paper in PAPERS else {}
        if problem := known.get(name):
            found.append((problem.id, f"{problem.title} ({problem.sense}, in {problem.unit})"))
    return found
