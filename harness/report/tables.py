"""Tables of a page: cells with what they sort by, and the tables of a comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.render.columns import COLUMNS, Column, failed, visible, wrong
from harness.render.formats import PUBLISHED_COLUMNS, parts, published_lines
from harness.render.text import clean, numbers, percent, plain, ratio, seconds
from harness.rows import Row
from harness.run import Run
from harness.summary import CAVEAT, MethodSummary, allowed_s, by_method
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

SUMMARY = (
    ("method", "", "left"),
    ("problem", "What the objective means.", "left"),
    ("kind", "", "left"),
    ("limits", "Which of the sweep's limits it ran under.", "left"),
    ("verified", "Results that the independent checker confirmed, of all.", "right"),
    ("failed", "Results without an answer, WRONG ones among them.", "right"),
    ("skipped", "Results that the method does not apply to.", "right"),
    ("mean gap", "Shifted geometric mean over the certified gaps, shift 1 %.", "right"),
    ("median gap", "Median of the certified gaps.", "right"),
    ("largest gap", "Largest certified gap.", "right"),
    (
        "largest proved ratio",
        "Largest ratio to a proved optimum; only a lower bound on the competitive ratio.",
        "right",
    ),
    ("mean time", "Shifted geometric mean, shift 1 s; a failure counts with all the time it was allowed.", "right"),
)
"""Columns of the table by method: heading, explanation, side."""


def _by_method(rows: Sequence[Row], allowed: float | Mapping[str, float]) -> Table | None:
    """Return a line per method over several instances or seeds, or ``None`` where each method ran once."""
    summaries = by_method(rows, allowed)
    if len(summaries) == len(rows):
        return None
    lines = [dict(zip((name for name, *_ in SUMMARY), _summary_cells(each), strict=True)) for each in summaries]
    shown = [heading for heading in SUMMARY if any(line[heading[0]].text not in ("", "–", "0") for line in lines)]
    caption = (
        f"{len(rows)} results by method; means are shifted geometric ones, failures counted. "
        f"{clean(CAVEAT)} Gaps without a proved optimum are upper estimates (≤)."
    )
    return Table(caption, shown, [[line[name] for name, *_ in shown] for line in lines])


def _summary_cells(each: MethodSummary) -> list[Cell]:
    def gap(value: float | None) -> Cell:
        text = percent(value, up=each.gap_is_upper)
        return Cell(f"≤ {text}" if each.gap_is_upper and value else text, sort_key(value), "right")

    bad = each.failed + each.wrong
    return [
        Cell(clean(each.method, 60), sort_key(each.method), "method"),
        Cell(clean(each.problem, 60).partition(".")[2], sort_key(each.problem)),
        Cell(clean(each.kind, 20), sort_key(each.kind)),
        Cell(clean(each.limits, 40), sort_key(each.limits)),
        Cell(f"{each.verified} of {each.results}", sort_key(each.verified), "right"),
        Cell(
            str(bad) + (f" ({each.wrong} WRONG)" if each.wrong else ""), sort_key(bad), "right bad" if bad else "right"
        ),
        Cell(str(each.skipped), sort_key(each.skipped), "right"),
        gap(each.mean_gap),
        gap(each.median_gap),
        gap(each.largest_gap),
        Cell(ratio(each.largest_ratio, is_upper=False), sort_key(each.largest_ratio), "right"),
        Cell(seconds(each.mean_s), sort_key(each.mean_s), "right"),
    ]


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
