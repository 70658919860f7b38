r"""A whole run, round by round: columns of jobs bound its mean completion time, and a search inserts jobs on servers.

The fluid over intervals (:mod:`schedgap.models.engine.fluid.intervals`) charges a job for the time in which it works.
But a job holds its GPUs, CPUs and memory for whole rounds, also after it has ended within its last one. A *column* of a
job is the *last* round in which it runs, the configuration that it holds there, and the fractions of its work that it
does in each earlier round. At prices :math:`\pi_{r,t} \ge 0` of the resources in rounds, it costs at least

.. math:: \ell + \frac{f_\ell}{\rho_q} + \sum_r u_{q,r} \pi_{r,\ell} + \sum_{t < \ell} c_t(f_t)

with the last round :math:`\ell`, which it begins after :math:`\ell` rounds, the work :math:`f_\ell \le \rho_q` that it
does there in configuration q, and the use :math:`u_{q,r}` of a whole round. In an earlier round, a job holds one
configuration or nothing, so :math:`c_t`, the least convex curve through all :math:`(\rho_q, \sum_r u_{q,r} \pi_{r,t})`
and 0, is at most what it pays there. All columns together hold at most all of a resource in each round. So the least
costs of all jobs, less the prices of all capacity, are a bound at any prices. After the last round with prices, work
takes no capacity.

The search knows servers. It takes jobs that run at about the same time out of the schedule, and inserts them again one
after another, each in the ways that are worth most at the prices of the bound among those that still fit
(:mod:`schedgap.models.synergy._insertion`). Worse schedules are accepted by simulated annealing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyomo.environ as pyo
import scipy.sparse as sp

from schedgap.instances import clock
from schedgap.instances.arrays import Array, Ints
from schedgap.instances.views.synergy import RUN, SynergySchedule, SynergyView
from schedgap.models.engine.columns import Columns, Domain, Generated, GenerationOptions, Packing, Priced, generate
from schedgap.models.engine.fluid.intervals import KEEP, SLIVER, SMOOTHING, least_completion, stated
from schedgap.models.engine.solve import Solution, SolveOptions, Times, TracePoint, peak_mb
from schedgap.models.registry import SEEDED, Outcome, model
from schedgap.models.synergy.jct import ConfiguredJobs, run_of

CLOSE = 1e-4
"""Relative gap of bound and master at which prices have converged."""

BOUNDING, USED = 0.3, 0.9
"""Fractions of the time limit: for the bound, and until the search ends."""

MOVES = 2000
"""Moves of the search per job, unless the time limit ends it before."""

SLICE = 5000
"""Moves between two looks at the clock."""

MOST_OUT = 6
"""Most jobs besides the first one that a move takes out."""

HEAT = 0.1
"""Temperature at the beginning, in rounds; it falls to 0."""

SLOWEST = 0.05
"""Least rate of a way that the search uses, as a fraction of the job's fair rate."""

WEIGHTS = (1.0, 0.5, 0.0)
"""Multiples of prices at which first schedules are made."""

WORK = 30_000_000
"""Largest number of jobs times rounds times configurations with which the model runs by default.

Pricing takes about 0.13 s per million.
"""


@dataclass(frozen=True, eq=False)
class RoundPrices:
    """A bound from prices of resources in rounds, and its proof: `prices` ``(d, T)`` of all of each resource."""

    generated: Generated
    prices: Array


class RoundPricing:
    """Exact pricing of columns over rounds for a run; row ``r·T + t`` of the master is resource r in round t."""

    rough = None

    def __init__(self, view: SynergyView) -> None:
        from schedgap.models.synergy import _rounds

        self.run, self.slot_s = run_of(view), view.slot_s
        ways = self.run.ways
        self.held = self.run.use * self.run.rate[:, None]
        start = view.arrival[view.possible]
        first = np.append(ways.first, len(ways.time))
        self.jobs = _rounds.RoundJobs(start, ways.size, ways.kind, first, ways.time / view.slot_s)
        self.rounds = rounds_of_run(self.run, start, view.slot_s)
        self.domain = Domain.of(Packing(np.ones(self.held.shape[1] * self.rounds), len(start), True))

    def paid(self, prices: Array) -> Array:
        """Return ``(T, q)`` what each configuration pays for a round at prices ``(d·T,)``."""
        return np.ascontiguousarray((self.held @ prices.reshape(-1, self.rounds)).T)

    def __call__(self, prices: Array, domain: Domain) -> Priced:
        """Return the best column of every job; see :class:`schedgap.models.engine.columns.Priced`."""
        from schedgap.models.engine.fluid import _kernels as fluid
        from schedgap.models.synergy import _rounds

        paid, jobs, resources = self.paid(prices), self.jobs, self.held.shape[1]
        curve = fluid.curves(paid * jobs.time, jobs.time, jobs.first, False)
        ends, held = _rounds.cheapest(paid, curve, jobs)
        amount = self.held[held.way] * held.part[:, None]
        rows = np.arange(resources) * self.rounds + held.round[:, None]
        size = len(self.domain.packing.capacity), len(jobs.start)
        entries = amount.ravel(), (rows.ravel(), np.repeat(held.job, resources))
        use = sp.coo_array(entries, shape=size).tocsc()
        use.data[use.data < SLIVER] = 0.0
        use.eliminate_zeros()
        value = -(ends.last + ends.time)
        return Priced(-ends.cost, Columns(np.arange(size[1]), value, sp.csc_array(use), ends.last))

    def start(self, options: SolveOptions) -> Array:
        """Return ``(d·T,)`` prices to start from, those of the fluid over intervals."""
        tightest = least_completion(self.run, 0.0, options)
        edges = tightest.pricing.edges
        middle = (np.arange(self.rounds) + 0.5) * self.slot_s
        inside = np.clip(np.searchsorted(edges, middle, side="right") - 1, 0, len(edges) - 2)
        return tightest.generated.prices.reshape(-1, len(edges) - 1)[:, inside].ravel()

    def priced(self, options: SolveOptions) -> RoundPrices:
        """Return the best bound that column generation found, and its prices."""
        began, limit = clock.now(), options.time_limit_s
        start = self.start(replace(options, time_limit_s=None if limit is None else limit / 3, seeds=()))
        left = options.since(began)
        how = GenerationOptions(CLOSE, SMOOTHING, left.time_limit_s, start=start, keep=KEEP)
        generated = generate(self.domain, self, how, left)
        return RoundPrices(generated, np.maximum(generated.prices, 0.0).reshape(-1, self.rounds))


def rounds_of_run(run: ConfiguredJobs, start: Ints, slot_s: float) -> int:
    """Return the number of rounds by which the cluster can do all work, and every job its own."""
    weights = np.full(len(run.group), 1 / len(run.group))
    return int(start.max()) + math.ceil(float(run.alone.max() + run.volume(weights).sum()) / slot_s) + 1


class RunSearch:
    """The search for a schedule of a run on its servers, at the prices ``(d, T)`` of a bound."""

    def __init__(self, view: SynergyView, pricing: RoundPricing, prices: Array, seed: int) -> None:
        from schedgap.models.synergy import _insertion

        self.kernels, self.view, self.rng = _insertion, view, np.random.default_rng(seed)
        self.pricing, self.prices, run = pricing, prices, pricing.run
        held, jobs = run.held, view.possible
        kind, work = run.kind, view.workload.work[jobs].astype(float)
        fair = view.fair[jobs] * view.slot_s
        rate = run.rate * view.slot_s
        first = np.append(run.first, len(rate))
        best = np.maximum.reduceat(rate, run.first)[kind]
        fair_of = np.zeros(len(run.first))
        fair_of[kind] = fair
        self.kept = np.flatnonzero(rate >= SLOWEST * np.repeat(fair_of, np.diff(first)))
        part = np.column_stack((held.cpus, held.memory_gb)) / held.gpus[:, None]
        gang = view.workload.gpus[jobs].astype(np.int64)
        hosts = np.flatnonzero(view.servers.gpus > 0)
        self.hosts = hosts[np.argsort(view.servers.gpu_type[hosts], kind="stable")]
        self.first = np.searchsorted(view.servers.gpu_type[self.hosts], np.arange(view.types + 1))
        self.base = np.concatenate([[0], np.cumsum(np.ceil(work / fair / SLOWEST).astype(np.int64) + 1)])
        self.width = int(min(gang.max(), np.diff(self.first).max()))
        bulk = pricing.held[:, run.group > 0].sum(axis=1)
        self.of = (
            *(pricing.jobs.start, work, kind, gang, best, np.searchsorted(self.kept, first)),
            *(held.gpu_type[self.kept], part[self.kept], rate[self.kept], bulk[self.kept]),
        )
        self.moves = 0
        self._begin()

    @cached_property
    def amounts(self) -> Array:
        """GPUs, CPUs and gigabytes of the servers, by GPU type."""
        return np.asarray(self.view.servers.amounts[self.hosts])

    def plans(self) -> Any:
        """Return room for the plans of all jobs."""
        n, size = len(self.base) - 1, int(self.base[-1])
        at, to = np.zeros((2, size), np.int64), np.zeros((2, size, self.width), np.int64)
        return self.kernels.RunPlans(self.base, np.zeros(n, np.int64), at[0], at[1], to[0], to[1], np.full(n, np.inf))

    def _begin(self) -> None:
        """Make first schedules, of jobs in order of work and of earliest ends at several weights, and keep the best.

        If not all jobs end within the rounds, there are twice as many.
        """
        start, work, _, _, best, *_ = self.of
        tried, rounds = list[tuple[float, Any, Any, Any]](), self.pricing.rounds
        while not tried or not math.isfinite(min(tried, key=lambda one: one[0])[0]):
            cost = np.zeros((rounds, len(self.kept)))
            cost[: self.pricing.rounds] = self.pricing.paid(self.prices.ravel())[:, self.kept]
            jobs = self.kernels.InsertedJobs(*self.of, cost)
            for weight in WEIGHTS:
                for key in (work / best, start + work / best):
                    free = np.repeat(self.amounts[None], rounds, axis=0)
                    rooms = self.kernels.ServerRooms(self.first, free, self.kernels.FULL * self.amounts[:, 1:])
                    plans = self.plans()
                    spare = self.plans()
                    for j in np.argsort(key, kind="stable").tolist():
                        self.kernels.insert(jobs, rooms, plans, spare, j, (weight, 0.0))
                    tried.append((float(plans.end.sum()), jobs, rooms, plans))
            rounds *= 2
        _, self.jobs, self.rooms, plans = min(tried, key=lambda one: one[0])
        self.best = self.plans()
        for j in range(len(plans.end)):
            self.kernels.copied(plans, j, self.best)
        self.state = plans, self.best, self.plans(), self.plans()

    @property
    def value(self) -> float:
        """The mean completion time of the best schedule, in seconds."""
        arrival_s = self.view.workload.arrival_s[self.view.possible]
        return float((self.best.end * self.view.slot_s - arrival_s).mean())

    def search(self, moves: int, heat: tuple[float, float]) -> None:
        """Make so many moves, while the temperature goes from the first to the second one, in rounds."""
        self.kernels.improve(self.jobs, self.rooms, self.state, moves, MOST_OUT, heat, self.rng)
        self.moves += moves

    @property
    def schedule(self) -> SynergySchedule:
        """The best schedule; the jobs that run in a round are those that were picked for it."""
        plans, jobs = self.best, self.view.possible
        used = np.arange(self.base[-1]) - np.repeat(self.base[:-1], np.diff(self.base))
        entry, place = np.nonzero((used < np.repeat(plans.used, np.diff(self.base)))[:, None] & (plans.gpus > 0))
        job = np.repeat(jobs, np.diff(self.base))[entry]
        gpus = plans.gpus[entry, place].astype(float)
        cpus, memory_gb = (self.jobs.part[plans.way[entry]] * gpus[:, None]).T
        at = np.unique(np.column_stack((plans.round[entry], job)), axis=0)
        return SynergySchedule(
            plans.round[entry], job, self.hosts[plans.host[entry, place]], gpus, cpus, memory_gb, at[:, 0], at[:, 1]
        )


def by_columns(view: SynergyView, options: SolveOptions, *, seeded: bool = True) -> Outcome:
    """Bound the mean completion time by columns over rounds, and search for a schedule at their prices.

    The search ends after :data:`MOVES` moves per job, by the time limit, or within the gap; `nodes` limits its slices.
    If `seeded`, a known decision that is better is the answer.
    """
    budget, limit = clock.Budget(options.time_limit_s), options.time_limit_s
    pricing = RoundPricing(view)
    proof = pricing.priced(replace(options, time_limit_s=None if limit is None else BOUNDING * limit))
    arrival_s = view.workload.arrival_s[view.possible]
    bound = -proof.generated.bound * view.slot_s / len(arrival_s) - float(arrival_s.mean())
    search = RunSearch(view, pricing, proof.prices, options.seed)
    trace, most = [TracePoint(budget.wall_s, search.value, bound)], MOVES * len(arrival_s)
    most = min(most, SLICE * options.nodes) if options.nodes is not None else most
    begun, over = budget.spent_s, 0.0
    while over < 1.0 and search.value - bound > options.rel_gap * abs(search.value):
        moves = min(SLICE, most - search.moves)
        search.search(moves, (HEAT * (1 - over), HEAT * (1 - over - moves / most)))
        spent = (budget.spent_s - begun) / max(USED * budget.limit_s - begun, 1e-9)
        over = max(search.moves / most, spent)
        if search.value < trace[-1].incumbent:  # type: ignore[operator]
            trace.append(TracePoint(budget.wall_s, search.value, bound))
    value, decision = search.value, search.schedule
    known = min(options.seeds if seeded else (), key=lambda seed: seed.objective, default=None)
    if known is not None and known.objective < value:
        value, decision = known.objective, known.decision
    closed = value - bound <= options.rel_gap * abs(value)
    solution = Solution(
        status="optimal" if closed else "gap left" if search.moves == most else "time limit with incumbent",
        termination=f"bound: {proof.generated.ended} after {proof.generated.pricings} pricings; {search.moves} moves",
        objective=value,
        bound=bound,
        iterations=proof.generated.pivots,
        size=proof.generated.size,
        trace=tuple(trace),
        times=Times(solve_s=budget.wall_s),
        peak_mb=peak_mb(),
    )
    return Outcome(solution, decision, evidence=proof)


def build_columns(view: SynergyView) -> pyo.ConcreteModel:
    r"""Build the relaxation over rounds, restricted to the columns that column generation made.

    - :math:`t`: rounds; :math:`r`: GPUs, CPUs and memory by type, all totals counted as 1.
    - :math:`s \in S_j'`: columns of j: a last round with the configuration that j holds there, and fractions of rounds
      that it spends in configurations before.
    - :math:`c_s`: completion time of the column, in rounds.
    - :math:`f_{s,t,r}`: use of resource r by the column in round t; the last round is held whole.
    - ``x`` :math:`x_{j,s} \ge 0`: share of column s.

    .. math:: \max -\sum_j \sum_{s \in S_j'} c_s \cdot x_{j,s}
    .. math:: \sum_j \sum_{s \in S_j'} f_{s,t,r} \cdot x_{j,s} \le 1 \quad \forall t, r \label{within}
    .. math:: \sum_{s \in S_j'} x_{j,s} = 1 \quad \forall j \label{once}

    The bound is its negative, less the arrivals, per job.

    Duals: prices of every resource in every round; at any prices, the least costs of the jobs less the price of all
    capacity are a bound.
    """
    return stated(RoundPricing(view))


def too_large(view: SynergyView) -> str | None:
    """Return the reason why a run is solved by columns over rounds only on request, or ``None``."""
    run = run_of(view)
    rounds = rounds_of_run(run, view.arrival[view.possible], view.slot_s)
    work = rounds * len(run.start) * len(run.rate) // len(run.first)
    return f"{len(run.start):,} jobs in {rounds:,} rounds are too many for columns" if work > WORK else None


model(
    "synergy.columns",
    problem=RUN.id,
    kind="matheuristic",
    source="Column generation over rounds, and large-neighbourhood search (Shaw 1998) on Synergy's servers",
    procedure=by_columns,
    too_large=too_large,
    parameters=(SEEDED,),
    example="paper/synergy-example",
)(build_columns)
