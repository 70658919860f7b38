"""What a comparison tells: captions, tables, published numbers, and notes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import schedgap.instances.views  # noqa: F401 -- registers the papers whose views describe a table
from schedgap.harness.render.columns import COLUMNS, failed, wrong
from schedgap.harness.render.headline import headline
from schedgap.harness.render.summaries import summary
from schedgap.harness.rows import Row
from schedgap.harness.run import Run
from schedgap.harness.simulation.rows import SimulationRow
from schedgap.harness.studies import COMPARE, Study, not_shown
from schedgap.harness.summary import allowed_s
from schedgap.harness.table import LONG, Block, Cell, Line, Note, Table, of_texts, table
from schedgap.harness.text import clean, differs, published_cells
from schedgap.instances.registry import PAPERS
from schedgap.instances.schema import Instance

NAMED = 3
"""So many methods of which the same is to be said are named one by one."""

MAX_ROWS = 60
"""More results of a paper than these are summed up only."""


def parts(run: Run) -> list[tuple[str, list[Row]]]:
    """Return the rows that share a table, with its caption: one paper's methods.

    A paper none of whose methods could run has no table beside others; the notes say why.
    """
    papers = list(dict.fromkeys(row.paper for row in run.rows))
    groups = [[row for row in run.rows if row.paper == paper] for paper in papers]
    told = [rows for rows in groups if any(row.status != "skipped" for row in rows)]
    return [(caption(run, rows), rows) for rows in told or groups]


def caption(run: Run, rows: Sequence[Row]) -> str:
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
        if wrong(row):
            found += [(name, f"WRONG: {clean(v, 400)}") for v in row.violations or ("its claim does not hold",)]
        elif row.status == "infeasible":
            found.append((name, f"infeasible: no decision of {clean(row.problem, 60)} exists here"))
        elif failed(row) or row.status == "skipped":
            reason = f": {clean(row.reason, 400)}" if row.reason else ""
            found.append((name, f"{row.status}{reason}"))
    return [(_together(names), note) for note, names in _by_note(found).items()]


def _by_note(found: Sequence[tuple[str, str]]) -> dict[str, list[str]]:
    """Return who has the same to say, in the order in which it is said first."""
    groups: dict[str, list[str]] = {}
    for name, note in found:
        groups.setdefault(note, []).append(name)
    return groups


def _together(names: list[str]) -> str:
    """Return a few names, or the first ones and how many more there are."""
    more = len(names) - NAMED
    return ", ".join(names) if more <= 1 else f"{', '.join(names[:NAMED])} and {more} more"


PUBLISHED_COLUMNS = ("method", "quantity", "published", "measured", "exact", "where")


def published_lines(rows: Sequence[Row]) -> Iterator[tuple[Row, Mapping[str, Any], tuple[str, ...]]]:
    """Yield row, entry and cells (see `PUBLISHED_COLUMNS`) of every published number; of equal ones the first."""
    told = set()
    for row in rows:
        for entry in row.published:
            head, tail = clean(entry.get("quantity", ""), 40), clean(entry.get("where", ""), 80)
            cells = (clean(row.method, 60), head, *published_cells(entry), tail)
            if (row.fingerprint, cells) not in told:
                told.add((row.fingerprint, cells))
                yield row, entry, cells


def published_notes(rows: Sequence[Row], only_differing: bool = True) -> list[tuple[str, str]]:
    """Return what is to be said about published numbers, such as why we do not get them: (which number, note)."""
    several = len({row.fingerprint for row in rows}) > 1
    found = []
    for row, entry, (method, quantity, *_) in published_lines(rows):
        note = clean(entry.get("note") or "", 400)
        if note and (differs(entry) or not only_differing):
            where = f" on {clean(row.instance, 60)}" if several else ""
            found.append((f"{method}, {quantity}{where}", note))
    return list(dict.fromkeys(found))


def not_compared(
    rows: Sequence[Row | SimulationRow], instances: Mapping[str, Instance], study: Study
) -> list[tuple[str, str]]:
    """Return which published numbers stand beside none of the rows, and why: (which numbers, why)."""
    found = []
    for fingerprint in dict.fromkeys(row.fingerprint for row in rows):
        mine = [row for row in rows if row.fingerprint == fingerprint]
        left = not_shown(mine, instances[fingerprint], study) if fingerprint in instances else []
        found += [(f"{clean(e.method, 60)} {clean(e.quantity, 60)}", clean(why, 400)) for e, why in left]
    return [(f"published, not compared here: {_together(names)}", why) for why, names in _by_note(found).items()]


def blocks(run: Run) -> list[Block]:
    """Return what a command prints: headline, summary and results of each paper, published numbers, notes."""
    allowed = allowed_s(run.meta)
    summed = [found for text, rows in parts(run) if (found := summary(text, rows, allowed))]
    shown: list[Block] = [Line(headline(run), "bold red" if any(map(wrong, run.rows)) else "bold")]
    for content, below in summed:
        shown += [Line(""), content, Line(below, "dim")]
    for text, rows in parts(run):
        if summed and len(rows) > MAX_ROWS:
            shown.append(Line(f"{len(rows)} results: in report.html, rows.parquet, or with --format csv", "dim"))
        else:
            columns = [column for column in COLUMNS if column.key != "published"]
            shown += [Line(""), table(text, columns, rows, dim=lambda row: row.status == "skipped")]
    if lines := [cells for _, _, cells in published_lines(run.rows)]:
        shown.append(published_table(PUBLISHED_COLUMNS, lines, "published beside measured"))
    shown += [Note(f"≠ {which}", note) for which, note in published_notes(run.rows)]
    told = [*not_compared(run.rows, run.instances, COMPARE), *notes(run.rows)]
    return [*shown, *(Note(which, note) for which, note in told)]


def published_table(headers: Sequence[str], lines: Sequence[Sequence[str]], caption: str) -> Table:
    """Return lines of texts about published numbers as a table; what we do not get stands out."""
    return Table(caption, of_texts(headers), [[_published_cell(text) for text in line] for line in lines])


def _published_cell(text: str) -> Cell:
    classes = ["bad"] if text.endswith("≠") else []
    if len(text) > LONG:
        classes.append("note" if len(text) > 3 * LONG else "wide")
    return Cell(text, text.casefold(), " ".join(classes))
