r"""Prices of machines over time, by ascent of the Lagrangian bound over starts (:mod:`schedgap.models.rigid.starts`).

The bound of a pool is concave in its prices :math:`\pi \ge 0`. A minimum over starts is not smooth, so that plain
ascent zigzags. Hence each job counts by a soft minimum :math:`-T_j \ln \sum_s \exp(-c_{js}/T_j)` of the costs
:math:`c_{js}` of its starts s. It is smooth: its gradient is the use of the machines if the job starts at s with a
probability in proportion to :math:`\exp(-c_{js}/T_j)`, less their capacity. Spreads are proportional to weights,
:math:`T_j = T w_j`, with times T that shrink from several intervals to a fraction of one. L-BFGS (Byrd et al., A
limited memory algorithm for bound constrained optimization, 1995) climbs; then the true bound counts, which holds for
any prices.

A long log is climbed in stretches of time (:mod:`schedgap.models.rigid.stretches`). Their prices count within the
stretch, one after another; the climb goes on from there.

Prices are constant in intervals. An interval is cut in the middle if its halves are used differently where prices
change, so that intervals are short where the pool is full. A job looks no further than to the start at which its
waiting alone costs as much as its best start so far. So a round takes time in proportion to the number of jobs and of
intervals in which they might wait, and 100,000 jobs are few.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from schedgap.instances import clock
from schedgap.instances.arrays import Array, Ints
from schedgap.instances.rigid import RigidView, kernels
from schedgap.models.rigid.bounds import Share, WeightedDelay, shares
from schedgap.models.rigid.stretches import Stretch

FIRST, PER = 512, 3
"""Approximate number of the first intervals of a pool: at least this, and one for this many jobs."""

MOST = 30_000
"""Most intervals of a pool; a tenth of them at first."""

SPREADS, FINER, LAST = (4.0, 1.0, 0.3), (1.0, 0.3), (0.1, 0.03, 0.01)
"""Times T on the first intervals, after cutting, and at the end, as multiples of the mean length of an interval."""

POLISH = (1.0, *FINER, *LAST)
"""The same where the prices of stretches are put together."""

SHARE = 0.4
"""Largest part of the time left that is spent with one T."""

STEPS, PAIRS = 60, 20
"""Most steps of L-BFGS for each T, and how many of them it remembers."""

LEAST = 1e-8
"""Steps end if they raise the bound by less than this fraction."""

CUT = 0.9
"""Share of the imbalance within intervals that is in those cut in one round."""

BETTER = 2e-3
"""Cutting ends if it raises the waiting that the bound requires by less than this fraction."""

POLISHED = 400_000
"""Most prices of a pool that are improved together: the steps that L-BFGS remembers take 320 bytes for each."""

SETTLED = 1e-9
"""Hours by which a machine may be in use for too long in an interval if no job has to wait."""


class Prices(NamedTuple):
    """A bound on the weighted sum of flow times, and the prices that prove it.

    Prices ``(d, E)`` are per hour of a machine in an interval; `edges` ``(E + 1,)`` are ticks. `late` says whether the
    time limit ended the ascent, and `rounds` counts evaluations of the bound.
    """

    bound: float
    machines: list[Share]
    edges: Ints
    prices: Array
    rounds: int
    late: bool


class _LateError(Exception):
    """The time of some steps is over."""


def machines_of_pool(gpus: Ints, capacity: int) -> list[Share]:
    """Return the area, and the dual feasible functions that are larger than it for some gang of a pool."""
    area, *others = shares(gpus, capacity)
    distinct = {f.value.tobytes(): f for f in reversed(others) if (f.value > area.value).any()}
    return [area, *reversed(distinct.values())]


class PoolPrices:
    """The best prices found so far for the `machines` of a pool, and the `bound` that they give on some of its jobs.

    The values of machines are those for these jobs. Edges are ticks, all other times are in hours.
    """

    def __init__(
        self, view: RigidView, jobs: Ints, capacity: int, goal: WeightedDelay, machines: Sequence[Share]
    ) -> None:
        release, duration, gpus = view.release[jobs], view.duration[jobs], view.gpus[jobs]
        hour, weight = view.ticks_of_hour, goal.weight[jobs] * view.ticks_of_hour
        sizes, first, kind = np.unique(gpus, return_index=True, return_inverse=True)
        self.uses = np.stack([machine.value[first] for machine in machines], axis=1)
        self.hour = hour
        self.jobs = release / hour, duration / hour, goal.earliest[jobs] / hour, weight, kind.astype(np.int64)
        self.unit = max(float(weight.mean()), 1e-200) * capacity / float(sizes.mean())
        starts = kernels().by_list(release, duration, gpus, capacity, (duration * gpus).astype(float), False)
        times, last = np.concatenate([release, release + duration]), int((starts + duration).max())
        count = min(max(FIRST, len(jobs) // PER), MOST // 10) // 2
        spaced = np.quantile(times, np.linspace(0, 1, count)), np.linspace(int(release.min()), last, count)
        edges = np.unique(np.rint(np.concatenate(spaced)).astype(np.int64))
        self.edges = edges if len(edges) > 1 else np.append(edges, edges[0] + 1)
        self.rounds, self.late = 0, False
        self.prices = self.current = np.zeros((len(machines), len(self.edges) - 1))
        self.alone, over = self.at(self.prices, 0.0, self.edges)
        self.bound = self.alone
        self.settled = bool((over <= SETTLED).all())

    def at(self, prices: Array, spread: float, edges: Ints) -> tuple[float, Array]:
        """Return the bound at prices, smoothed by a spread, and its gradient ``(d, E)``: use less capacity."""
        from schedgap.models.rigid import _kernels

        self.rounds += 1
        hours = edges / self.hour
        length = np.diff(hours)
        whole, part = np.empty((len(self.uses), len(edges))), np.empty((len(self.uses), len(edges)))
        room = 2 * len(edges) + 4
        scratch = np.empty(room), np.empty(room), np.empty(room, np.int64), np.empty(room, np.int64)
        price = np.ascontiguousarray(self.uses @ prices)
        least = _kernels.best_starts(self.jobs, hours, price, spread, scratch, whole, part)
        used = part[:, :-1] + np.cumsum(whole[:, :-1], axis=1) * length
        return float(least - (prices * length).sum()), self.uses.T @ used - length

    def begin(self, edges: Ints, prices: Array) -> None:
        """Begin at known prices ``(d, E)``; before and after them, prices are 0."""
        least, most = int(self.edges[0]), int(self.edges[-1])
        ends = np.array([least] * bool(edges[0] > least)), np.array([most] * bool(edges[-1] < most))
        none = [np.zeros((len(prices), end.size)) for end in ends]
        self.edges = np.concatenate([ends[0], edges, ends[1]]).astype(np.int64)
        self.current = np.hstack([none[0], prices, none[1]])
        self.prices = self.current
        self.bound, _ = self.at(self.prices, 0.0, self.edges)

    def polish(self, budget: clock.Budget) -> None:
        """Climb on the present intervals, unless there are too many to remember steps."""
        if not self.settled and self.current.size <= POLISHED:
            for spread in POLISH:
                self._steps(spread * float(np.median(np.diff(self.edges))) / self.hour, budget)

    def climb(self, budget: clock.Budget) -> None:
        """Climb until neither further steps nor shorter intervals help, or the time is over."""
        spreads: tuple[float, ...] = SPREADS
        half = budget.left_s / 2
        while not self.settled:
            before, length = self.bound, float(np.diff(self.edges).mean()) / self.hour
            for spread in spreads:
                self._steps(spread * length, budget)
            enough = len(self.edges) > MOST or self.bound - before < BETTER * (self.bound - self.alone)
            if budget.left_s < half or enough or not self._cut(spreads[-1] * length):
                break
            spreads = FINER
        for spread in LAST if not self.settled else ():
            self._steps(spread * float(np.diff(self.edges).mean()) / self.hour, budget)

    def _steps(self, spread: float, budget: clock.Budget) -> None:
        """Climb with soft minima for at most :data:`SHARE` of the time left, and keep prices that are better."""
        from scipy.optimize import minimize

        until = budget.left_s * (1 - SHARE)

        shape = self.current.shape

        def negated(x: Array) -> tuple[float, Array]:
            if budget.left_s < until or budget.left_s <= 0:
                raise _LateError
            self.current = np.maximum(x.reshape(shape), 0.0) * self.unit
            value, gradient = self.at(self.current, spread, self.edges)
            return -value / size, -self.unit / size * gradient.ravel()

        size = max(self.bound, 1e-200)
        options: Any = {"maxiter": STEPS, "maxcor": PAIRS, "ftol": LEAST, "gtol": 0.0}
        begin = self.current.ravel() / self.unit
        try:
            room = [(0.0, None)] * begin.size
            found = minimize(negated, begin, jac=True, method="L-BFGS-B", bounds=room, options=options)
            self.current = np.maximum(found.x.reshape(shape), 0.0) * self.unit
        except _LateError:
            self.late = True
        bound, _ = self.at(self.current, 0.0, self.edges)
        if bound > self.bound:
            self.bound, self.prices = bound, self.current

    def _cut(self, spread: float) -> bool:
        """Cut intervals; return whether there were any to cut."""
        edges, middle = self.edges, (self.edges[:-1] + self.edges[1:]) // 2
        halves = np.append(np.stack([edges[:-1], middle], axis=1).ravel(), edges[-1])
        kept = np.append(np.diff(halves) > 0, True)
        over = np.zeros((len(self.prices), len(halves) - 1))
        over[:, kept[:-1]] = self.at(np.repeat(self.prices, 2, axis=1)[:, kept[:-1]], spread, halves[kept])[1]
        steps = np.abs(np.diff(self.prices, prepend=0.0, append=0.0))
        gain = (np.abs(over[:, ::2] - over[:, 1::2]) * (steps[:, :-1] + steps[:, 1:])).sum(axis=0)
        gain[middle == edges[:-1]] = 0.0
        order = np.argsort(-gain, kind="stable")
        many = int(np.searchsorted(np.cumsum(gain[order]), CUT * gain.sum())) + 1
        chosen = order[:many][gain[order[:many]] > 0]
        self.edges = np.sort(np.append(edges, middle[chosen]))
        inside = np.searchsorted(edges, self.edges[:-1], side="right") - 1
        self.prices, self.current = self.prices[:, inside], self.current[:, inside]
        return bool(chosen.size)


def dearest(
    view: RigidView,
    goal: WeightedDelay,
    limit_s: float | None,
    among: Ints | None = None,
    known: Sequence[Mapping[str, Array]] = (),
) -> Prices:
    """Return the best bound and prices found within a time limit; each pool has time in proportion to its jobs.

    The bound is on the jobs `among`, ``(m,)`` by number, or on all. If stretches are `known` (:func:`part_of`), their
    prices are put together and improved.
    """
    budget, pools = clock.Budget(limit_s), list[tuple[slice, PoolPrices]]()
    machines = list[Share]()
    for jobs, capacity in view.by_pool():
        inside = np.ones(len(jobs), np.bool_) if among is None else np.isin(jobs, among)
        own = machines_of_pool(view.gpus[jobs], capacity)
        if inside.any():
            values = [machine._replace(value=machine.value[inside]) for machine in own]
            place = slice(len(machines), len(machines) + len(own))
            pools.append((place, PoolPrices(view, jobs[inside], capacity, goal, values)))
        machines += [machine._replace(code=(int(view.pool[jobs[0]]), machine.code)) for machine in own]
    left = sum(len(pool.jobs[0]) for _, pool in pools)
    together = joined(known)
    for place, pool in sorted(pools, key=lambda pair: len(pair[1].jobs[0])):
        given = clock.Budget(budget.left_s * len(pool.jobs[0]) / left)
        left -= len(pool.jobs[0])
        if together is None:
            pool.climb(given)
        else:
            pool.begin(together[0], together[1][place])
            pool.polish(given)
    edges = np.unique(np.concatenate([pool.edges for _, pool in pools]))
    prices = np.zeros((len(machines), len(edges) - 1))
    for place, pool in pools:
        at = np.searchsorted(pool.edges, edges[:-1], side="right") - 1
        there = (at >= 0) & (at < len(pool.edges) - 1)
        prices[place] = np.where(there, pool.prices[:, at.clip(0, pool.prices.shape[1] - 1)], 0.0)
    late, rounds = any(pool.late for _, pool in pools), sum(pool.rounds for _, pool in pools)
    return Prices(sum(pool.bound for _, pool in pools), machines, *merged(edges, prices), rounds, late)


def merged(edges: Ints, prices: Array) -> tuple[Ints, Array]:
    """Return edges and prices without the edges at which no price changes."""
    kept = np.append(True, (np.diff(prices, axis=1) != 0).any(axis=0))
    return edges[np.append(kept, True)], prices[:, kept]


def part_of(stretch: Stretch, found: Prices) -> dict[str, Any]:
    """Return the edges ``(E + 1,)`` and prices ``(d, E)`` of a stretch as arrays."""
    since, until = max(stretch.since, int(found.edges[0])), min(stretch.until, int(found.edges[-1]))
    if since >= until:
        return {"edges": found.edges[:1], "prices": found.prices[:, :0]}
    inside = (found.edges > since) & (found.edges < until)
    edges = np.concatenate([[since], found.edges[inside], [until]])
    return {"edges": edges, "prices": found.prices[:, np.searchsorted(found.edges, edges[:-1], side="right") - 1]}


def joined(known: Sequence[Mapping[str, Array]]) -> tuple[Ints, Array] | None:
    """Return the edges and prices of stretches, one after another; between them, prices are 0."""
    edges, prices = list[Ints](), list[Array]()
    for part in known:
        own: Ints = part["edges"].astype(np.int64)
        if not part["prices"].size:
            continue
        if edges and edges[-1][-1] < own[0]:
            prices.append(np.zeros((len(part["prices"]), 1)))
        elif edges:
            edges[-1] = edges[-1][:-1]
        edges.append(own)
        prices.append(part["prices"])
    return merged(np.concatenate(edges), np.hstack(prices)) if edges else None
