"""Solvers beside each other: what each claims, what of that is correct, how long it takes and how fast gaps close.

*Success* is the solver's claim: an optimum proved, or that there is none. *Correct* is what the checkers leave of it:
decision and objective hold, and no verified decision of anybody beats the bound or contradicts infeasibility.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from schedgap.harness.compare.row import Row
from schedgap.harness.compare.summary import GAP_SHIFT, TIME_SHIFT_S, allowed_under, shifted_geometric_mean
from schedgap.harness.engine.result import grouped
from schedgap.instances.parameters import base_id
from schedgap.models.solve import Solution

SUCCESS = ("optimal", "infeasible")


def integral(solution: Solution, allowed_s: float) -> float:
    """Return the primal–dual integral: the gap of incumbent and bound over the allowed time, in seconds.

    The gap is ``|incumbent − bound| / max(|incumbent|, |bound|)``, at most 1, and 1 as long as one of them is missing
    or their signs differ (Berthold, Operations Research Letters 41, 2013). A solver that ends without a proof keeps its
    gap until the time is up.
    """
    total, since, gap = 0.0, 0.0, 1.0
    for point in solution.trace:
        at = min(max(point.time_s, since), allowed_s)
        total, since, gap = total + gap * (at - since), at, gap_of(point.incumbent, point.bound)
    ended = min(max(solution.times.solve_s, since), allowed_s)
    rest = 0.0 if solution.status in SUCCESS else allowed_s - ended
    return total + gap * (ended - since + rest)


def gap_of(incumbent: float | None, bound: float | None) -> float:
    """Return the gap of two numbers, 1 where one is missing."""
    if incumbent is None or bound is None or incumbent * bound < 0:
        return 1.0
    larger = max(abs(incumbent), abs(bound))
    return abs(incumbent - bound) / larger if larger else 0.0


@dataclass(frozen=True)
class SolverSummary:
    """A solver over the models that it was asked to solve.

    `success` counts claims, `correct` those of them that hold, `wrong` names results that do not, whatever was claimed.
    Means are shifted geometric ones over the cases that no solver skipped, `common` of them; failures count with the
    time that they were allowed.
    """

    solver: str
    limits: str
    results: int
    success: int
    correct: int
    wrong: tuple[str, ...]
    failed: int
    skipped: int
    common: int
    mean_s: float | None
    mean_gap: float | None
    mean_integral_s: float | None


def cases(rows: Iterable[Row]) -> list[Row]:
    """Return the rows of models with the solver as their method, where several solvers ran; a case is a model there."""
    found = [row for row in rows if _solver(row)]
    told = [
        row.replace(method=_solver(row), fingerprint=f"{row.fingerprint} {_model(row)}", solver=_solver(row))
        for row in found
    ]
    return told if len({row.method for row in told}) > 1 else []


def proof(row: Row) -> Row:
    """Return the row as a profile of proofs counts it: verified where a claimed proof holds, otherwise failed."""
    holds = row.status in SUCCESS and not row.wrong
    return row if row.status == "skipped" else row.replace(verified=holds, status="optimal" if holds else "error")


def by_solver(rows: Iterable[Row], allowed_s: float | Mapping[str, float]) -> list[SolverSummary]:
    """Return a line per solver and kind of limits, in the order of the rows; none where there is one solver only."""
    told = cases(rows)
    solvers = {row.method for row in told}
    ran = grouped((row for row in told if row.status != "skipped"), "case")
    everywhere = {case[0].case for case in ran if {row.method for row in case} == solvers}
    return [
        _summary(group, [row for row in group if row.case in everywhere], allowed_under(group[0].limits, allowed_s))
        for group in grouped(told, "method", "limits")
    ]


def _summary(rows: Sequence[Row], common: Sequence[Row], allowed: float) -> SolverSummary:
    success = [row for row in rows if row.status in SUCCESS]
    times = [row.solve_s if row.ok and row.solve_s is not None else allowed for row in common]
    gaps = [min(gap_of(row.objective, row.own_bound), 1.0) for row in common if row.objective is not None]
    integrals = [row.integral_s if row.integral_s is not None else allowed for row in common]
    return SolverSummary(
        solver=rows[0].method,
        limits=rows[0].limits,
        results=len(rows),
        success=len(success),
        correct=sum(not row.wrong for row in success),
        wrong=tuple(f"{row.fingerprint.partition(' ')[2]} on {row.instance}" for row in rows if row.wrong),
        failed=sum(row.failed for row in rows),
        skipped=sum(row.status == "skipped" for row in rows),
        common=len(common),
        mean_s=shifted_geometric_mean(times, TIME_SHIFT_S),
        mean_gap=shifted_geometric_mean(gaps, GAP_SHIFT),
        mean_integral_s=shifted_geometric_mean(integrals, TIME_SHIFT_S),
    )


def _solver(row: Row) -> str:
    """Return who solved a model, or should have; nothing for heuristics."""
    if row.kind not in ("exact", "relaxation", "bound"):
        return ""
    named = [part.partition("=")[2] for part in _settings(row) if part.startswith("solver=")]
    return named[0] if named else row.solver or "highs"


def _settings(row: Row) -> list[str]:
    return row.method.partition("?")[2].split("&")


def _model(row: Row) -> str:
    """Return the model's id without the solver."""
    rest = "&".join(part for part in _settings(row) if part and not part.startswith("solver="))
    return base_id(row.method) + ("?" + rest if rest else "")
