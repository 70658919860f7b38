"""The columns of a comparison's table: one list for the terminal, Markdown and the report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from harness.render.text import ABSENT, clean, number, percent, properties, published, ratio, seconds, verdict
from harness.rows import FAILED, Row


def wrong(row: Row) -> bool:
    """Return whether the checker refuted the row."""
    return row.verified is False


def failed(row: Row) -> bool:
    """Return whether the method ended without a decision (being skipped or WRONG is another matter)."""
    return row.status in FAILED and not wrong(row)


def measured(row: Row) -> bool:
    """Return whether the row's gap may be shown: nothing unverified enters a gap."""
    return row.verified is True and row.gap is not None


@dataclass(frozen=True)
class Column:
    """A column of the table.

    Parameters
    ----------
    key
        Name of the row's field it shows.
    header
        What stands above it.
    explanation
        One sentence for the legend.
    text
        The cell.
    value
        What the cell is sorted by; ``None`` sorts last.
    align
        Numbers stand on the right.
    priority
        Columns of a higher number leave first where the terminal is too narrow.
    """

    key: str
    header: str
    explanation: str
    text: Callable[[Row], str]
    value: Callable[[Row], float | str | None]
    align: Literal["left", "right"] = "left"
    priority: int = 0


def _field(
    key: str,
    explanation: str,
    show: Callable[[Row], str] | None = None,
    header: str | None = None,
    priority: int = 0,
) -> Column:
    """Return a column of text that sorts by its text."""

    def text(row: Row) -> str:
        return show(row) if show else clean(getattr(row, key) or ABSENT, 60)

    def value(row: Row) -> str | None:
        return None if text(row) == ABSENT else text(row)

    return Column(key, header or key, explanation, text, value, priority=priority)


def _number(
    key: str,
    explanation: str,
    show: Callable[[Row], str],
    header: str | None = None,
    priority: int = 0,
) -> Column:
    """Return a column of numbers that sorts by their value."""
    return Column(key, header or key, explanation, show, lambda row: getattr(row, key), "right", priority)


def _guarantee(row: Row) -> str:
    if row.guarantee:
        return clean(row.guarantee, 40)
    return ABSENT if row.guarantee_factor is None else f"≤ {number(row.guarantee_factor)}"


def _gap(row: Row) -> str:
    return percent(row.gap, up=row.ratio_is_upper is not False)


def _properties(row: Row) -> str:
    return ", ".join(f"{name} {text}" for name, text in properties(row.metrics)) or ABSENT


def _published(row: Row) -> str:
    return "; ".join(published(entry) for entry in row.published) or ABSENT


COLUMNS: tuple[Column, ...] = (
    _field("instance", "The instance, as it can be loaded again."),
    _field("paper", "The paper whose view of the instance the method works on.", priority=9),
    _field("method", "Registered name; “harness list” prints the source of each."),
    _field(
        "problem",
        "What the objective means; bounds of one problem are never used for another.",
        lambda row: clean(row.problem, 60).removeprefix(f"{row.paper}."),
        priority=1,
    ),
    _field(
        "kind",
        "exact, relaxation: models; online: the paper's own algorithm; baseline: what it is compared with.",
        priority=2,
    ),
    _field("sense", "Whether a larger (max) or a smaller (min) objective is better.", priority=7),
    _number("seed", "Seed of the method's random generator.", lambda row: str(row.seed), priority=3),
    _field("limits", "Which of the sweep's limits the method ran under.", priority=3),
    _number(
        "objective",
        "Recomputed from the decision by an independent checker.",
        lambda row: number(row.objective),
    ),
    _number(
        "best_bound",
        "Tightest certified bound on the problem's optimum on this instance.",
        lambda row: number(row.best_bound),
        header="bound",
        priority=4,
    ),
    _number(
        "own_bound",
        "Bound that the method certified itself: the value of a relaxation or dual, what a search proved.",
        lambda row: number(row.own_bound),
        header="own bound",
        priority=4,
    ),
    _number("gap", "|bound − objective| / |bound|.", _gap),
    _number(
        "ratio",
        "Bound/objective (max) or objective/bound (min), at least 1. With ≤ it is an upper estimate, "
        "rounded up, because the optimum is not proved; without ≤ the optimum is proved.",
        lambda row: ratio(row.ratio, row.ratio_is_upper),
    ),
    Column(
        "guarantee",
        "guarantee",
        "The paper's worst-case ratio, evaluated on this instance.",
        _guarantee,
        lambda row: row.guarantee_factor,
        "right",
        3,
    ),
    _field("status", "How the run ended: proved optimal, within its limits, skipped for a reason, or failed."),
    _field(
        "verified",
        "✓: every constraint and claim re-checked and the objective recomputed without the solver. "
        "WRONG: something did not hold. –: there was nothing to check.",
        lambda row: verdict(row.verified),
    ),
    _number(
        "solve_s",
        "Time in the solver or the heuristic itself.",
        lambda row: seconds(row.solve_s),
        header="solve",
    ),
    _number("build_s", "Time to build the model.", lambda row: seconds(row.build_s), header="build", priority=5),
    _field("bound_from", "The method that certified the bound.", header="bound from", priority=6),
    Column(
        "metrics",
        "properties",
        "Properties and other numbers of the decision.",
        _properties,
        _properties,
        priority=10,
    ),
    Column(
        "published",
        "published",
        "What the paper printed, whether we get it (✓ or ≠), what we measured, and the exact value.",
        _published,
        _published,
        priority=11,
    ),
)

ONLY_WHERE_SEVERAL = frozenset({"instance", "paper", "problem", "sense", "seed", "limits", "bound_from"})
"""Columns that say nothing where all rows agree: the caption names what they share."""


def visible(rows: Sequence[Row], leave_out: Iterable[str] = ()) -> list[Column]:
    """Return the columns that tell the rows apart: neither empty nor without news."""
    hidden = set(leave_out)
    shown = []
    for column in COLUMNS:
        cells = {column.text(row) for row in rows}
        constant = column.key in ONLY_WHERE_SEVERAL and len(cells) <= 1
        if column.key not in hidden and not constant and cells != {ABSENT}:
            shown.append(column)
    return shown
