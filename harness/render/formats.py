"""A run as Markdown, CSV, JSON and, through rich, on a terminal."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import instances.views  # noqa: F401 -- registers the papers whose views describe a table
from harness.render.columns import failed, visible, wrong
from harness.render.headline import headline
from harness.render.text import clean, differs, plain, published_cells
from harness.rows import FIELDS, Row
from harness.run import Run
from harness.simulation.rows import SimulationRow
from harness.studies import COMPARE, Study, not_shown
from instances.registry import PAPERS
from instances.schema import Instance

if TYPE_CHECKING:
    from rich.console import RenderableType

NAMED = 3
"""So many methods of which the same is to be said are named one by one."""

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""First characters that make a spreadsheet take text for a formula."""


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


def to_markdown(run: Run) -> str:
    """Return headline, one table per paper and the notes as GitHub-flavoured Markdown."""
    blocks = [markdown_text(headline(run))]
    for text, rows in parts(run):
        columns = visible(rows)
        lines = [
            [column.header for column in columns],
            ["---:" if column.align == "right" else "---" for column in columns],
            *([markdown_text(column.text(row)) for column in columns] for row in rows),
        ]
        blocks += [markdown_text(text), "\n".join(f"| {' | '.join(line)} |" for line in lines)]
    told = [(f"≠ {which}", note) for which, note in published_notes(run.rows)]
    told += [*not_compared(run.rows, run.instances, COMPARE), *notes(run.rows)]
    listed = "\n".join(f"- {markdown_text(which)}: {markdown_text(note)}" for which, note in told)
    return "\n\n".join([*blocks, listed] if listed else blocks) + "\n"


def markdown_text(text: str) -> str:
    """Return `text` such that Markdown shows it as it is, in a table too."""
    entities = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*|\[\]~$])", r"\\\1", entities)


def to_csv(run: Run) -> str:
    """Return all fields of all rows as CSV; lists and metrics are JSON, and no cell starts a formula."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(FIELDS)
    writer.writerows([csv_cell(value) for value in row.as_dict().values()] for row in run.rows)
    return out.getvalue()


def csv_cell(value: Any) -> str | int | float | bool | None:
    """Return a cell: numbers as they are, text harmless to a spreadsheet, the rest as JSON."""
    value = plain(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    text = clean(value) if isinstance(value, str) else _json(value)
    return f"'{text}" if text.startswith(FORMULA) else text


def to_json(run: Run) -> str:
    """Return a JSON list with an object of all fields per row; what is not finite is ``null``."""
    return "[" + ",\n ".join(_json(plain(row.as_dict())) for row in run.rows) + "]\n"


def _json(value: Any) -> str:
    """Return JSON in which control and direction characters beyond ASCII are escaped, for terminals."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return re.sub(
        "[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]",
        lambda m: f"\\u{ord(m[0]):04x}",
        text,
    )


def to_rich(run: Run) -> RenderableType:
    """Return what the terminal shows: headline, a table per paper, published numbers, notes."""
    from harness.render.terminal import terminal

    return terminal(run)
