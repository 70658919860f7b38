"""Tables of the statistics of a run, for the terminal and for pages; comparisons and simulations have them alike."""

from __future__ import annotations

from schedgap.harness.engine.result import grouped
from schedgap.harness.show.page.columns import EFFECTS, GROWTH, INTERVALS, PAIRS
from schedgap.harness.show.table import Table, table
from schedgap.harness.show.text import clean
from schedgap.harness.studies.statistics import Statistics

MORE = "the report has gaps by parameter and what explains them; intervals, pairs, effects, growth: .parquet files"
"""What a terminal says of statistics that it does not show."""


def has_more(found: Statistics) -> bool:
    """Return whether a page shows more of the statistics than a terminal."""
    return bool(found.effects) or any(one.factor for one in found.intervals)


def differences(found: Statistics) -> list[Table]:
    """Return the tables of differences between methods and of the growth of solve times; empty ones are left out."""
    tables = [
        table("Paired differences, with 95 % intervals over independent units", PAIRS, found.pairs),
        table("Growth of solve times; results at the limit count as at least as long", GROWTH, found.growth),
    ]
    return [one for one in tables if one.rows]


def details(found: Statistics) -> list[Table]:
    """Return a table of gaps by each parameter that varies, and one of what explains the gaps."""
    parts = grouped((one for one in found.intervals if one.factor), "factor")
    shown = [column for column in INTERVALS if column.key != "factor"]
    tables = [table(f"Gaps by {clean(part[0].factor, 40)}, with 95 % intervals", shown, part) for part in parts]
    effects = table("What explains the gaps: least squares on all features at once", EFFECTS, found.effects)
    return [*tables, effects] if effects.rows else tables


def overall(found: Statistics) -> list[Table]:
    """Return a list with the table of each method's gaps on all instances, unless it is empty."""
    shown = [column for column in INTERVALS if column.key not in ("factor", "value")]
    gaps = table("Gaps to certified bounds, with 95 % intervals", shown, [o for o in found.intervals if not o.factor])
    return [gaps] if gaps.rows else []
