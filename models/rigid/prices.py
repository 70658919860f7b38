r"""Prices of machines over time, by ascent of the Lagrangian bound over starts (:mod:`schedgap.models.rigid.starts`).

The bound of a pool is concave in its prices :math:`\pi \ge 0`. A minimum over starts is not smooth, so that plain
ascent zigzags. Hence each job counts by a soft minimum :math:`-T_j \ln \sum_s \exp(-c_{js}/T_j)` of the costs
:math:`c_{js}` of its starts s. It is smooth: its gradient is the use of the machines if the job starts at s with a
probability in proportion to :math:`\exp(-c_{js}/T_j)`, less their capacity. Spreads are proportional to weights,
:math:`T_j = T w_j`, with times T that shrink from several intervals to a fraction of one. L-BFGS (Byrd et al., A
limited memory algorithm for bound constrained optimization, 1995) climbs; then the true bound counts, which holds for
any prices.

Prices are constant in intervals. An interval is cut in the middle if its halves are used differently where prices
change, so that intervals are short where the pool is full. A job looks no further than to the start at which its
waiting alone costs as much as its best start so far. So a round takes time in proportion to the number of jobs and of
intervals in which they might wait, and 100,000 jobs are few.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from schedgap.instances import clock
from schedgap.instances.arrays import Array, Ints
from schedgap.instances.rigid import RigidView, kernels
from schedgap.models.rigid.bounds import Share, WeightedDelay, shares

FIRST, PER = 512, 3
"""Approximate number of the first intervals of a pool: at least this, and one for this many jobs."""

MOST = 30_000
"""Most intervals of a pool; a tenth of them at first."""

SPREADS, FINER, LAST = (4.0, 1.0, 0.3), (1.0, 0.3), (0.1, 0.03, 0.01)
"""Times T on the first intervals, after cutting, and at the end, as multiples of the mean length of an interval."""

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


class PoolPrices:
    """The best prices found so far for the machines of a pool, and the `bound` that they give.

    Machines are the area, and the dual feasible functions that are larger than it for some gang. Edges are ticks, all
    other times are in hours.
    """

    def __init__(self, view: RigidView, jobs: Ints, capacity: int, goal: WeightedDelay) -> None:
        release, duration, gpus = view.release[jobs], view.duration[jobs], view.gpus[jobs]
        hour, weight = view.ticks_of_hour, goal.weight[jobs] * view.ticks_of_hour
        sizes, first, kind = np.unique(gpus, return_index=True, return_inverse=True)
        area, *others = shares(gpus, capacity)
        distinct = {f.value.tobytes(): f for f in reversed(others) if (f.value > area.value).any()}
        self.machines = [area, *reversed(distinct.values())]
        self.uses = np.stack([machine.value[first] for machine in self.machines], axis=1)
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
        self.prices = self.current = np.zeros((len(self.machines), len(self.edges) - 1))
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


def dearest(view: RigidView, goal: WeightedDelay, limit_s: float | None) -> Prices:
    """Return the best bound and prices found within a time limit; each pool has time in proportion to its jobs."""
    budget, left = clock.Budget(limit_s), view.size
    pools = [PoolPrices(view, jobs, capacity, goal) for jobs, capacity in view.by_pool()]
    for pool in sorted(pools, key=lambda pool: len(pool.jobs[0])):
        pool.climb(clock.Budget(budget.left_s * len(pool.jobs[0]) / left))
        left -= len(pool.jobs[0])
    edges = np.unique(np.concatenate([pool.edges for pool in pools]))
    machines, prices = [], []
    for (jobs, _), pool in zip(view.by_pool(), pools, strict=True):
        inside = np.searchsorted(pool.edges, edges[:-1], side="right") - 1
        there = (inside >= 0) & (inside < len(pool.edges) - 1)
        for machine, price in zip(pool.machines, pool.prices, strict=True):
            machines.append(machine._replace(code=(int(view.pool[jobs[0]]), machine.code)))
            prices.append(np.where(there, price[inside.clip(0, len(price) - 1)], 0.0))
    late, rounds = any(pool.late for pool in pools), sum(pool.rounds for pool in pools)
    return Prices(sum(pool.bound for pool in pools), machines, edges, np.stack(prices), rounds, late)
