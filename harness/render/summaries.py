"""The columns of the summary over many instances: one list for the terminal, Markdown and the report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from schedgap.harness.rows import Row
from schedgap.harness.summary import CAVEAT, GAP_SHIFT, TIME_SHIFT_S, MethodSummary, by_method
from schedgap.harness.table import Column, Table, table
from schedgap.harness.text import ABSENT, clean, percent, ratio, seconds


def _column(
    header: str,
    explanation: str,
    text: Callable[[MethodSummary], str],
    value: Callable[[MethodSummary], float | str | None],
    align: Literal["left", "right"] = "right",
    **more: Any,
) -> Column[MethodSummary]:
    return Column(header, header, explanation, text, value, align=align, **more)


def _verified(line: MethodSummary) -> str:
    return f"{line.verified} of {line.results}"


def _trouble(line: MethodSummary) -> str:
    counts = {"WRONG": line.wrong, "failed": line.failed, "skipped": line.skipped}
    return ", ".join(f"{count} {word}" for word, count in counts.items() if count) or ABSENT


def _gap(line: MethodSummary, value: float | None) -> str:
    """Return a gap, with ≤ (and rounded up) where one of those it sums up is to a bound, not to an optimum."""
    text = percent(value, up=line.gap_is_upper)
    return f"≤ {text}" if line.gap_is_upper and value else text


SUMMARY_COLUMNS: tuple[Column[MethodSummary], ...] = (
    _column("method", "Registered name.", lambda s: clean(s.method, 60), lambda s: s.method, "left", css="method"),
    _column(
        "problem",
        "What the objective means.",
        lambda s: clean(s.problem, 60).partition(".")[2],
        lambda s: s.problem,
        "left",
    ),
    _column("kind", "As in the table of results.", lambda s: s.kind, lambda s: s.kind, "left"),
    _column("limits", "Which of the sweep's limits.", lambda s: clean(s.limits or ABSENT, 60), lambda s: s.limits),
    _column("verified", "Results that passed the checker.", _verified, lambda s: s.verified),
    _column(
        "trouble",
        "Results that are WRONG, failed, or were skipped.",
        _trouble,
        lambda s: s.failed + s.wrong,
        bad=lambda s: bool(s.failed or s.wrong),
    ),
    _column("median gap", "Of the certified gaps.", lambda s: _gap(s, s.median_gap), lambda s: s.median_gap),
    _column(
        "mean gap",
        f"Shifted geometric mean of the certified gaps, shift {GAP_SHIFT:.0%}.",
        lambda s: _gap(s, s.mean_gap),
        lambda s: s.mean_gap,
    ),
    _column(
        "largest gap",
        "Of the certified gaps.",
        lambda s: _gap(s, s.largest_gap),
        lambda s: s.largest_gap,
    ),
    _column(
        "largest proved ratio",
        "To optima that are proved; only a lower bound on the competitive ratio.",
        lambda s: ratio(s.largest_ratio, is_upper=False),
        lambda s: s.largest_ratio,
    ),
    _column("median time", "Of results that did not fail.", lambda s: seconds(s.median_s), lambda s: s.median_s),
    _column(
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


def summary(caption: str, rows: Sequence[Row], allowed: float | Mapping[str, float]) -> tuple[Table, str] | None:
    """Return a table with a line per method, and what must be said beside it; ``None`` where each method ran once."""
    if not repeated(rows):
        return None
    lines = by_method(rows, allowed)
    return table(f"{caption} · {len(rows)} results by method", SUMMARY_COLUMNS, lines), caveat(lines)


def repeated(rows: Sequence[Row]) -> bool:
    """Return whether a method ran several times, so that there is something to sum up."""
    return len({(row.method, row.limits) for row in rows}) < len(rows)
