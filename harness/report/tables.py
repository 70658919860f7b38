"""The tables of a comparison's page, by paper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from schedgap.harness.render.columns import COLUMNS
from schedgap.harness.render.formats import PUBLISHED_COLUMNS, parts, published_lines
from schedgap.harness.render.formats import published_table as published_of
from schedgap.harness.render.summaries import summary
from schedgap.harness.rows import Row
from schedgap.harness.run import Run
from schedgap.harness.summary import allowed_s
from schedgap.harness.table import Cell, Column, Table, sort_key, table, visible
from schedgap.harness.text import clean, numbers, plain
from schedgap.instances.registry import PAPERS


@dataclass(frozen=True)
class Group:
    """Tables that belong together (those of a paper): an id that links lead to, what links say, and the heading."""

    id: str
    name: str
    title: str
    tables: Sequence[Table]


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
        by_method = summary(caption, rows, allowed)
        results = table(caption, [column for column in COLUMNS if column.key not in ("published", "metrics")], rows)
        tables = [_with_caveat(*by_method)] if by_method else []
        tables += [results, *_property_tables([row for row in rows if row.metrics])]
        found.append(Group(f"results-{slug(paper)}", clean(paper, 40), title_of(paper), tables))
    return found


def _with_caveat(content: Table, caveat: str) -> Table:
    means = "means are shifted geometric ones, failures counted."
    return Table(f"{content.caption}; {means} {caveat}".strip(), content.columns, content.rows)


def _property_tables(rows: Sequence[Row]) -> list[Table]:
    """Return the table of the decisions' properties, if they have some."""
    names = list(dict.fromkeys(name for row in rows for name in row.metrics))
    if not names:
        return []
    fixed: list[Column[Row]] = [c for c in visible(COLUMNS, rows) if c.key in ("instance", "seed", "method")]
    named = (Column[Any](n, clean(n, 40).replace("_", " "), "", str, align="right") for n in names)
    columns: list[Column[Any]] = [*fixed, *named]
    cells = [[*(column.cell(row) for column in fixed), *(_property(row, name) for name in names)] for row in rows]
    return [Table("Properties of the decisions, as the checker found them. ✓: holds; ✗: does not.", columns, cells)]


def _property(row: Row, name: str) -> Cell:
    return Cell(numbers(row.metrics.get(name), 5), sort_key(plain(row.metrics.get(name))), "right")


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
    return published_of((*PUBLISHED_COLUMNS, "unit"), found, caption) if found else None


def legend(run: Run) -> list[tuple[str, str]]:
    """Return the columns that some table shows, and the problems of the rows, each with its explanation."""
    shown = {column.key for _, rows in parts(run) for column in visible(COLUMNS, rows)}
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
