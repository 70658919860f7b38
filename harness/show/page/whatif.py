"""Report of what a cluster might change: the hours of waiting that each change saves, and at most could save."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from schedgap.harness.show import measures
from schedgap.harness.show.measures import WHATIF as MEASURES
from schedgap.harness.show.page import frame
from schedgap.harness.show.page.columns import columns
from schedgap.harness.show.page.frame import Group, Page
from schedgap.harness.show.table import USUALLY, Block, Column, Line, Note, Selection, explained, listed, table
from schedgap.harness.show.text import clean, number, within
from schedgap.harness.studies.whatif.row import BASE, CLUSTER, EXECUTED, LIMITS, POLICY, ChangeRow, WhatIf
from schedgap.instances.text import counted

HINDSIGHT = (
    "“At most” is certified, and with hindsight: no schedule on that cluster that interrupts no job saves more, even "
    "one that knows all arrivals and run times. The changes themselves run online: they know no arrivals, and no run "
    "times unless they say so."
)


def _saved(row: ChangeRow) -> str:
    measure = MEASURES["saved_h"]
    ends = (row.saved_low_h, row.saved_high_h)
    return f"{measure.text(row.saved_h)}{within(ends, MEASURES['saved_low_h'].text)}"


COLUMNS: tuple[Column[ChangeRow], ...] = columns(
    measures.WHATIF,
    change={"css": "text"},
    kind={"priority": 5},
    method={"priority": 6, "shared": True},
    wait_h={},
    saved_h={"text": _saved},
    most_saved_h={"priority": 1},
    best_wait_h={"priority": 3},
    least_wait_h={"priority": 4},
    bound_from={"priority": 7, "shared": True},
    best_by={"priority": 8},
    verified={"bad": lambda row: row.wrong, "priority": 2, "shared": True},
)


def headline(found: WhatIf) -> str:
    """Return the answer: the change that saves most, and the best ones of the other kinds."""
    base = next((row for row in found.of(BASE) if row.wait_h is not None), None)
    compared = [row for row in found.of(*TRIED) if row.saved_h is not None and not row.wrong]
    if base is None or base.wait_h is None or not compared:
        return frame.answered(found, "changes", "Nothing could be compared.")
    first, *others = sorted((_best(compared, kind) for kind in TRIED if _best(compared, kind)), key=_most)
    total = f"{number(base.wait_h * found.jobs)} h of waiting"
    if (first.saved_h or 0.0) <= 0:
        return frame.answered(found, "changes", f"Nothing that was tried saves any of the {total}.")
    text = f"{_started(clean(first.change, 80))} saves most: {_saved(first)} h of {total}"
    for row in others:
        saves = (row.saved_h or 0.0) > 0
        text += f"; {clean(row.change, 80)} saves {_saved(row)} h" if saves else f"; {TRIED[row.kind]} saves any"
    return frame.answered(found, "changes", f"{text}.")


TRIED = {POLICY: "no other policy", LIMITS: "no other limit", CLUSTER: "no other cluster"}
"""Kinds of changes, each with words for all of them."""


def _best(rows: Sequence[ChangeRow], kind: str) -> Any:
    return min((row for row in rows if row.kind == kind), key=_most, default=None)


def _most(row: ChangeRow) -> float:
    return -(row.saved_h or 0.0)


def _started(text: str) -> str:
    return text[:1].upper() + text[1:]


def base_told(found: WhatIf) -> str:
    """Return which policy stands for the log, how far it is from what was executed, and how much waiting there is."""
    base = next(iter(found.of(BASE)), None)
    if base is None or base.wait_h is None:
        return "No policy could be run on this log, so that changes have nothing to be compared with."
    text = f"The base is {clean(base.change, 80)}: {number(base.wait_h * found.jobs)} h of waiting in total, "
    text += f"{number(base.wait_h)} h per job. "
    if found.chosen:
        text += "It was asked for"
    elif found.apart_h is None:
        text += "The log does not say when all of its jobs ran, so the usual one was taken"
    else:
        text += "Of the policies that were run, its waits are closest to those in the log"
    text += "." if found.apart_h is None else f"; a job's wait differs by {number(found.apart_h)} h on average."
    units = {(row.unit, row.units) for row in found.rows if row.units}
    if units:
        ((unit, count),) = units
        return f"{text} Intervals resample {counted(count or 0, unit)}, with the same jobs on both sides."
    return f"{text} There are no intervals: the log has fewer than four days with submissions."


def shown(found: WhatIf) -> list[ChangeRow]:
    """Return the rows of the table: all but those that could not be run."""
    return [row for row in found.rows if row.wait_h is not None or not row.ok]


def notes(found: WhatIf) -> list[tuple[str, str]]:
    """Return ``(change, reason)`` pairs for the changes that could not be run."""
    return frame.together(
        [(clean(row.change, 80), clean(row.reason or row.status, 300)) for row in found.rows if row not in shown(found)]
    )


def _dim(row: ChangeRow) -> bool:
    return row.kind in (BASE, EXECUTED)


def blocks(found: WhatIf, view: Selection = USUALLY) -> list[Block]:
    """Return the blocks that the command prints."""
    caption = "what changes save, online on the same jobs and arrivals; those of the base come first"
    return [
        Line(headline(found), "bold" if found.ok else "bold red"),
        Line(base_told(found)),
        *listed(caption, COLUMNS, shown(found), dim=_dim, view=view),
        Line(HINDSIGHT, "dim"),
        *(Note(f"not run: {which}", why) for which, why in notes(found)),
    ]


def page(found: WhatIf) -> Page:
    """Return the page of changes."""
    rows: Sequence[ChangeRow] = shown(found)
    tables = [table("what changes save, online on the same jobs and arrivals", COLUMNS, rows, _dim)]
    return Page(
        question="What should this cluster change?",
        title="Changes of a cluster",
        headline=headline(found),
        groups=[Group("results-changes", "changes", "", tables, f"{base_told(found)} {HINDSIGHT}")],
        legend=explained(COLUMNS, [rows]),
        notes=[(f"not run: {which}", why) for which, why in notes(found)],
        counts=frame.summed_up(found.rows, {"jobs": found.jobs, "changes": len(rows)}, ("jobs", "changes")),
    )
