"""What a comparison tells: captions, tables, published numbers, and notes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import schedgap.instances.views  # noqa: F401 -- registers the papers whose views describe a table
from schedgap.harness.compare.row import Comparison, Row
from schedgap.harness.compare.summary import CAVEAT, MethodSummary, allowed_s, by_method
from schedgap.harness.figure import Drawing
from schedgap.harness.page.columns import COMPARE as COLUMNS
from schedgap.harness.page.columns import SUMMARY
from schedgap.harness.page.frame import (
    Group,
    Page,
    Section,
    counted,
    figures_section,
    instances_section,
    notes_section,
    render,
    results_section,
    slug,
    title_of,
    titled,
)
from schedgap.harness.page.headline import answers, headline, lead
from schedgap.harness.page.published import not_compared, published_notes, published_section, published_table, together
from schedgap.harness.published import COMPARE
from schedgap.harness.table import Block, Cell, Column, Line, Note, Table, explained, sort_key, table, visible
from schedgap.harness.text import clean, numbers, plain
from schedgap.instances.registry import PAPERS

MAX_ROWS = 60
"""More results of a paper than these are summed up only."""


def parts(run: Comparison) -> list[tuple[str, list[Row]]]:
    """Return the rows that share a table, with its caption: one paper's methods.

    A paper none of whose methods could run has no table beside others; the notes say why.
    """
    papers = list(dict.fromkeys(row.paper for row in run.rows))
    groups = [[row for row in run.rows if row.paper == paper] for paper in papers]
    told = [rows for rows in groups if any(row.status != "skipped" for row in rows)]
    return [(caption(run, rows), rows) for rows in told or groups]


def caption(run: Comparison, rows: Sequence[Row]) -> str:
    """Return the caption of a paper's table: instance, its view of it, and what all rows share."""
    names = list(dict.fromkeys(row.instance for row in rows))
    shared = [clean(names[0], 80) if len(names) == 1 else f"{len(names)} instances"]
    instance = run.instances.get(rows[0].fingerprint)
    if len(names) == 1 and instance is not None and rows[0].paper in PAPERS:
        paper = PAPERS.get(rows[0].paper)
        try:
            shared.append(clean(paper.describe(paper.view(instance)), 300))
        except Exception as error:  # what a view cannot say of an instance must not end a run that is done
            shared.append(clean(error, 300))
    problems = {(row.problem, row.sense) for row in rows}
    if len(problems) == 1:
        shared.append(f"problem {clean(rows[0].problem, 60)} ({rows[0].sense})")
    bounds = {row.bound_from for row in rows}
    if len(bounds) == 1 and (source := rows[0].bound_from):
        shared.append(f"bound from {clean(source, 60)}")
    return " · ".join(shared)


def notes(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """Return violations, failures and reasons for skipping in words: (method, what happened)."""
    several = len({row.fingerprint for row in rows}) > 1
    found = []
    for row in rows:
        name = clean(row.method, 60) + (f" on {clean(row.instance, 60)}" if several else "")
        if row.wrong:
            found += [(name, f"WRONG: {clean(v, 400)}") for v in row.violations or ("its claim does not hold",)]
        elif row.status == "infeasible":
            found.append((name, f"infeasible: no decision of {clean(row.problem, 60)} exists here"))
        elif row.failed or row.status == "skipped":
            reason = f": {clean(row.reason, 400)}" if row.reason else ""
            found.append((name, f"{row.status}{reason}"))
    return together(found)


def blocks(run: Comparison) -> list[Block]:
    """Return what a command prints: headline, summary and results of each paper, published numbers, notes."""
    allowed = allowed_s(run.meta)
    summed = [found for text, rows in parts(run) if (found := summary(text, rows, allowed))]
    shown: list[Block] = [Line(headline(run), "bold red" if any(row.wrong for row in run.rows) else "bold")]
    for content, below in summed:
        shown += [Line(""), content, Line(below, "dim")]
    for text, rows in parts(run):
        if summed and len(rows) > MAX_ROWS:
            shown.append(Line(f"{len(rows)} results: in report.html, rows.parquet, or with --format csv", "dim"))
        else:
            columns = [column for column in COLUMNS if column.key != "published"]
            shown += [Line(""), table(text, columns, rows, dim=lambda row: row.status == "skipped")]
    shown += published_table(run.rows, "published beside measured")
    shown += [Note(f"≠ {which}", note) for which, note in published_notes(run.rows)]
    told = [*not_compared(run.rows, run.instances, COMPARE), *notes(run.rows)]
    return [*shown, *(Note(which, note) for which, note in told)]


def groups(run: Comparison) -> list[Group]:
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


def legend(run: Comparison) -> list[tuple[str, str]]:
    """Return the columns that some table shows, and the problems of the rows, each with its explanation."""
    return explained(COLUMNS, [rows for _, rows in parts(run)]) + _problems(run)


def _problems(run: Comparison) -> list[tuple[str, str]]:
    """Return the problems of the rows with title, sense and unit."""
    found = []
    for paper, name in dict.fromkeys((row.paper, row.problem) for row in run.rows):
        known = {problem.id: problem for problem in PAPERS.get(paper).problems} if paper in PAPERS else {}
        if problem := known.get(name):
            found.append((problem.id, f"{problem.title} ({problem.sense}, in {problem.unit})"))
    return found


def page(
    run: Comparison, drawings: Sequence[Drawing], failures: Sequence[str] = (), more: Sequence[Section] = ()
) -> str:
    """Return the page of `run`.

    Parameters
    ----------
    run
        The run.
    drawings, failures
        Its figures, and what is said about those that could not be drawn.
    more
        Sections that follow the published numbers, such as the table of an audit.
    """
    rows = run.rows
    told = answers(run)
    sections = [
        results_section(groups(run), legend(run)),
        *notes_section(notes(rows)),
        *published_section(rows, run.instances, COMPARE),
        *more,
        *figures_section(drawings, {row.paper: title_of(row.paper) for row in rows}, failures),
        *instances_section(run.instances, {row.fingerprint: row.instance for row in rows}),
    ]
    return render(
        Page(
            question="How far from optimal?",
            title=titled(rows),
            headline=lead(run),
            trouble=not all(row.ok for row in rows),
            sections=sections,
            meta=run.meta,
            answers=[(clean(paper, 40), text) for paper, text in told] if len(told) > 1 else [],
            counts=_counts(run),
        )
    )


def _counts(run: Comparison) -> list[tuple[str, str]]:
    """Return how many instances, results, verified and proved ones there are, and what is missing."""
    rows = run.rows
    counts = {
        "instances": len({row.fingerprint for row in rows}),
        "methods": len({row.method for row in rows}),
        "results": len(rows),
        "verified": sum(row.verified is True for row in rows),
        "optimum proved": sum(row.verified is True and row.ratio_is_upper is False for row in rows),
        "WRONG": sum(row.wrong for row in rows),
        "failed": sum(row.failed for row in rows),
        "skipped": sum(row.status == "skipped" for row in rows),
    }
    return counted(counts, ("results", "verified", "WRONG"))


def caveat(lines: Sequence[MethodSummary]) -> str:
    """Return what must be said beside a summary; empty where it shows no ratio and no estimate."""
    said = [CAVEAT] if any(line.largest_ratio is not None for line in lines) else []
    said += ["≤: an upper estimate, not every optimum is proved."] if any(line.gap_is_upper for line in lines) else []
    return " ".join(said)


def summary(caption: str, rows: Sequence[Row], allowed: float | Mapping[str, float]) -> tuple[Table, str] | None:
    """Return a table with a line per method, and what must be said beside it; ``None`` where each method ran once."""
    if not repeated(rows):
        return None
    lines = by_method(rows, allowed)
    return table(f"{caption} · {len(rows)} results by method", SUMMARY, lines), caveat(lines)


def repeated(rows: Sequence[Row]) -> bool:
    """Return whether a method ran several times, so that there is something to sum up."""
    return len({(row.method, row.limits) for row in rows}) < len(rows)
