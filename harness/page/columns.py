"""The columns of a comparison's table: one list for the terminal, Markdown and the report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from schedgap.harness.compare.row import FAILED, Row
from schedgap.harness.compare.summary import CAVEAT, GAP_SHIFT, TIME_SHIFT_S, MethodSummary, by_method
from schedgap.harness.table import Column, Table, table
from schedgap.harness.text import ABSENT, clean, number, percent, properties, published, ratio, seconds, verdict


def wrong(row: Row) -> bool:
    """Return whether the checker refuted the row."""
    return row.verified is False


def failed(row: Row) -> bool:
    """Return whether the method ended without a decision (being skipped or WRONG is another matter)."""
    return row.status in FAILED and not wrong(row)


def measured(row: Row) -> bool:
    """Return whether the row's gap may be shown: nothing unverified enters a gap."""
    return row.verified is True and row.gap is not None


def _field(
    key: str, explanation: str, show: Callable[[Row], str] | None = None, header: str | None = None, **more: Any
) -> Column[Row]:
    """Return a column of text that sorts by its text."""

    def text(row: Row) -> str:
        return show(row) if show else clean(getattr(row, key) or ABSENT, 60)

    return Column(key, header or key, explanation, text, css=key, **more)


def _number(
    key: str, explanation: str, show: Callable[[Row], str], header: str | None = None, **more: Any
) -> Column[Row]:
    """Return a column of numbers that sorts by their value."""
    return Column(key, header or key, explanation, show, lambda row: getattr(row, key), align="right", css=key, **more)


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


COLUMNS: tuple[Column[Row], ...] = (
    _field("instance", "The instance, as it can be loaded again.", shared=True),
    _field("paper", "The paper whose view of the instance the method works on.", priority=9, shared=True),
    _field("method", "Registered name; “harness list” prints the source of each."),
    _field(
        "problem",
        "What the objective means; bounds of one problem are never used for another.",
        lambda row: clean(row.problem, 60).removeprefix(f"{row.paper}."),
        priority=1,
        shared=True,
    ),
    _field(
        "kind",
        "exact: a model that runs until its optimum is proved or a limit reached; matheuristic: a heuristic with a "
        "model inside, which certifies a bound and does not branch, so that a gap may be left; relaxation, bound: only "
        "bounds; online: the paper's own algorithm; baseline: what it is compared with.",
        priority=2,
    ),
    _field("sense", "Whether a larger (max) or a smaller (min) objective is better.", priority=7, shared=True),
    _number("seed", "Seed of the method's random generator.", lambda row: str(row.seed), priority=3, shared=True),
    _field("limits", "Which of the sweep's limits the method ran under.", priority=3, shared=True),
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
        align="right",
        priority=3,
        css="guarantee",
    ),
    _field(
        "status",
        "How the run ended: proved optimal, within its limits, with a gap left (no branching), skipped, or failed.",
        bad=failed,
    ),
    _field(
        "verified",
        "✓: every constraint and claim re-checked and the objective recomputed without the solver. "
        "WRONG: something did not hold. –: there was nothing to check.",
        lambda row: verdict(row.verified),
        bad=wrong,
    ),
    _number(
        "solve_s",
        "Time in the solver or the heuristic itself.",
        lambda row: seconds(row.solve_s),
        header="solve",
    ),
    _number("build_s", "Time to build the model.", lambda row: seconds(row.build_s), header="build", priority=5),
    _field("bound_from", "The method that certified the bound.", header="bound from", priority=6, shared=True),
    _field("metrics", "Properties and other numbers of the decision.", _properties, header="properties", priority=10),
    _field(
        "published",
        "What the paper printed, whether we get it (✓ or ≠), what we measured, and the exact value.",
        _published,
        priority=11,
    ),
)


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


def _summed(line: MethodSummary, value: float | None) -> str:
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
    _column("median gap", "Of the certified gaps.", lambda s: _summed(s, s.median_gap), lambda s: s.median_gap),
    _column(
        "mean gap",
        f"Shifted geometric mean of the certified gaps, shift {GAP_SHIFT:.0%}.",
        lambda s: _summed(s, s.mean_gap),
        lambda s: s.mean_gap,
    ),
    _column(
        "largest gap",
        "Of the certified gaps.",
        lambda s: _summed(s, s.largest_gap),
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
