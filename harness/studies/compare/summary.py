"""Summaries over many instances: gaps, times and failures of each method and solver.

Gaps are those of instances, each the mean over its solver seeds, and a mean gap is their arithmetic mean. Times have
shifted geometric means, ``exp(mean(log(x + s))) − s``, as in benchmarks of solvers: neither the hardest instance nor
the many trivial ones dominate. A failure counts with its time limit (Mittelmann's benchmarks), and as never solved in a
performance profile (Dolan and Moré, Mathematical Programming 91, 2002). Unverified decisions have no gap.

For solvers, *success* counts claims of an optimum or of infeasibility. *Correct* counts the claims that checks
confirm: decision and objective hold, and no verified decision beats the bound or contradicts infeasibility.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from schedgap.harness.engine.result import grouped
from schedgap.harness.show.measures import TIME_SHIFT_S
from schedgap.harness.studies.compare.row import Row, allowed_under, ratio
from schedgap.harness.studies.resampling import FEWEST, averaged, by_unit, interval, units_of
from schedgap.instances.parameters import extended, pairs, stated

if TYPE_CHECKING:
    from schedgap.models.engine.solve import Solution

CAVEAT = (
    "The largest ratio over many instances is only a lower bound on the competitive ratio: "
    "an instance that was not tried may be worse."
)

Criterion = Literal["time", "objective"]


@dataclass(frozen=True)
class Gaps:
    """Certified gaps of a method on instances: `is_upper` says whether one of them is only an upper estimate.

    `largest` is that of a single result. The ends of the 95 % intervals of median and mean are known if there are
    several independent units.
    """

    median: float
    mean: float
    largest: float
    is_upper: bool
    median_ends: tuple[float, float] | None = None
    mean_ends: tuple[float, float] | None = None


def gaps(certified: Sequence[Row]) -> Gaps:
    """Return the median, mean and largest gap of one or more certified rows, with intervals if there are enough."""
    values = averaged(certified, lambda row: row.gap)
    upper = any(row.ratio_is_upper is not False for row in certified)
    largest = max(row.gap for row in certified if row.gap is not None)
    own = Gaps(median(values.values()), fmean(values.values()), largest, upper)
    groups = by_unit(values, units_of({row.fingerprint: row.instance for row in certified}))
    if len(groups) < FEWEST:
        return own
    return replace(own, median_ends=interval(groups, "median"), mean_ends=interval(groups))


@dataclass(frozen=True)
class MethodSummary:
    """A method over all its results of a run: counts, certified gaps, and seconds in the solver or heuristic.

    `mean_gap` is the arithmetic mean. `geometric_s` is the shifted geometric mean of the times, in which failures count
    with their time limit. `gap_is_upper` says whether one of the gaps is to a bound instead of a certified optimum, and
    `loss_is_upper` says it of the losses. `largest_ratio` is to a certified optimum (see :data:`CAVEAT`), on the
    instance `largest_on`. Absent values are ``None``.
    """

    method: str
    kind: str
    problem: str
    limits: str
    results: int
    verified: int
    failed: int
    wrong: int
    skipped: int
    median_gap: float | None
    median_gap_low: float | None
    median_gap_high: float | None
    largest_gap: float | None
    mean_gap: float | None
    mean_gap_low: float | None
    mean_gap_high: float | None
    gap_is_upper: bool
    largest_loss: float | None
    loss_is_upper: bool
    largest_ratio: float | None
    largest_on: str | None
    median_s: float | None
    geometric_s: float | None


def shifted_geometric_mean(values: Sequence[float], shift: float) -> float | None:
    """Return ``exp(mean(log(x + shift))) − shift`` of numbers above ``−shift``, or ``None`` if there are none."""
    if not values:
        return None
    if any(math.isinf(value) for value in values):
        return math.inf
    mean = math.exp(fmean(math.log(value + shift) for value in values)) - shift
    # Rounding may move the mean of equal numbers slightly beyond them.
    return min(max(mean, min(values)), max(values))


def by_method(rows: Iterable[Row], allowed_s: float | Mapping[str, float] = 60.0) -> list[MethodSummary]:
    """Return a summary per method and limit set; `allowed_s` is the time limit, by name of the limit set if several."""
    summaries = []
    for group in grouped(rows, "method", "limits"):
        certified = [row for row in group if row.certified]
        own = gaps(certified) if certified else None
        of_median, of_mean = (own.median_ends, own.mean_ends) if own else (None, None)
        proved = [row for row in certified if row.ratio_is_upper is False and row.ratio is not None]
        worst = max(proved, key=lambda row: row.ratio or 0.0, default=None)
        times = [row.solve_s for row in group if row.solve_s is not None and not row.failed]
        allowed = allowed_under(group[0].limits, allowed_s)
        counted = times + [max(allowed, row.solve_s or 0.0) for row in group if row.failed]
        summary = MethodSummary(
            **{name: getattr(group[0], name) for name in ("method", "kind", "problem", "limits")},
            results=len(group),
            verified=sum(row.verified is True for row in group),
            failed=sum(row.failed for row in group),
            wrong=sum(row.wrong for row in group),
            skipped=sum(row.status == "skipped" for row in group),
            median_gap=own.median if own else None,
            median_gap_low=of_median[0] if of_median else None,
            median_gap_high=of_median[1] if of_median else None,
            largest_gap=own.largest if own else None,
            mean_gap=own.mean if own else None,
            mean_gap_low=of_mean[0] if of_mean else None,
            mean_gap_high=of_mean[1] if of_mean else None,
            gap_is_upper=own is not None and own.is_upper,
            largest_loss=max((row.loss for row in certified if row.loss is not None), default=None),
            loss_is_upper=any(row.loss_is_upper for row in certified),
            largest_ratio=worst.ratio if worst else None,
            largest_on=worst.instance if worst else None,
            median_s=median(times) if times else None,
            geometric_s=shifted_geometric_mean(counted, TIME_SHIFT_S),
        )
        summaries.append(summary)
    return summaries


def profiles(rows: Iterable[Row], criterion: Criterion) -> dict[str, NDArray[np.float64]]:
    """Return the sorted performance ratios of each method of one problem; a failure is ``inf``.

    A case is an instance with a seed and limits. ``"time"`` divides seconds by those of the fastest method that
    succeeded on the case, ``"objective"`` compares the objective with the best verified one.

    Notes
    -----
    A case on which one of the methods was skipped is left out for all of them, because being skipped is not a failure
    and all curves must cover the same cases.
    """
    cases = [{row.method: row for row in case} for case in grouped(rows, "case")]
    methods = list(dict.fromkeys(method for case in cases for method in case))
    ran = [case for case in cases if all(row.status != "skipped" for row in case.values())]
    ratios = [_ratios(case, criterion) for case in ran if len(case) == len(methods)]
    return {method: np.sort(np.array([case[method] for case in ratios], float)) for method in methods}


def _ratios(case: Mapping[str, Row], criterion: Criterion) -> dict[str, float]:
    """Return each method's ratio to the best of a case, infinite if it did not succeed."""
    succeeded = {method: row for method, row in case.items() if row.verified is True and not row.failed}
    if criterion == "time":
        # A time of zero would make every other method infinitely slower.
        values = {method: max(row.solve_s or 0.0, 1e-4) for method, row in succeeded.items()}
    else:
        values = {method: row.objective for method, row in succeeded.items() if row.objective is not None}
    sense = "min" if criterion == "time" else next(iter(case.values())).sense
    best = (max if sense == "max" else min)(values.values(), default=0.0)
    ratios = {method: ratio(sense, value, best) for method, value in values.items()}
    return {method: ratios.get(method) or math.inf for method in case}


# ---------------------------------------------------------------- solvers

SUCCESS = ("optimal", "infeasible")


def integral(solution: Solution, allowed_s: float) -> float:
    """Return the primal–dual integral: the gap between incumbent and bound, integrated over the time limit, in seconds.

    The gap is ``|incumbent − bound| / max(|incumbent|, |bound|)``, at most 1, and 1 as long as one of them is missing
    or their signs differ (Berthold, Operations Research Letters 41, 2013). A solver that ends without a proof keeps its
    gap until the time limit.
    """
    total, since, gap = 0.0, 0.0, 1.0
    for point in solution.trace:
        at = min(max(point.time_s, since), allowed_s)
        total, since, gap = total + gap * (at - since), at, gap_of(point.incumbent, point.bound)
    ended = min(max(solution.times.solve_s, since), allowed_s)
    rest = 0.0 if solution.status in SUCCESS else allowed_s - ended
    return total + gap * (ended - since + rest)


def gap_of(incumbent: float | None, bound: float | None) -> float:
    """Return the gap between incumbent and bound as in :func:`integral`; 1 if one is missing or the signs differ."""
    if incumbent is None or bound is None or incumbent * bound < 0:
        return 1.0
    larger = max(abs(incumbent), abs(bound))
    return abs(incumbent - bound) / larger if larger else 0.0


@dataclass(frozen=True)
class SolverSummary:
    """A solver over all models that it was given.

    `success` counts claims, `correct` the claims that hold, and `wrong` lists results that do not hold, whatever they
    claim. Means are over the `common` cases, which no solver skipped. `mean_gap` is arithmetic; those of times and
    integrals are shifted geometric means, in which failures count with their time limit.
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
    geometric_s: float | None
    mean_gap: float | None
    geometric_integral_s: float | None


def cases(rows: Iterable[Row]) -> list[Row]:
    """Return the rows of models with the solver as method, so that a case is a model; none if only one solver ran."""
    solved = []
    for row in rows:
        if row.kind in ("exact", "relaxation", "bound"):
            base, question, query = row.method.partition("?")
            settings = pairs(query, row.method, "") if question else {}
            solver = settings.pop("solver", row.solver or "highs")  # the solver that solved the model, or failed to
            model = extended(base, stated(settings))
            solved.append(row.replace(method=solver, fingerprint=f"{row.fingerprint} {model}", solver=solver))
    return solved if len({row.method for row in solved}) > 1 else []


def proof(row: Row) -> Row:
    """Return the row as a profile of proofs counts it: verified if its claimed proof holds, otherwise failed."""
    holds = row.status in SUCCESS and not row.wrong
    return row if row.status == "skipped" else row.replace(verified=holds, status="optimal" if holds else "error")


def by_solver(rows: Iterable[Row], allowed_s: float | Mapping[str, float]) -> list[SolverSummary]:
    """Return a summary per solver and limit set, in the order of the rows; none if only one solver ran."""
    solved = cases(rows)
    solvers = {row.method for row in solved}
    ran = grouped((row for row in solved if row.status != "skipped"), "case")
    everywhere = {case[0].case for case in ran if {row.method for row in case} == solvers}
    summaries = []
    for group in grouped(solved, "method", "limits"):
        success, common = [r for r in group if r.status in SUCCESS], [r for r in group if r.case in everywhere]
        allowed = allowed_under(group[0].limits, allowed_s)
        times = [row.solve_s if row.ok and row.solve_s is not None else allowed for row in common]
        claimed = [min(gap_of(row.objective, row.claimed_bound), 1.0) for row in common if row.objective is not None]
        integrals = [row.integral_s if row.integral_s is not None else allowed for row in common]
        summary = SolverSummary(
            solver=group[0].method,
            limits=group[0].limits,
            results=len(group),
            success=len(success),
            correct=sum(not row.wrong for row in success),
            wrong=tuple(f"{row.fingerprint.partition(' ')[2]} on {row.instance}" for row in group if row.wrong),
            failed=sum(row.failed for row in group),
            skipped=sum(row.status == "skipped" for row in group),
            common=len(common),
            geometric_s=shifted_geometric_mean(times, TIME_SHIFT_S),
            mean_gap=fmean(claimed) if claimed else None,
            geometric_integral_s=shifted_geometric_mean(integrals, TIME_SHIFT_S),
        )
        summaries.append(summary)
    return summaries
