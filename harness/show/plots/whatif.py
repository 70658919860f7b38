"""Figure of what changes of a cluster save: a bar per change, with its interval and the most that is possible."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import altair as alt

from schedgap.harness.show.figure import Drawn, Part, figure, parts
from schedgap.harness.show.looks import PALETTE
from schedgap.harness.show.plots import style
from schedgap.harness.show.plots.results import some
from schedgap.harness.show.text import clean, number
from schedgap.harness.studies.whatif.row import BASE, EXECUTED, WhatIf
from schedgap.instances.text import counted

COLOURS = {"policy": PALETTE[0], "limits": PALETTE[2], "cluster": PALETTE[4]}


@dataclass(frozen=True, eq=False, kw_only=True)
class Changes(Part):
    """The changes of a run."""

    found: WhatIf


@parts.register
def _(found: WhatIf) -> list[Changes]:
    names = [clean(one.name, 40) for one in found.instances.values()][:1]
    return [Changes(of="changes", group="changes", heading="".join(names), where="".join(names), found=found)]


@figure("changes.saved", "What changes save", of="changes")
def drawn_changes(data: Changes) -> Drawn:
    """Hours of waiting saved against the base, with 95 % intervals; a tick is the certified most on that cluster.

    Left of 0, a change makes jobs wait longer.
    """
    rows = some([row for row in data.found.rows if row.saved_h is not None and row.kind not in (BASE, EXECUTED)])
    rows = rows[: style.MAX_ROWS]
    ends = [end for row in rows for end in (row.saved_h, row.saved_low_h, row.saved_high_h) if end is not None]
    gained = max(0.0, *ends) or max(map(abs, ends)) or 1.0
    records: list[dict[str, Any]] = [
        {
            "change": clean(row.change, 60),
            "kind": row.kind,
            "saved": row.saved_h,
            "low": row.saved_low_h,
            "high": row.saved_high_h,
            "most": row.most_saved_h if (row.most_saved_h or 0.0) <= FAR * gained else None,
            "certified": "none" if row.most_saved_h is None else f"≤ {number(row.most_saved_h, side='at most')} h",
        }
        for row in rows
    ]
    # What lies far beyond the changes that save something would leave no room for these.
    right = max(gained, *(record["most"] or 0.0 for record in records))
    domain = [max(min(0.0, *ends), -FAR * gained), right]
    cut = [record["change"] for record in records if record["saved"] < domain[0]]
    side = alt.Y("change:N", title=None, sort=[record["change"] for record in records])
    size: dict[str, Any] = {"width": style.WIDTH - 140, "height": alt.Step(style.ROW)}
    base = alt.Chart(style.rows(records), **size).encode(side, tooltip=style.tip("change", "saved", "certified"))
    kinds = {kind: colour for kind, colour in COLOURS.items() if any(row.kind == kind for row in rows)}
    axis = style.x("saved", "waiting saved [h]", domain=domain)
    bars = base.mark_bar(clip=True).encode(axis, color=style.keyed(alt.Color, "kind", kinds))
    spans = base.mark_rule(color=style.INK, strokeWidth=1.5, clip=True).encode(alt.X("low:Q"), alt.X2("high:Q"))
    most = base.mark_tick(color=style.BOUND, thickness=2.5, size=13).encode(alt.X("most:Q"))
    beyond = f" Beyond the left end: {', '.join(cut)}." if cut else ""
    text = f"n = {counted(data.found.jobs, 'job')}, {counted(len(rows), 'change')}.{beyond}"
    return alt.layer(bars, spans, most), text


FAR = 1.5
"""What lies beyond this many times the most that a change saves is cut off."""
