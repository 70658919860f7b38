r"""A first-order method for (10) with thousands of tenants, whose bound and allocation are both certified.

(10) has :math:`n^2` envy rows, but few of them matter: about a hundred per tenant. The primal-dual hybrid gradient
method (PDHG) takes a step per row and column without solving anything. Here it works on the rows that have been
violated so far; from time to time all pairs are looked at, new rows are added, and idle ones are dropped. It is
accelerated as in *PDLP*: averages with an anchor that is moved when the residual has fallen enough (reflected Halpern
iteration; Lu and Yang, Restarted Halpern PDHG for linear programming, 2024), and a ratio of primal to dual steps that
follows the distances travelled.

**Bound.** Any multipliers :math:`y \ge 0` of envy rows give one: the price of a type is what it is worth to the tenant
who values it most (:mod:`schedgap.certificates.oef`).

**Allocation.** Bundles are settled (:mod:`.envy`), so that nobody envies anybody: the mean of those after each round
since the last time, because single points swing around it.

**Levels.** A sample of the tenants is solved first, with devices in proportion. Each of the other tenants then starts
with the bundle that it likes best, and with the multipliers of the nearest tenant of the sample.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from schedgap.instances import clock
from schedgap.instances.arrays import Array, Ints
from schedgap.instances.views.oef import Allocation, OefView, merged, sampled, unmerged
from schedgap.models.engine.solve import Size, Solution, SolveOptions, Times, TracePoint
from schedgap.models.oef.envy import Envy, Parts, favourites, neighbours, parts, settled
from schedgap.models.oef.steps import Library, Point, SortedRows, Steps, library
from schedgap.models.registry import Outcome

ENOUGH = 1e-3
"""Gap at which the method ends, unless a larger one is asked for: it gains the next digit slowly."""

ROUND = 300
"""Steps between looks at all pairs."""

LOOK = 25
"""Steps between looks at the residual."""

ROUNDS = 400
"""Most rounds, also without a time limit: the method ends in any case."""

LATER = 1.25
"""Factor by which rounds grow between allocations: settling takes as long as a round."""

NEW_ROWS = 6
"""Rows that are added for each tenant in a round."""

FIRST_RATIO = 0.01
"""First ratio of primal to dual steps, per tenant; the method adapts it."""

SHARPER = 64.0
"""Factor by which the ratio of steps is larger in the method that makes the bound: the price of a type is the largest
of what it is worth to all tenants, so that noise in the multipliers costs much."""

IDLE = -0.004
"""A row without a multiplier is dropped if its tenant likes the other bundle less by this part of an equal split."""

LEVEL, SMALLEST = 4, 250
"""Factor between the sizes of samples, and the size from which there are samples."""

LEVEL_GAP, LEVEL_ENVY = 0.01, 0.02
"""Difference of bound and objective, and envy, at which a sample is solved well enough; with more envy, settling would
cost too much of the efficiency."""


LASTS = 0.005
"""Envy from which on the anchor of the method that makes the allocation lasts, too: with 3,000 tenants, its points
swing for thousands of steps."""


@dataclass(eq=False)
class FirstOrder:
    """The method on one view: its envy rows so far, sorted by `pairs`, and its point.

    `arrays` says what it computes with. The ratio of steps `adapts` wherever the anchor moves. A `lasting` anchor stays
    from one run to the next.
    """

    view: OefView
    arrays: Library
    of: Parts
    pairs: Ints
    point: Point
    ratio: float
    steps: int = 0
    adapts: bool = True
    lasting: bool = False
    best: float = np.inf
    evidence: Envy | None = None

    def __post_init__(self) -> None:
        """Find the rows of the pairs, and start anew at the point."""
        self.rows = self.split(self.pairs)
        self.anew()

    def anew(self) -> None:
        """Put the anchor where the point is."""
        self.onward = self.anchor = self.point
        self.since, self.start, self.last = 0, 0.0, 0.0

    @classmethod
    def begin(cls, view: OefView, arrays: Library) -> FirstOrder:
        """Return the method at the equal split, with rows between tenants of similar speedups."""
        of = parts(view)
        pairs = neighbours(view, 8)
        price = (of.gain[:, None] * of.worth / of.share[:, None]).max(axis=0)
        point = Point(np.ones_like(of.worth), np.zeros(len(pairs)), price)
        return cls(view, arrays, of, pairs, point, FIRST_RATIO * view.size)

    def on(self) -> Steps:
        """Return the steps on the rows so far."""
        worth, share = self.of.worth, self.of.share
        degree = np.zeros_like(worth)
        np.add.at(degree, self.rows.envious, worth[self.rows.envious])
        np.add.at(degree, self.rows.other, worth[self.rows.envious])
        return self.arrays.steps(self.of, self.rows, 0.95 / (degree + share[:, None]))

    def run(self, steps: int) -> None:
        """Take so many steps. The anchor moves where the residual has fallen enough, has turned, or falls slowly."""
        on, until = self.on(), self.steps + steps
        to, point, anchor = (on.given(one) for one in (self.point, self.onward, self.anchor))

        def residual(one: Point, two: Point) -> float:
            primal, dual = on.apart(one, two)
            return primal / self.ratio + dual * self.ratio

        while self.steps < until:
            to = on.moved(point, self.ratio)
            self.steps += 1
            self.since += 1
            left, anew = 0.0, self.steps == until and not self.lasting
            if self.since == 1 or self.since % LOOK == 0:
                left = residual(to, point)
            if self.since == 1:
                self.start = self.last = left
            elif self.since % LOOK == 0:
                self.prove(on, to.multiplier)
                much, turned = left < 0.04 * self.start, self.last < left < 0.64 * self.start
                anew = anew or much or turned or self.since >= 0.36 * max(self.steps, 200)
                self.last = left
            if not anew:
                point = on.mixed(self.since / (self.since + 1), to, point, anchor)
                continue
            primal, dual = on.apart(to, anchor)
            if self.adapts and min(primal, dual) > 1e-24:
                self.ratio = (self.ratio * (primal / dual) ** 0.5) ** 0.5
            anchor = point = to
            self.since = 0
        self.point = on.taken(to)
        self.onward = self.point if point is to else on.taken(point)
        self.anchor = self.point if anchor is to else on.taken(anchor)

    def prove(self, on: Steps, multiplier: Any) -> None:
        """Keep these multipliers, in arrays of the library, if they give the best bound so far."""
        bound = self.of.total * on.prices(multiplier)
        if bound < self.best:
            numbers = on.taken(Point(multiplier, multiplier, multiplier)).multiplier
            used = np.flatnonzero(numbers)
            l, i = self.rows.envious[used], self.rows.other[used]
            scale = self.of.total * self.view.weight / self.view.split_efficiency
            self.best = bound
            self.evidence = Envy(np.column_stack((l, i)), numbers[used] * scale[l])

    def sharper(self) -> FirstOrder:
        """Return a second method that goes on from here with smaller dual steps, and has better bounds.

        It swings for thousands of steps, which an anchor dampens only if it lasts as long.
        """
        return replace(self, ratio=SHARPER * self.ratio, adapts=False, lasting=True)

    def objective(self) -> float:
        """Return the total efficiency of the bundles, which may violate rows."""
        return self.of.total * float(self.of.gain @ (self.of.worth * self.point.bundle).sum(axis=1))

    def look(self) -> float:
        """Add violated rows, drop idle ones, and return the largest envy in equal splits."""
        n, bundle, worth = self.view.size, self.point.bundle, self.of.worth
        envious, other, most = self.arrays.envied(worth, bundle, NEW_ROWS, 1e-6)
        _, l, i = self.rows
        wanted = np.einsum("rj,rj->r", worth[l], bundle[i] - bundle[l])
        kept = (self.point.multiplier > 0) | (wanted > IDLE)
        multipliers = np.column_stack([one.multiplier for one in (self.point, self.onward, self.anchor)])
        self.replace(np.concatenate([self.pairs[kept], envious * n + other]), multipliers[kept])
        return most

    def replace(self, pairs: Ints, multipliers: Array) -> None:
        """Replace the rows by `pairs`, which may repeat.

        The first ones have these multipliers ``(r, 3)`` at point, onward and anchor; the others 0.
        """
        self.pairs, which = np.unique(pairs, return_inverse=True)
        given = np.zeros((3, len(self.pairs)))
        for each, added in zip(given, multipliers.T, strict=True):
            np.add.at(each, which[: len(multipliers)], added)
        points = (self.point, self.onward, self.anchor)
        self.point, self.onward, self.anchor = (
            one._replace(multiplier=each) for one, each in zip(points, given, strict=True)
        )
        self.rows = self.split(self.pairs)

    def split(self, pairs: Ints) -> SortedRows:
        """Return the rows of sorted pairs."""
        n = self.view.size
        return SortedRows(np.searchsorted(pairs, np.arange(n + 1) * n), pairs // n, pairs % n)


def widened(sample: FirstOrder, view: OefView) -> FirstOrder:
    """Return the method on a view whose first tenants are those of a solved sample, which serve as a start."""
    from scipy.spatial import KDTree

    wide, few, n = FirstOrder.begin(view, sample.arrays), sample.view.size, view.size
    bundle = sample.point.bundle
    likes = favourites(wide.of.worth, bundle, np.zeros(few))
    likes[:few] = np.arange(few)
    cell = np.array(KDTree(np.log(sample.view.speedups)).query(np.log(view.speedups))[1])
    cell[:few] = np.arange(few)
    members, size = np.argsort(cell, kind="stable"), np.bincount(cell, minlength=few)
    start = np.cumsum(size) - size
    used = np.flatnonzero(sample.point.multiplier)
    l, i = (part[used] for part in sample.rows[1:])
    # The members of two cells form as many rows as the larger cell has members. They share the multiplier, times the
    # members of the first cell, as a part of all tenants.
    many = np.maximum(size[l], size[i])
    row, at = np.repeat(np.arange(len(used)), many), np.arange(many.sum()) - np.repeat(np.cumsum(many) - many, many)
    pairs = members[start[l[row]] + at % size[l[row]]] * n + members[start[i[row]] + at % size[i[row]]]
    multiplier = (sample.point.multiplier[used] * size[l] / many * few / n)[row]
    wide.point = Point(bundle[likes], wide.point.multiplier, sample.point.price)
    wide.ratio = sample.ratio * n / few
    wide.anew()
    wide.replace(np.concatenate([pairs, wide.pairs]), np.repeat(multiplier[:, None], 3, axis=1))
    return wide


def started(view: OefView, order: Ints, arrays: Library, budget: clock.Budget) -> FirstOrder:
    """Return the method on the view's tenants in this `order`, at the point that samples of the first ones suggest."""
    sizes = [view.size]
    while sizes[-1] > SMALLEST * LEVEL:
        sizes.append(sizes[-1] // LEVEL)
    method = FirstOrder.begin(sampled(view, order[: sizes.pop()]), arrays)
    while sizes:
        for _ in range(ROUNDS):
            method.run(ROUND)
            most = method.look()
            if budget.left_s < 0 or (most < LEVEL_ENVY and method.best - method.objective() < LEVEL_GAP * method.best):
                break
        method = widened(method, sampled(view, order[: sizes.pop()]))
    on = method.on()
    method.prove(on, on.given(method.point).multiplier)
    return method


def by_first_order(view: OefView, options: SolveOptions, *, arrays: str = "compiled", single: bool = False) -> Outcome:
    """Solve (10) by a first-order method on the rows that matter; end with a small gap.

    The gap is :data:`ENOUGH`, or `rel_gap` if that is larger. The method computes with `arrays`
    (:func:`.steps.library`), in `single` precision or in double; bundles are settled in double precision.
    """
    computes = library(arrays, single)
    small, group = merged(view)
    budget, trace = clock.Budget(options.time_limit_s), list[TracePoint]()
    began, enough = clock.now(), max(options.rel_gap, ENOUGH)
    order = np.random.default_rng(options.seed).permutation(small.size)
    method = started(small, order, computes, budget)
    prover, best, value = method, method.view.equal_split, float(method.view.split_efficiency.sum())
    due, most, points = 1, np.inf, [method.point.bundle]
    for count in range(1, ROUNDS + 1):
        for one in dict.fromkeys((prover, method)):
            if budget.left_s > 0:
                one.run(ROUND)
                most = one.look()
                if one is method:
                    method.lasting = method.lasting or most < LASTS
                    points = [*points, one.point.bundle] if most < LEVEL_ENVY else [one.point.bundle]
        last = budget.left_s <= 0 or count == ROUNDS
        if prover is method and most < LEVEL_ENVY:
            prover = method.sharper()
        if points and (last or (most < LEVEL_ENVY and count >= due)):
            due, mean = int(LATER * count) + 1, np.mean(points, axis=0)
            points = []
            devices = settled(method.view, mean * method.view.equal_split, computes.envied)
            if (found := float((method.view.speedups * devices).sum())) > value:
                best, value = devices, found
            trace.append(TracePoint(clock.now() - began, value, prover.best))
        if last or prover.best - value <= enough * value:
            break
    devices = np.empty_like(best)
    devices[order] = best
    assert prover.evidence is not None
    evidence = Envy(order[prover.evidence.pairs], prover.evidence.multiplier)
    rows = view.size * (view.size - 1) + len(view.gpu_types)
    columns = view.size * len(view.gpu_types)
    solution = Solution(
        status="gap left" if prover.best - value <= enough * value else "time limit with incumbent",
        termination=f"{prover.steps} steps on {len(prover.pairs)} of {rows} rows, on a {computes.device}",
        solution_status="feasible",
        objective=value,
        bound=prover.best,
        times=Times().since(began),
        size=Size(rows=rows, columns=columns),
        iterations=prover.steps,
        trace=tuple(trace),
    )
    return Outcome(solution, Allocation(unmerged(view, group, devices)), evidence=evidence)
