r"""Bounds from a fluid relaxation over intervals of time, in which the value of a job depends on when it ends.

Jobs are as in :mod:`schedgap.models.engine.fluid.single_machine`: the cluster has 1 unit of each resource, and a job
has several *ways* to do its work, from :math:`r_j` on. The whole work of a job takes :math:`A_{jw}` of the resources by
way w and at least the time :math:`p_{jw}`, by the fastest way :math:`p_j`; a fraction of it takes at least that
fraction of both. Ways share the time, or run concurrently if jobs run as copies. Time is cut at :math:`t_0 < t_1 <
\ldots`. A *column* of a job is the interval k in which it ends, and the fractions :math:`f_i` of its work that it does
in each interval up to k. It ends no earlier than :math:`e_{jk}`, the earliest possible end in k, and no earlier than
:math:`\max(t_k, r_j) + f_k p_j`. If its value is non-increasing in its end and, within the interval, lies below a line
through its value at :math:`e_{jk}`, the column is worth at most

.. math:: v_{jk} - s_{jk} \cdot \max(0, f_k - (e_{jk} - \max(t_k, r_j))/p_j)

All columns together take at most :math:`t_{i+1} - t_i` of every resource in interval i. So every schedule is a choice
of columns, whatever it does within intervals, and for any prices :math:`\pi_{ri} \ge 0` of the resources

.. math:: \sum_{r,i} (t_{i+1} - t_i) \pi_{ri} + \sum_j \max_k \Big( v_{jk} - \min_f \sum_i c_{ji}(f_i) +
    s_{jk} \max(0, f_k - \ldots) \Big)

is a bound, where :math:`c_{ji}(f)` is the least cost of doing a fraction f in interval i: a convex piecewise linear
curve whose steps lead from the cheapest way to faster ones, so the least sum takes the cheapest steps of all intervals
first. Column generation finds the prices. If every job has to end, the last interval has no end, and work in it takes
no capacity.
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
from schedgap.models.engine.columns import (
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
from schedgap.models.engine.fluid.single_machine import FluidJobs, MachineBound, best_bound, prices_over
from schedgap.models.engine.solve import Solution, SolveOptions
from schedgap.models.registry import Outcome


class IntervalValues(NamedTuple):
    """What it is worth to each job to end in each interval; all fields are ``(n, K)``.

    `value` is the value of the earliest end in the interval, ``-inf`` if no end is possible there. Until this end, the
    job can do the fraction `free` of its work in the interval; `slope` is the loss per further fraction.
    """

    value: Array
    slope: Array
    free: Array


def completions(run: FluidJobs, edges: Array, grain: float) -> IntervalValues:
    """Return the values of ends for weighted completion times, negated; a job takes at least the time `grain`."""
    begin = np.maximum(edges[:-1], run.start[:, None])
    first = np.maximum(begin + grain, run.earliest[:, None])
    value = np.where(first <= edges[1:], -run.weight[:, None] * first, -np.inf)
    slope = np.broadcast_to((run.weight * run.alone)[:, None], value.shape)
    return IntervalValues(value, np.ascontiguousarray(slope), (first - begin) / run.alone[:, None])


@dataclass(frozen=True, eq=False)
class Fluid:
    """The fluid relaxation of jobs over intervals of time.

    Attributes
    ----------
    run
        The jobs.
    edges
        ``(K + 1,)`` boundaries of the intervals; the last one may be infinite.
    goal
        Values of the ends.
    must
        Whether every job has to end; otherwise it may be left out, at value 0.
    """

    run: FluidJobs
    edges: Array
    goal: IntervalValues
    must: bool

    @property
    def packing(self) -> Packing:
        """The packing problem; row ``r·K + i`` is resource r in interval i."""
        length = np.diff(self.edges)
        rows = np.tile(np.where(np.isfinite(length), length, 0.0), len(self.run.group))
        return Packing(rows, len(self.run.start), self.must)


class Posed(Oracle, Protocol):
    """A pricing oracle over a domain."""

    domain: Domain


class IntervalOracle(Posed, Protocol):
    """A pricing oracle over the intervals between `edges`; `must` says whether every job has to end."""

    edges: Array
    must: bool

    def cuts(self, found: Generated, whole: bool) -> Array:
        """Return further edges at which to cut intervals, given the LP optimum; whole numbers only if `whole`."""


class IntervalPricing(IntervalOracle):
    """Exact pricing: at prices of resources in intervals, when each job best does its work and ends."""

    def __init__(self, fluid: Fluid) -> None:
        self.fluid, self.edges, self.must = fluid, fluid.edges, fluid.must
        self.domain = Domain.of(fluid.packing)
        self.ways, edges = fluid.run.ways, fluid.edges
        self.room = np.maximum(edges[1:] - np.maximum(edges[:-1], fluid.run.start[:, None]), 0.0)
        self.endless = ~np.isfinite(edges[1:])
        self.first = np.append(self.ways.first, len(self.ways.time))

    def __call__(self, prices: Array, domain: Domain) -> Priced:
        """Return the best column of every job; see :class:`schedgap.models.engine.columns.Priced`."""
        from schedgap.models.engine.fluid import _kernels as kernels

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
        """Return the columns of the jobs that have one; `taken` lists job, interval, way, and the time in that way."""
        job, interval, way, time = taken
        resources, intervals = prices.shape[1], len(prices)
        jobs = np.flatnonzero(last >= 0)
        amount = np.zeros((len(job), resources))
        for i in range(intervals):
            mine = interval == i
            amount[mine] = self.fluid.run.takes(prices[i], way[mine])
        amount *= (time / self.ways.time[way])[:, None]
        rows = np.arange(resources) * intervals + interval[:, None]
        owner = np.repeat(np.searchsorted(jobs, job), resources)
        use = sp.coo_array((amount.ravel(), (rows.ravel(), owner)), shape=(resources * intervals, len(jobs))).tocsc()
        use.data[use.data < SLIVER] = 0.0
        use.eliminate_zeros()
        goal, ends = self.fluid.goal, last[jobs]
        over = np.maximum(part[jobs, ends] - goal.free[jobs, ends], 0.0)
        value = goal.value[jobs, ends] - goal.slope[jobs, ends] * over
        return Columns(jobs, value, sp.csc_array(use), ends)

    def cuts(self, found: Generated, whole: bool) -> Array:
        """Return the midpoints of intervals within which the values of columns in use vary by much."""
        fluid, job, last = self.fluid, found.columns.block, found.columns.end
        most = np.minimum(self.room / fluid.run.alone[:, None], 1.0)
        over = np.maximum(most - fluid.goal.free, 0.0)
        unsure = np.bincount(last, found.x * (fluid.goal.slope * over)[job, last], len(fluid.edges) - 1)
        middle = (fluid.edges[:-1] + fluid.edges[1:]) / 2
        middle = np.floor(middle) if whole else middle
        kept = (unsure > UNSURE * abs(found.bound)) & np.isfinite(middle) & (middle > fluid.edges[:-1])
        return np.asarray(middle[kept])


class Teams(IntervalOracle):
    """Pricing by team: a block of the master is a team of `size` jobs of similar volume instead of a single job.

    Each job is still priced on its own. A column of a team is the sum of one column of each of its jobs, so Lagrangian
    bounds are unchanged. The master has fewer rows but also fewer distinct columns, so it does not guide the cutting of
    intervals.
    """

    def __init__(self, pricing: IntervalPricing, volume: Array, size: int) -> None:
        self.pricing, self.edges, self.must = pricing, pricing.edges, pricing.must
        self.team: Ints = np.empty(len(volume), np.int64)
        self.team[np.argsort(volume, kind="stable")] = np.arange(len(volume)) // size
        self.domain = Domain.of(replace(pricing.domain.packing, blocks=int(self.team.max()) + 1))

    def __call__(self, prices: Array, domain: Domain) -> Priced:
        """Return, for each team, the sum of the best columns of its jobs; every job has a column."""
        priced, teams = self.pricing(prices, self.pricing.domain), domain.packing.blocks
        columns = priced.columns
        of = sp.csc_array((np.ones(len(columns)), (np.arange(len(columns)), self.team[columns.block])))
        value = np.bincount(self.team[columns.block], columns.value).astype(float)
        together = Columns(np.arange(teams), value, sp.csc_array(columns.use @ of), np.zeros(teams, np.int64))
        return Priced(np.bincount(self.team, priced.most).astype(float), together)

    def cuts(self, found: Generated, whole: bool) -> Array:
        """Return no new edges."""
        return np.zeros(0)


NOBODY = Solution(status="optimal", termination="bound: no job can complete", bound=0.0)
"""The certified answer if no job counts."""

NOTHING = -1e200
"""A payoff below that of every column."""

SLIVER = 2e-9
"""Smallest amount in a column, since HiGHS refuses coefficients up to 1e-9. Leaving smaller amounts out only changes
prices, and the bound holds for any prices."""

FEW, MANY = 10, 300
"""Number of equal intervals at first, and most intervals after cutting."""

COARSE = 1.6
"""Factor by which intervals grow from the first start on: ends matter most while little time has passed."""

SHORTEST = 1e-4
"""Smallest length of the first interval, as a fraction of the horizon."""

UNSURE = 2e-4
"""An interval is cut if the values of all columns ending in it vary by more than this fraction of the bound."""

CLOSE = 3e-4
"""Relative gap of bound and master at which column generation ends."""

SMOOTHING, KEEP = 0.8, 3.0
"""Options of column generation; the defaults are 0.6 and 1.

With few jobs and many intervals, the defaults drop columns that are then generated again.
"""

PRICINGS = 600
"""Rounds of pricing after which no more intervals are cut.

With 20 to 200 jobs the total number of rounds stays below this.
"""

WORK = 5e6
"""Cutting of intervals stops after this many simplex pivots times rows of the master, if time is not limited.

They take about two seconds.
"""

ROUNDS = 20
"""Rounds of pricing that generate the columns of a statement in Pyomo."""

USED = 0.8
"""Fraction of the time limit available for pricing."""

BETTER = 1e-3
"""Smallest relative improvement of the bound for which cutting continues."""


def first_edges(run: FluidJobs, horizon: float, whole: bool) -> Array:
    """Return the edges of equal intervals up to a horizon, cut into shorter ones at the beginning.

    If `whole`, edges are whole numbers.
    """
    begin = float(run.start.min())
    length = horizon - begin
    equal = np.linspace(0.0, length, FEW + 1)
    least = max(1.0 if whole else 0.0, length * SHORTEST)
    growing = least * COARSE ** np.arange(math.ceil(-math.log(SHORTEST, COARSE)))
    edges = begin + np.unique(np.concatenate([equal, growing[growing < length]]))
    return np.unique(np.append(np.rint(edges[:-1]), horizon)) if whole else edges


def completion_edges(run: FluidJobs, grain: float) -> Array:
    """Return the edges of the first intervals for a problem of completion times.

    The edges reach to a time by which the cluster can do all work; the interval after it has no end and takes no
    capacity.
    """
    weights = np.full(len(run.group), 1 / len(run.group))
    horizon = float(run.start.max() + run.alone.max() + run.volume(weights).sum())
    whole = grain > 0
    return np.append(first_edges(run, math.ceil(horizon) if whole else horizon, whole), np.inf)


def completing(run: FluidJobs, grain: float, edges: Array) -> IntervalPricing:
    """Return the pricing oracle for the weighted sum of completion times, negated, over intervals with given edges."""
    return IntervalPricing(Fluid(run, edges, completions(run, edges, grain), must=True))


def least_completion(
    run: FluidJobs, grain: float, options: SolveOptions, best: MachineBound | None = None, team: int = 1
) -> Tightest:
    """Bound the negative of the least weighted sum of completion times by column generation.

    Parameters
    ----------
    run
        The jobs.
    grain
        Length of a slot, if jobs start and end at multiples of it; otherwise 0.
    options
        Time limit, seed and threads.
    best
        The relaxation to one machine, if already computed; its prices are the starting point.
    team
        Number of jobs per block of the master; with more than one, no interval is cut.
    """
    edges, best = completion_edges(run, grain), best or best_bound(run)

    def pose(edges: Array) -> IntervalOracle:
        pricing = completing(run, grain, edges)
        return pricing if team == 1 else Teams(pricing, run.volume(best.weights), team)

    return tightest(pose, edges, grain > 0, options, prices_over(best, edges))


def stated(pricing: Posed) -> pyo.ConcreteModel:
    """Return the restricted master in Pyomo, over the columns of :data:`ROUNDS` rounds of pricing."""
    generated = generate(pricing.domain, pricing, GenerationOptions(CLOSE, iterations=ROUNDS))
    return statement(pricing.domain.packing, generated.columns)


class Tightest(NamedTuple):
    """The best bound found, and the pricing oracle over the intervals that it was found with."""

    generated: Generated
    pricing: IntervalOracle

    def outcome(self, began: float, sense: int = 1, bounded: Callable[[float], float] = float) -> Outcome:
        """Return the outcome of a solve that started at `began`.

        `bounded` turns the bound on the sum into one on the objective.
        """
        solution = self.generated.solution(sense)
        bound = None if solution.bound is None else bounded(solution.bound)
        return Outcome(replace(solution, bound=bound, times=solution.times.since(began)), None, evidence=self)


def tightest(
    pose: Callable[[Array], IntervalOracle],
    edges: Array,
    whole: bool,
    options: SolveOptions,
    start: Array | None = None,
) -> Tightest:
    """Return the best bound found while intervals are cut where the values of the columns in use vary by much.

    Parameters
    ----------
    pose
        Builds the pricing oracle over given edges.
    edges
        The first edges.
    whole
        Whether edges must be whole numbers.
    options
        Time limit, seed and threads.
    start
        Prices to start from.
    """
    budget, pricings, work = clock.Budget(options.time_limit_s), 0, 0
    best: Tightest | None = None
    while True:
        pricing = pose(edges)
        left = None if options.time_limit_s is None else max(USED * budget.limit_s - budget.spent_s, 0.1)
        how = GenerationOptions(CLOSE, SMOOTHING, left, start=start, keep=KEEP)
        generated = generate(pricing.domain, pricing, how, options)
        pricings, work = pricings + generated.pricings, work + generated.pivots * generated.size.rows
        before, bound = np.inf if best is None else best.generated.bound, generated.bound
        if best is None or bound < before:
            best = Tightest(generated, pricing)
        cut = pricing.cuts(generated, whole)
        enough = work > WORK if options.time_limit_s is None else budget.spent_s > budget.limit_s / 2
        enough |= pricings > PRICINGS or len(edges) + len(cut) > MANY
        if enough or not cut.size or before - bound < BETTER * abs(bound):
            return best
        finer = np.sort(np.concatenate([edges, cut]))
        inside = np.searchsorted(edges, finer[:-1], side="right") - 1
        start, edges = generated.prices.reshape(-1, len(edges) - 1)[:, inside].ravel(), finer
