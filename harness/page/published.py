"""Numbers that papers printed, beside ours: their table, what is said about them, and why some stand beside none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from schedgap.harness.compare.row import Row
from schedgap.harness.page.frame import Section, macro
from schedgap.harness.published import Measures, not_shown
from schedgap.harness.simulate.row import SimulationRow
from schedgap.harness.table import LONG, Cell, Table, of_texts
from schedgap.harness.text import clean, differs, published_cells
from schedgap.instances.schema import Instance

NAMED = 3
"""So many methods of which the same is to be said are named one by one."""

HEADERS = ("method", "quantity", "published", "measured", "exact", "unit", "where")

CAPTION = (
    "Numbers that papers printed about this instance, beside ours. ✓: equal to its last place; "
    "≠: not. Exact, ✓: what we measured is the exact value."
)

Rows = Sequence[Row | SimulationRow]


def entries(rows: Rows) -> Iterator[tuple[Row | SimulationRow, Mapping[str, Any], tuple[str, ...]]]:
    """Yield row, entry and cells (see :data:`HEADERS`) of every published number; of equal ones the first."""
    told = set()
    for row in rows:
        for entry in row.published:
            unit, where = clean(entry.get("unit") or "", 60), clean(entry.get("where", ""), 80)
            name = clean(row.method, 60), clean(entry.get("quantity", ""), 40)
            cells = (*name, *published_cells(entry), "" if unit == "1" else unit, where)
            if (row.fingerprint, cells) not in told:
                told.add((row.fingerprint, cells))
                yield row, entry, cells


def published_table(rows: Rows, caption: str) -> list[Table]:
    """Return the published numbers of some rows as a table, in which those that we do not get stand out, if any."""
    lines = [cells for _, _, cells in entries(rows)]
    kept = [i for i in range(len(HEADERS)) if any(line[i] for line in lines)]
    cells = [[_cell(line[i]) for i in kept] for line in lines]
    return [Table(caption, of_texts([HEADERS[i] for i in kept]), cells)] if lines else []


def _cell(text: str) -> Cell:
    classes = ["bad"] if text.endswith("≠") else []
    if len(text) > LONG:
        classes.append("note" if len(text) > 3 * LONG else "wide")
    return Cell(text, text.casefold(), " ".join(classes))


def published_notes(rows: Rows, only_differing: bool = True) -> list[tuple[str, str]]:
    """Return what is to be said about published numbers, such as why we do not get them: (which number, note)."""
    several = len({row.fingerprint for row in rows}) > 1
    found = []
    for row, entry, (method, quantity, *_) in entries(rows):
        note = clean(entry.get("note") or "", 400)
        if note and (differs(entry) or not only_differing):
            where = f" on {clean(row.instance, 60)}" if several else ""
            found.append((f"{method}, {quantity}{where}", note))
    return list(dict.fromkeys(found))


def not_compared(rows: Rows, instances: Mapping[str, Instance], study: Measures) -> list[tuple[str, str]]:
    """Return which published numbers stand beside none of the rows, and why: (which numbers, why)."""
    found = []
    for fingerprint in dict.fromkeys(row.fingerprint for row in rows):
        mine = [row for row in rows if row.fingerprint == fingerprint]
        left = not_shown(mine, instances[fingerprint], study) if fingerprint in instances else []
        found += [(f"{clean(e.method, 60)} {clean(e.quantity, 60)}", clean(why, 400)) for e, why in left]
    return [(f"published, not compared here: {names}", why) for names, why in together(found)]


def published_section(rows: Rows, instances: Mapping[str, Instance], study: Measures) -> list[Section]:
    """Return published numbers beside ours and what is to be said about them as a section, where there are any."""
    tables = published_table(rows, CAPTION)
    listed = [*published_notes(rows, only_differing=False), *not_compared(rows, instances, study)]
    body = macro("published", tables[0] if tables else None, listed)
    return [Section("published", "Published numbers", body)] if tables or listed else []


def together(found: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return who has the same to say in one line, in the order in which it is said first: (who, what)."""
    groups: dict[str, list[str]] = {}
    for name, note in found:
        groups.setdefault(note, []).append(name)
    return [(_some(names), note) for note, names in groups.items()]


def _some(names: Sequence[str]) -> str:
    """Return a few names, or the first ones and how many more there are."""
    more = len(names) - NAMED
    return ", ".join(names) if more <= 1 else f"{', '.join(names[:NAMED])} and {more} more"
