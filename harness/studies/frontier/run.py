"""Run a frontier: first the mechanisms and the curves, then the program at the mechanisms' own degrees of fairness."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean, median
from typing import Any, Unpack

import numpy as np

from schedgap.harness.engine.result import grouped
from schedgap.harness.engine.study import Finished, Reference, Running, Stages, Study, command_line, execute, several
from schedgap.harness.engine.task import Limits, sent
from schedgap.harness.show.measures import FRONTIER, PRICES, kinds
from schedgap.harness.show.table import to_json_lines, to_parquet
from schedgap.harness.studies.compare.methods import select
from schedgap.harness.studies.compare.row import Row
from schedgap.harness.studies.compare.run import certify
from schedgap.harness.studies.frontier.row import (
    BOTH,
    CURVES,
    ENVY,
    MECHANISM,
    OWN,
    SHARE,
    Frontier,
    FrontierRow,
    PriceRow,
)
from schedgap.harness.studies.frontier.task import PROGRAM, CurveResult, CurveTask, DotResult, DotTask
from schedgap.harness.studies.resampling import FEWEST, by_unit, interval, units_of
from schedgap.instances.catalogue import load, parameters
from schedgap.instances.errors import NotApplicableError, UsageError
from schedgap.instances.registry import PAPERS
from schedgap.instances.schema import Instance
from schedgap.instances.views.oef import ALLOCATION, ENVY_FREE, EQUAL, SHARING

POINTS = 21
"""Points of each curve, evenly apart."""

MOST_POINTS = 201
MOST_SEEDS = 1000

PROPERTIES = {
    "envy-freeness": ENVY_FREE.id,
    "sharing incentive": SHARING.id,
    "equal efficiency": EQUAL.id,
}
"""Properties whose price is that of a problem."""

TRUTHFUL = {"no gain from over-reports": "oef.noncooperative", "strategy-proofness": "oef.maxmin"}
"""Properties of mechanisms, and the mechanism whose price is shown: that of the property is at most this."""


def frontier(
    instances: Reference | Sequence[Reference],
    *,
    points: int = POINTS,
    seeds: int = 0,
    limits: Limits | None = None,
    **running: Unpack[Running],
) -> Frontier:
    """Compute what fairness costs tenants that share GPUs, as certified curves with every mechanism beside them.

    >>> sg.frontier("gen/oef-20").prices  # doctest: +SKIP

    Parameters
    ----------
    instances
        One or more instances with tenants.
    points
        Points of each curve.
    seeds
        If above 0, each generated instance is drawn so many times, with the seeds 1, 2, …; prices then have a
        distribution.
    limits
        Limits of each mechanism and of each point.
    **running
        Workers, results folder and callbacks (:class:`schedgap.harness.engine.study.Running`).

    Raises
    ------
    UsageError
        If an instance has no tenants, or an option makes no sense; nothing has run then.
    """
    if not 2 <= points <= MOST_POINTS:
        raise UsageError(f"points = {points}: must be between 2 and {MOST_POINTS}")
    if not 0 <= seeds <= MOST_SEEDS:
        raise UsageError(f"seeds = {seeds}: must be between 0 and {MOST_SEEDS}")
    given, limits = several(instances), limits or Limits()
    found = [one for reference in given for one in _drawn(reference, seeds)]
    for one in found:
        try:
            PAPERS.get("oef").view(one)
        except NotApplicableError as reason:
            raise UsageError(f"{one.name} has no tenants that share GPUs, whom fairness is about: {reason}") from reason
    options = {"instance": given, "points": None if points == POINTS else points, "seeds": seeds or None}
    meta = {
        "command": command_line(options | limits.given(Limits()), "frontier"),
        "points": points,
        "rules": f"{points} points",
    }
    return execute(STUDY, stages(found, points, limits), meta, instances=found, **running)


def _drawn(reference: Reference, seeds: int) -> Iterator[Instance]:
    """Yield the instance of a reference, or those of all seeds; raise `UsageError` if it has no seed."""
    if not seeds:
        yield load(reference)
        return
    if isinstance(reference, Instance | Path) or "seed" not in [one.name for one in parameters(reference)]:
        raise UsageError(f"{reference}: only generated instances have seeds; leave out --seeds")
    for seed in range(1, seeds + 1):
        yield load(reference, {"seed": seed})


def stages(instances: Sequence[Instance], points: int, limits: Limits) -> Stages:
    """Return the stages: mechanisms and curves, then the program at each mechanism's own degree of fairness."""
    packed = [sent(one) for one in instances]
    mechanisms = [spec.id for spec in select(["*"], ["oef"])]

    def first(done: Sequence[Any]) -> Sequence[Any]:
        return [
            task
            for about in packed
            for task in (
                *(CurveTask(*about, kind, places(kind, points), limits=limits) for kind in CURVES),
                *(DotTask(*about, method, limits=limits) for method in mechanisms),
            )
        ]

    def second(done: Sequence[Any]) -> Sequence[CurveTask]:
        dots = [one for one in done if isinstance(one, DotResult) and one.epsilon is not None]
        tasks = []
        for about in packed:
            own = sorted({degree(one) for one in dots if one.row.fingerprint == about[2]})
            tasks += [CurveTask(*about, OWN, tuple(own), limits=limits)] if own else []
        return tasks

    return [first, second]


def places(kind: str, points: int) -> tuple[tuple[float, float], ...]:
    """Return the degrees of fairness ``(ε, σ)`` of a curve, from strict to free."""
    levels = [float(f"{level:.12g}") for level in np.linspace(0, 1, points)]
    of = {ENVY: lambda x: (x, 0.0), SHARE: lambda x: (1.0, float(f"{1 - x:.12g}")), BOTH: lambda x: (x, 1.0)}[kind]
    return tuple(map(of, levels))


GRAIN = 1e9
"""A mechanism's ε is rounded up, and its σ down, to multiples of one part of this, so that its own allocation meets
them, and mechanisms that are alike share a point."""


def degree(dot: DotResult) -> tuple[float, float]:
    """Return the degree of fairness that a program has to ask for, so that a mechanism's allocation meets it."""
    assert dot.epsilon is not None
    assert dot.sigma is not None
    epsilon, sigma = math.ceil(dot.epsilon * GRAIN + 1) / GRAIN, math.floor(min(1.0, dot.sigma) * GRAIN - 1) / GRAIN
    return min(1.0, epsilon), max(0.0, sigma)


# ---------------------------------------------------------------- collecting


def collected(found: Finished) -> Frontier:
    """Return the rows of all instances, and the prices."""
    rows: list[FrontierRow] = []
    prices: list[PriceRow] = []
    placed = [one for one in found.results if isinstance(one, DotResult)]
    certified = dict(zip((one.key for one in placed), certify(one.row for one in placed), strict=True))
    for mark, instance in found.instances.items():
        curves = [one for one in found.results if isinstance(one, CurveResult) and one.fingerprint == mark]
        dots = [one for one in placed if one.row.fingerprint == mark]
        mine = [certified[one.key] for one in dots]
        made = [*_points(instance, curves), *(_dot(one, certified[one.key]) for one in dots)]
        made = [_contradicted(row, made) for row in made]
        most, best = _largest(made, mine)
        made = [_priced(row, most, best) for row in made]
        own = {(row.epsilon, row.sigma): row.bound for row in made if row.kind == OWN and not row.wrong}
        bounds = {one.key: own.get(degree(one)) for one in dots if one.epsilon is not None}
        made = [_beyond(row, bounds.get(row.key)) for row in made]
        rows += made
        prices += _prices(instance, made, mine)
    return Frontier(found.meta, rows, found.instances, folder=found.folder, prices=[*_overall(prices), *prices])


def _points(instance: Instance, curves: Sequence[CurveResult]) -> Iterator[FrontierRow]:
    """Yield the rows of all curves of an instance."""
    for one in curves:
        about: dict[str, Any] = {
            "instance": instance.name,
            "fingerprint": one.fingerprint,
            "kind": one.kind,
            "method": PROGRAM,
        }
        if not one.points:
            yield FrontierRow(**about, status=one.status, reason=one.reason, key=one.key)
        for point in one.points:
            told = {
                name: getattr(point, name) for name in ("epsilon", "sigma", "total", "bound", "status", "violations")
            }
            yield FrontierRow(**about, **told, verified=not point.violations, key=one.key)


def _dot(one: DotResult, row: Row) -> FrontierRow:
    same = ("instance", "fingerprint", "method", "status", "verified", "violations", "reason", "key")
    told = {name: getattr(row, name) for name in same}
    return FrontierRow(kind=MECHANISM, epsilon=one.epsilon, sigma=one.sigma, total=one.total, **told)


def _contradicted(row: FrontierRow, peers: Sequence[FrontierRow]) -> FrontierRow:
    """Return a point as WRONG if a verified allocation that is as fair has a larger total than its bound."""
    if row.bound is None or row.epsilon is None or row.sigma is None:
        return row
    for peer in peers:
        if not peer.verified or peer.total is None or peer.epsilon is None or peer.sigma is None:
            continue
        if peer.epsilon <= row.epsilon and peer.sigma >= row.sigma and peer.total > row.bound * (1 + 1e-8):
            line = f"bound {row.bound:.9g} is beaten by the total {peer.total:.9g} of {peer.method}"
            return row.replace(verified=False, violations=(*row.violations, line))
    return row


def _largest(rows: Sequence[FrontierRow], mechanisms: Sequence[Row]) -> tuple[float | None, float | None]:
    """Return the least certified bound on total efficiency without any rule, and the largest verified total."""
    free = [row.bound for row in rows if (row.epsilon, row.sigma) == (1.0, 0.0) and row.bound and not row.wrong]
    free += [row.best_bound for row in mechanisms if row.problem == ALLOCATION.id and row.best_bound]
    totals = [row.total for row in rows if row.verified and row.total is not None]
    return min(free, default=None), max(totals, default=None)


def _priced(row: FrontierRow, most: float | None, best: float | None) -> FrontierRow:
    """Return a row with its price: the part of the largest total efficiency that it lacks.

    A mechanism's total is known, so that its price is between the totals' ratio and that to the bound. The price of a
    point is that of its optimum, which lies between its total and its bound.
    """
    if row.total is None or not row.verified or not most or not best:
        return row
    least, largest = max(0.0, 1 - (row.bound or row.total) / best), max(0.0, 1 - row.total / most)
    if largest - least <= KNOWN:
        least = largest = max(0.0, 1 - row.total / best)
    return row.replace(price_at_least=least, price_at_most=largest)


KNOWN = 1e-6
"""Difference of two limits of a price up to which the optima count as found, as the checker's tolerance allows."""


def _beyond(row: FrontierRow, bound: float | None) -> FrontierRow:
    """Return a mechanism's row with the most by which the program, at the same degree of fairness, is better."""
    if row.kind != MECHANISM or row.total is None or not row.verified or not bound:
        return row
    lost = max(0.0, 1 - row.total / bound)
    return row.replace(bound=bound, beyond_at_most=lost if lost > KNOWN else 0.0)


def _prices(instance: Instance, rows: Sequence[FrontierRow], mechanisms: Sequence[Row]) -> Iterator[PriceRow]:
    """Yield the prices of properties on an instance."""
    about: dict[str, Any] = {"instance": instance.name, "instances": 1, "units": 1}
    by_problem = {row.price_of: row for row in mechanisms if row.price_at_least is not None}
    for name, problem in PROPERTIES.items():
        row = by_problem.get(PAPERS.get("oef").problem(problem).requires)
        if row is not None and row.price_at_least is not None and row.price_at_most is not None:
            known = row.price_at_most - row.price_at_least <= KNOWN
            least = row.price_at_most if known else row.price_at_least
            yield PriceRow(name, price_at_least=least, price_at_most=row.price_at_most, **about)
    for name, method in TRUTHFUL.items():
        dot = next((row for row in rows if row.kind == MECHANISM and row.method == method and row.price), None)
        if dot is not None and dot.price_at_most is not None:
            yield PriceRow(name, price_at_least=0.0, price_at_most=dot.price_at_most, **about)


def _overall(prices: Sequence[PriceRow]) -> Iterator[PriceRow]:
    """Yield the distribution of each property's price over several instances; seeds are the units of intervals."""
    names = {one.instance: one.instance for one in prices}
    if len(names) < 2:
        return
    units = units_of(names)
    for several_of in grouped(prices, "requires"):
        values = {one.instance: one.price_at_most for one in several_of}
        groups, worst = by_unit(values, units), max(several_of, key=lambda one: (one.price_at_least, one.price_at_most))
        few = len(groups) < FEWEST
        low, high = (None, None) if few else interval(groups)
        yield PriceRow(
            several_of[0].requires,
            f"all {len(values)}",
            len(values),
            len(groups),
            min(one.price_at_least for one in several_of),
            max(one.price_at_most for one in several_of),
            median(values.values()),
            fmean(values.values()),
            low,
            high,
            worst.instance,
        )


def judged(found: Finished) -> list[FrontierRow]:
    """Return the rows after comparing them with each other."""
    return collected(replace(found, folder=None)).rows


def _tables(found: Frontier) -> Mapping[str, bytes]:
    records = [row.as_dict() for row in found.rows]
    costs = [row.as_dict() for row in found.prices]
    return {
        "rows.jsonl": to_json_lines(FRONTIER, records),
        "rows.parquet": to_parquet(kinds(FRONTIER), records),
        "prices.parquet": to_parquet(kinds(PRICES), costs),
    }


STUDY = Study("frontier", (CurveResult, DotResult), collected, _tables, judged, lean=True)
