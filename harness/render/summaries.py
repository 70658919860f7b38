"""The columns of the summary over many instances: one list for the terminal, Markdown and the report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from harness.render.formats import caption, parts
from harness.rows import Row
from harness.run import Run
from harness.summary import CAVEAT, GAP_SHIFT, TIME_SHIFT_S, MethodSummary, allowed_s, by_method
from harness.text import ABSENT, clean, percent, ratio, seconds


@dataclass(frozen=True)
class SummaryColumn:
    """A column: what stands above it, what it means, the cell, and what the cell is sorted by."""

    header: str
    explanation: str
    text: Callable[[MethodSummary], str]
    value: Callable[[MethodSummary], float | str | None]
    align: Literal["left", "right"] = "right"


def _verified(line: MethodSummary) -> str:
    return f"{line.verified} of {line.results}"


def _trouble(line: MethodSummary) -> str:
    counts = {"WRONG": line.wrong, "failed": line.failed, "skipped": line.skipped}
    return ", ".join(f"{count} {word}" for word, count in counts.items() if count) or ABSENT


def _gap(line: MethodSummary, value: float | None) -> str:
    """Return a gap, with ≤ (and rounded up) where one of those it sums up is to a bound, not to an optimum."""
    text = percent(value, up=line.gap_is_upper)
    return f"≤ {text}" if line.gap_is_upper and value else text


SUMMARY_COLUMNS: tuple[SummaryColumn, ...] = (
    SummaryColumn("method", "Registered name.", lambda s: clean(s.method, 60), lambda s: s.method, "left"),
    SummaryColumn(
        "problem",
        "What the objective means.",
        lambda s: clean(s.problem, 60).partition(".")[2],
        lambda s: s.problem,
        "left",
    ),
    SummaryColumn("kind", "As in the table of results.", lambda s: s.kind, lambda s: s.kind, "left"),
    SummaryColumn(
        "limits", "Which of the sweep's limits.", lambda s: clean(s.limits or ABSENT, 60), lambda s: s.limits
    ),
    SummaryColumn("verified", "Results that passed the checker.", _verified, lambda s: s.verified),
    SummaryColumn(
        "trouble", "Results that are WRONG, failed, or were skipped.", _trouble, lambda s: s.failed + s.wrong
    ),
    SummaryColumn("median gap", "Of the certified gaps.", lambda s: _gap(s, s.median_gap), lambda s: s.median_gap),
    SummaryColumn(
        "mean gap",
        f"Shifted geometric mean of the certified gaps, shift {GAP_SHIFT:.0%}.",
        lambda s: _gap(s, s.mean_gap),
        lambda s: s.mean_gap,
    ),
    SummaryColumn(
        "largest gap",
        "Of the certified gaps.",
        lambda s: _gap(s, s.largest_gap),
        lambda s: s.largest_gap,
    ),
    SummaryColumn(
        "largest proved ratio",
        "To optima that are proved; only a lower bound on the competitive ratio.",
        lambda s: ratio(s.largest_ratio, is_upper=False),
        lambda s: s.largest_ratio,
    ),
    SummaryColumn("median time", "Of results that did not fail.", lambda s: seconds(s.median_s), lambda s: s.median_s),
    SummaryColumn(
        "mean time",
        f"Shifted geometric mean, shift {TIME_SHIFT_S:g} s; a failure counts with the time it was allowed.",
        lambda s: seconds(s.mean_s),
        lambda s: s.mean_s,
    ),
)


def caveat(lines: Sequence[MethodSummary]) -> str:
    """Return what must be said beside a summary; empty where it shows no ratio and no estimate."""
    said = [CAVEAT] if any(line.largest_ratio is not None for line in lines) else []
    said += ["≤: an upper estimate, not every optimum is proved."] if any(line.gap_is_upper for line in lines) else []
    return " ".join(said)


def summaries(run: Run) -> list[tuple[str, list[SummaryColumn], list[MethodSummary]]]:
    """Return caption, columns and lines by paper where methods ran several times; columns without news are left out."""
    allowed = allowed_s(run.meta)
    return [
        (f"{caption(run, rows)} · {len(rows)} results by method", shown(lines), lines)
        for _, rows in parts(run)
        if repeated(rows)
        for lines in [by_method(rows, allowed)]
    ]


def repeated(rows: Sequence[Row]) -> bool:
    """Return whether a method ran several times, so that there is something to sum up."""
    return len({(row.method, row.limits) for row in rows}) < len(rows)


def shown(lines: Sequence[MethodSummary]) -> list[SummaryColumn]:
    """Return the columns in which at least one line has something to say."""
    return [column for column in SUMMARY_COLUMNS if any(column.text(line) != ABSENT for line in lines)]
