r"""Bounds on what jobs are worth by when they end, over intervals of time: a fluid with prices that change over time.

Jobs are as in :mod:`schedgap.models.single_machine`: there is 1 of each resource of a cluster, and a job has several
*ways* to do its work, from :math:`r_j` on. All work takes :math:`A_{jw}` of the resources by way w and at least
:math:`p_{jw}` of time, at the fastest :math:`p_j`; a part of it takes at least that part, and ways share the time (or
go on side by side, where jobs run as copies). Time is cut at
:math:`t_0 < t_1 < \ldots`. A *column* of a job is the interval k in which it ends, and the parts :math:`f_i` of its
work that it does in each interval up to k. It ends no earlier than :math:`e_{jk}`, the first end there can be in k,
and no earlier than :math:`\max(t_k, r_j) + f_k p_j`. With its value not increasing, and below a line from its value
at :math:`e_{jk}` as long as the interval lasts, the column is worth at most

.. math:: v_{jk} - s_{jk} \cdot \max(0, f_k - (e_{jk} - \max(t_k, r_j))/p_j)

All columns together take at most :math:`t_{i+1} - t_i` of every resource in interval i. So every schedule is a choice
of columns, whatever it does within intervals, and at any prices :math:`\pi_{ri} \ge 0` of the resources

.. math:: \sum_{r,i} (t_{i+1} - t_i) \pi_{ri} + \sum_j \max_k \Big( v_{jk} - \min_f \sum_i c_{ji}(f_i) +
    s_{jk} \max(0, f_k - \ldots) \Big)

is a bound, where :math:`c_{ji}(f)` is what a part f costs at least in interval i: a convex curve that goes in steps
from the cheapest way to faster ones, so that the least sum takes the cheapest steps of all intervals first. Column
generation finds the prices. Where capacity runs out before all jobs have to be done, the last interval has no end and
takes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyomo.environ as pyo
import scipy.sparse as sp

from schedgap.instances import clock
from schedgap.instances.arrays import Array, Ints
from schedgap.models.columns import (
    Columns,
    Domain,
    Generated,
    GenerationOptions,
    Oracle,
    Packing,
    Priced,
    generate,
    statement,
)
from schedgap.models.registry import Outcome
from schedgap.models.single_machine import Best, Jobs, best_bound, prices_over
from schedgap.models.solve import Solution, SolveOptions


class Goal(NamedTuple):
    """What ends are worth ``(n, K)`` each, by interval.

    The `value` of the first end there (``-inf`` where there is none), what a part of the work as long as the job takes
    off it (`slope`), and the part that can be done in the interval until the first end (`free`).
    """

    value: Array
    slope: Array
    free: Array


def completions(run: Jobs, edges: Array, grain: float) -> Goal:
    """Return the negative of weighted completion times as values; a job takes at least `grain`."""
    begin = np.maximum(edges[:-1], run.start[:, None])
    first = np.maximum(begin + grain, run.earliest[:, None])
    value = np.where(first <= edges[1:], -run.weight[:, None] * first, -np.inf)
    slope = np.broadcast_to((run.weight * run.alone)[:, None], value.shape)
    return Goal(value, np.ascontiguousarray(slope), (first - begin) / run.alone[:, None])


@dataclass(frozen=True, eq=False)
class Fluid:
    """Jobs over intervals.

    Attributes
    ----------
    run
        The jobs.
    edges
        ``(K + 1,)`` ends of intervals; the last one may be infinite.
    goal
        What ends are worth.
    must
        Whether every job has to end; otherwise it can do without, at value 0.
    """

    run: Jobs
    edges: Array
    goal: Goal
    must: bool

    @property
    def packing(self) -> Packing:
        """Capacities, row ``r·K + i`` is resource r in interval i."""
        length = np.diff(self.edges)
        rows = np.tile(np.where(np.isfinite(length), length, 0.0), len(self.run.group))
        return Packing(rows, len(self.run.start), self.must)


class IntervalOracle(Oracle, Protocol):
    """What prices jobs over intervals up to `edges`, which `must` all end or not."""

    edges: Array
    must: bool
    domain: Domain

    def cuts(self, found: Generated, whole: bool) -> Array:
        """Return where intervals are to be cut, at whole numbers or not, given what was found over them."""


class Pricing(IntervalOracle):
    """The oracle: where each job should end, and when it should do its work, at prices of resources in intervals."""

    def __init__(self, fluid: Fluid) -> None:
        self.fluid, self.edges, self.must = fluid, fluid.edges, fluid.must
        self.domain = Domain.of(fluid.packing)
        self.ways, edges = fluid.run.ways, fluid.edges
        self.room = np.maximum(edges[1:] - np.maximum(edges[:-1], fluid.run.start[:, None]), 0.0)
        self.endless = ~np.isfinite(edges[1:])
        self.first = np.append(self.ways.first, len(self.ways.time))

    def __call__(self, prices: Array, domain: Domain) -> Priced:
        """Return the best column of every job; see :class:`schedgap.models.columns.Priced`."""
        from schedgap.models import _kernels as kernels

        n, intervals = self.room.shape
        run, ways = self.fluid.run, self.ways
        by_interval = np.ascontiguousarray(prices.reshape(-1, intervals).T)
        cost = np.stack([run.cost(weights) for weights in by_interval])
        cost[self.endless] = np.where(np.isfinite(cost[self.endless]), 0.0, np.inf)
        curve = kernels.curves(cost, ways.time, self.first, ways.together)
        jobs, floor = (ways.kind, ways.size, self.room), np.where(domain.must, NOTHING, 0.0)
        payoff, last, part = np.zeros(n), np.zeros(n, np.int64), np.zeros((n, intervals, kernels.STEPS))
        kernels.price(curve, jobs, tuple(self.fluid.goal), floor, (payoff, last, part))
        payoff[last < 0] = np.where(domain.must[last < 0], -np.inf, 0.0)
        out = *(np.zeros(np.count_nonzero(part), np.int64) for _ in range(3)), np.zeros(np.count_nonzero(part))
        found = kernels.times(curve, jobs, ways.time, ways.together, last, part, out)
        return Priced(payoff, self.columns(last, part.sum(axis=2), by_interval, tuple(x[:found] for x in out)))

    def columns(self, last: Ints, part: Array, prices: Array, taken: tuple[Any, ...]) -> Columns:
        """Return the columns of jobs that have one, by how long they use which way in which interval."""
        job, interval, way, time = taken
        resources, intervals = prices.shape[1], len(prices)
        some = np.flatnonzero(last >= 0)
        amount = np.zeros((len(job), resources))
        for i in range(intervals):
            mine = interval == i
            amount[mine] = self.fluid.run.takes(prices[i], way[mine])
        amount *= (time / self.ways.time[way])[:, None]
        rows = np.arange(resources) * intervals + interval[:, None]
        owner = np.repeat(np.searchsorted(some, job), resources)
        use = sp.coo_array((amount.ravel(), (rows.ravel(), owner)), shape=(resources * intervals, len(some))).tocsc()
        use.data[use.data < SLIVER] = 0.0
        use.eliminate_zeros()
        goal, ends = self.fluid.goal, last[some]
        over = np.maximum(part[some, ends] - goal.free[some, ends], 0.0)
        value = goal.value[some, ends] - goal.slope[some, ends] * over
        return Columns(some, value, sp.csc_array(use), ends)

    def cuts(self, found: Generated, whole: bool) -> Array:
        """Return the middles of the intervals in which the values of the ends of columns in use change most."""
        fluid, job, last = self.fluid, found.columns.block, found.columns.end
        most = np.minimum(self.room / fluid.run.alone[:, None], 1.0)
        over = np.maximum(most - fluid.goal.free, 0.0)
        unsure = np.bincount(last, found.x * (fluid.goal.slope * over)[job, last], len(fluid.edges) - 1)
        middle = (fluid.edges[:-1] + fluid.edges[1:]) / 2
        middle = np.floor(middle) if whole else middle
        kept = (unsure > UNSURE * abs(found.bound)) & np.isfinite(middle) & (middle > fluid.edges[:-1])
        return np.asarray(middle[kept])


class Teams(IntervalOracle):
    """Jobs that enter the master in teams of `size`, alike in volume, each priced alone.

    A team's column is one of each of its jobs, so that bounds are the same, and what was said before holds of sums over
    teams. The master has fewer rows, but knows fewer columns: no interval is cut by it.
    """

    def __init__(self, pricing: Pricing, volume: Array, size: int) -> None:
        self.pricing, self.edges, self.must = pricing, pricing.edges, pricing.must
        self.team: Ints = np.empty(len(volume), np.int64)
        self.team[np.argsort(volume, kind="stable")] = np.arange(len(volume)) // size
        self.domain = Domain.of(replace(pricing.domain.packing, blocks=int(self.team.max()) + 1))

    def __call__(self, prices: Array, domain: Domain) -> Priced:
        """Return the sum of the best columns of each team's jobs; all of them have one."""
        priced, teams = self.pricing(prices, self.pricing.domain), domain.packing.blocks
        columns = priced.columns
        of = sp.csc_array((np.ones(len(columns)), (np.arange(len(columns)), self.team[columns.block])))
        value = np.bincount(self.team[columns.block], columns.value).astype(float)
        together = Columns(np.arange(teams), value, sp.csc_array(columns.use @ of), np.zeros(teams, np.int64))
        return Priced(np.bincount(self.team, priced.most).astype(float), together)

    def cuts(self, found: Generated, whole: bool) -> Array:
        """Return nothing."""
        return np.zeros(0)


NOBODY = Solution(status="optimal", termination="bound: no job can complete", bound=0.0)
"""What is certified where no job counts."""

NOTHING = -1e200
"""What every column pays more than."""

SLIVER = 1e-9
"""Amounts that HiGHS refuses as coefficients are left out of columns, which only raises the bound's prices."""

FEW, MANY = 10, 300
"""Intervals at first, and beyond which none is cut any more."""

COARSE = 1.6
"""Factor by which intervals at first grow from the first start on: ends matter most where little has passed."""

SHORTEST = 1e-4
"""Part of all time that the first interval takes at least."""

UNSURE = 2e-4
"""Part of the bound that values may change by within an interval, over all columns that end there, or it is cut."""

CLOSE = 3e-4
"""Part of a bound by which it may differ from its master."""

SMOOTHING, KEEP = 0.8, 3.0
"""Options of column generation, 0.6 and 1 by default.

With few jobs and many intervals columns that were dropped came back: for the three jobs of ``paper/hadar-fig1`` as
copies, over 31 to 55 intervals, 707 rounds of pricing and 3.2 s of CPU bring what took 1,547 rounds and 6.6 s.
"""

PRICINGS = 600
"""Rounds of pricing after which no interval is cut any more: for these three jobs that would bring 0.3 % in 5 s of CPU.

With 20 to 200 jobs all rounds together are fewer.
"""

ROUNDS = 20
"""Rounds of pricing for a statement in Pyomo."""

USED = 0.8
"""Part of the time limit after which no pricing begins."""

BETTER = 1e-3
"""Part of a bound by which cutting has to improve it to go on."""


def first_edges(run: Jobs, horizon: float, whole: bool) -> Array:
    """Return edges up to a horizon, in whole units of time or not: equal intervals, and short ones at the beginning."""
    begin = float(run.start.min())
    length = horizon - begin
    equal = np.linspace(0.0, length, FEW + 1)
    least = max(1.0 if whole else 0.0, length * SHORTEST)
    growing = least * COARSE ** np.arange(math.ceil(-math.log(SHORTEST, COARSE)))
    edges = begin + np.unique(np.concatenate([equal, growing[growing < length]]))
    return np.unique(np.append(np.rint(edges[:-1]), horizon)) if whole else edges


def completion_edges(run: Jobs, grain: float) -> Array:
    """Return the first edges of a problem of completion times.

    After the time in which the cluster would do all work anyhow, an interval without end takes nothing.
    """
    weights = np.full(len(run.group), 1 / len(run.group))
    horizon = float(run.start.max() + run.alone.max() + run.volume(weights).sum())
    whole = grain > 0
    return np.append(first_edges(run, math.ceil(horizon) if whole else horizon, whole), np.inf)


def completing(run: Jobs, grain: float, edges: Array) -> Pricing:
    """Return the oracle of the largest negative weighted sum of completion times, over edges."""
    return Pricing(Fluid(run, edges, completions(run, edges, grain), must=True))


def least_completion(
    run: Jobs, grain: float, options: SolveOptions, best: Best | None = None, team: int = 1
) -> Tightest:
    """Return what column generation proves about the negative of the least weighted sum of completion times.

    Parameters
    ----------
    run
        The jobs.
    grain
        Least time of a job, whose multiples begins and ends of jobs are; 0 for none.
    options
        Time limit, seed and threads.
    best
        The relaxation to one machine, if it is known: the search starts from its prices.
    team
        How many jobs enter the master together; with more than one, no interval is cut.
    """
    edges, best = completion_edges(run, grain), best or best_bound(run)

    def pose(edges: Array) -> IntervalOracle:
        pricing = completing(run, grain, edges)
        return pricing if team == 1 else Teams(pricing, run.volume(best.weights), team)

    return tightest(pose, edges, grain > 0, options, prices_over(best, edges))


def stated(pricing: IntervalOracle) -> pyo.ConcreteModel:
    """Return the master over the columns of some rounds of pricing, in Pyomo."""
    found = generate(pricing.domain, pricing, GenerationOptions(CLOSE, iterations=ROUNDS))
    return statement(pricing.domain.packing, found.columns)


class Tightest(NamedTuple):
    """The best bound that was found, and the oracle over the intervals that it is of."""

    generated: Generated
    pricing: IntervalOracle

    def outcome(self, began: float, sense: int = 1, bounded: Callable[[float], float] = float) -> Outcome:
        """Return what is proved by computing that `began` then, whose bound is `bounded` of the largest sum's."""
        solution = self.generated.solution(sense)
        least = None if solution.bound is None else bounded(solution.bound)
        times = replace(solution.times, solve_s=clock.now() - began)
        return Outcome(replace(solution, bound=least, times=times), None, evidence=self)


def tightest(
    pose: Callable[[Array], IntervalOracle],
    edges: Array,
    whole: bool,
    options: SolveOptions,
    start: Array | None = None,
    many: int = MANY,
) -> Tightest:
    """Return the best bound found while intervals are cut where columns in use are unsure.

    Parameters
    ----------
    pose
        Returns the oracle over edges.
    edges
        The first ones.
    whole
        Whether edges are whole numbers.
    options
        Time limit, seed and threads.
    start, many
        Prices to start from; intervals beyond which none is cut any more.
    """
    began, pricings = clock.now(), 0
    best: Tightest | None = None
    while True:
        pricing = pose(edges)
        left = None if options.time_limit_s is None else max(USED * options.time_limit_s - (clock.now() - began), 0.1)
        how = GenerationOptions(CLOSE, SMOOTHING, left, start=start, keep=KEEP)
        found = generate(pricing.domain, pricing, how, options)
        pricings += found.pricings
        known = np.inf if best is None else best.generated.bound
        if best is None or found.bound < known:
            best = Tightest(found, pricing)
        cut = pricing.cuts(found, whole)
        late = options.time_limit_s is not None and clock.now() - began > options.time_limit_s / 2
        late |= pricings > PRICINGS
        if late or not cut.size or len(edges) + len(cut) > many or known - found.bound < BETTER * abs(found.bound):
            return best
        finer = np.sort(np.concatenate([edges, cut]))
        inside = np.searchsorted(edges, finer[:-1], side="right") - 1
        start, edges = found.prices.reshape(-1, len(edges) - 1)[:, inside].ravel(), finer
