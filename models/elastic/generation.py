"""Column generation for elastic jobs: what Zhou's ILP over exponentially many schedules and the admission ILP share.

Blocks are jobs, columns are schedules, capacities are the resources of servers in slots.

**Symmetry.** Servers of one class are interchangeable. Averaging a fractional solution over all permutations of equal
servers shows that the LP over per-server rows has the same optimum as the LP over one row per class (capacity times
count), as long as every column fits on real servers; so bounds are computed over classes, with one price per class, and
only schedules over servers. :func:`bound` takes either, for the test that both agree and for measuring.

**Pricing** is exact (:class:`schedgap.instances.elastic.Ledger`).

**Periods.** The sum of a resource's constraints over neighbouring slots is a constraint that every schedule keeps, so
the LP over periods of several slots is a relaxation, and its bound is valid. Its prices are the same in all slots of a
period. On ``gen/zhou-ps`` (911 slots), periods of 32, 16 and 8 slots give bounds that are 0.24 %, 0.04 % and 0 % below
that of 8, after 12, 11 and 21 s; single slots are not done after 100 s.

**Horizon.** Where every job must complete and no end is given, slots end somewhere all the same. A job may then
complete beyond them by a column that takes nothing and costs what the first end after the last slot costs: no more than
any schedule that really ends there. So the bound holds for schedules of any length.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from schedgap.instances.arrays import Array, Bools, Ints
from schedgap.instances.elastic import Found, Ledger, Machines, Options, Runs, classes, runs_of
from schedgap.instances.elastic.machines import ROOM
from schedgap.instances.elastic.options import ROUNDING
from schedgap.models.columns import (
    Choice,
    Columns,
    Generated,
    GenerationOptions,
    Packed,
    Packing,
    PackingOptions,
    PackingProblem,
    Priced,
    Start,
    generate,
    pack,
    solve_in_phases,
)
from schedgap.models.elastic.placements import TooManyError, schedules
from schedgap.models.solve import Solution, SolveOptions

CELLS = 2_000_000
"""Servers times slots up to which a schedule is sought unasked: about two gigabytes of tables."""

MOVES, PROGRESS = 3.0, 1e-3
"""Ruin and recreate ends where so many moves per job gain less than that part: three times the effort gains 0.1 %."""

KEPT_PRICES = 8
"""Prices whose sums are kept: those at which packing inserts again and again, and the last random ones."""

BOUND_SHARE = 0.7
"""Share of the time limit that the bound may take; the rest is for the schedule."""


@dataclass(frozen=True, eq=False)
class ElasticJobs:
    """Jobs to be scheduled, and what each end costs; ``n`` jobs, ``T`` slots numbered from 0.

    Attributes
    ----------
    machines, options
        Servers, and choices of the jobs.
    slots
        ``T``.
    earliest
        ``(n,)`` first slot of each job.
    late
        ``(n, T + 1)`` what ending before each slot costs: the negative of its value. Non-decreasing, infinite where a
        job must not end.
    beyond
        ``(n,)`` what ending after the last slot costs at least, where every job completes; ``None`` where jobs may be
        rejected, at no cost.
    """

    machines: Machines
    options: Options
    slots: int
    earliest: Ints
    late: Array
    beyond: Array | None

    @property
    def size(self) -> int:
        """Number of jobs."""
        return len(self.earliest)


@dataclass(frozen=True, eq=False)
class Grid:
    """The capacities: row ``(h·R + r)·Q + q`` is resource r of entry h in period q, in units times slots.

    Attributes
    ----------
    machines
        Servers, or classes of them.
    slots, period
        Number of slots, and slots per period (the last one may be shorter).
    """

    machines: Machines
    slots: int
    period: int = 1

    @property
    def periods(self) -> int:
        """Number of periods, ``Q``."""
        return -(-self.slots // self.period)

    @property
    def rows(self) -> int:
        """Number of capacities."""
        return self.machines.capacity.size * self.periods

    def packing(self, jobs: ElasticJobs) -> Packing:
        """Return the packing problem of some jobs."""
        capacity = self.machines.capacity * self.machines.count[:, None] * (1 + ROOM)
        length = np.minimum(self.period, self.slots - np.arange(self.periods) * self.period)
        return Packing((capacity.ravel()[:, None] * length).ravel(), jobs.size, jobs.beyond is not None)

    def by_slot(self, prices: Array) -> Array:
        """Return prices of rows as ``(h, R, T)``."""
        h, resources = self.machines.capacity.shape
        return np.repeat(prices.reshape(h, resources, self.periods), self.period, axis=2)[:, :, : self.slots]

    def stops(self, late: Array) -> Bools:
        """Return ``(T + 1,)`` between which the best run of a job need neither begin nor end.

        While neither begin nor end of a run crosses a period, the cost of a placement is linear in the begin; with a
        concave cost of the end, the least total of all placements is concave, and least at an end of the interval. So
        stops are periods, and slots where the cost of the end is not concave.
        """
        found = np.arange(self.slots + 1) % self.period == 0
        found[-1] = True
        with np.errstate(invalid="ignore"):
            steps = np.diff(late)
            found[1:-1] |= ~(np.diff(steps) <= 1e-12 * np.abs(late[1:-1]))
        return np.asarray(found)

    def taken(self, use: Array, found: Found) -> tuple[Ints, Array]:
        """Return the rows that a schedule takes, and how much of each; `use` ``(h, R)`` is what it takes per slot."""
        some = np.flatnonzero(use)
        first, last = found.start // self.period, (found.end - 1) // self.period
        periods = np.arange(first, last + 1)
        length = np.minimum(found.end, (periods + 1) * self.period) - np.maximum(found.start, periods * self.period)
        return (some[:, None] * self.periods + periods).ravel(), (use.ravel()[some][:, None] * length).ravel()


class Pricing:
    """The oracle: the best schedule of every job at prices of resources.

    Parameters
    ----------
    jobs
        What is scheduled.
    grid
        Capacities of classes, or of servers one by one.
    """

    def __init__(self, jobs: ElasticJobs, grid: Grid) -> None:
        self.jobs, self.grid = jobs, grid
        self.ledger = Ledger(grid.machines, jobs.options, jobs.slots, constant=True)
        self.limit = np.zeros(jobs.size) if jobs.beyond is None else jobs.beyond
        self.stops = [grid.stops(late) for late in jobs.late]

    def __call__(self, prices: Array) -> Priced:
        """Return the best schedule of every job; see :class:`schedgap.models.columns.Priced`."""
        jobs = self.jobs
        self.ledger.post(self.grid.by_slot(prices))
        most = -self.limit.copy()
        listed = []
        for job in range(jobs.size):
            late, stops, limit = jobs.late[job], self.stops[job], self.limit[job]
            found = self.ledger.find(job, int(jobs.earliest[job]), late=late, stops=stops, limit=limit)
            if found:
                most[job] = -found.total
                listed.append((job, found.cost - found.total, *self.grid.taken(self.ledger.use(found), found)))
            elif jobs.beyond is not None:
                listed.append((job, -limit, np.zeros(0, np.int64), np.zeros(0)))
        return Priced(most, Columns.of(self.grid.rows, listed))


@dataclass(frozen=True, eq=False)
class Scheduled(Choice):
    """A column with the run that it stands for."""

    found: Found


class Insertion:
    """Finds the best schedule of a job on real servers, in what others have left of them."""

    def __init__(self, jobs: ElasticJobs, grid: Grid) -> None:
        self.jobs, self.grid = jobs, grid
        self.ledger = Ledger(jobs.machines, jobs.options, jobs.slots)
        self.posted: list[tuple[Array, tuple[Array, ...]]] = []

    def __call__(self, job: int, room: Array, prices: Array) -> Choice | None:
        """Return the best schedule of one job at `prices` within `room`, both by row, if there is one."""
        ledger = self.ledger
        ledger.set_free(room.reshape(ledger.free.shape))
        self.post(prices)
        limit = 0.0 if self.jobs.beyond is None else np.inf
        found = ledger.find(job, int(self.jobs.earliest[job]), late=self.jobs.late[job], limit=limit)
        if found is None:
            return None
        return Scheduled(found.cost - found.total, *self.grid.taken(ledger.use(found), found), found)

    def post(self, prices: Array) -> None:
        """Set the prices; sums of prices that were there before are kept."""
        for known, sums in self.posted:
            if known is prices:
                return self.ledger.repost(sums)
        self.ledger.repost(None)
        self.ledger.post(prices.reshape(self.ledger.free.shape))
        self.posted = [*self.posted[1 - KEPT_PRICES :], (prices, self.ledger.sums)]
        return None


ROWS = 1000
"""Rows of the master up to which every slot is a period of its own."""


def coarse(jobs: ElasticJobs, machines: Machines) -> Grid:
    """Return the capacities of `machines` over periods so long that those of the classes are about :data:`ROWS`."""
    rows = classes(jobs.machines).capacity.size * jobs.slots
    return Grid(machines, jobs.slots, max(1, -(-rows // ROWS)))


def bound(
    jobs: ElasticJobs, options: GenerationOptions, solver: SolveOptions, per_server: bool = False
) -> tuple[Generated, Grid]:
    """Return what column generation proves, and the capacities whose prices it has.

    Parameters
    ----------
    jobs
        What is scheduled.
    options, solver
        Of the loop, and of the master's solver.
    per_server
        Whether every server has rows of its own instead of every class; the periods are the same.
    """
    grid = coarse(jobs, jobs.machines if per_server else classes(jobs.machines))
    return generate(grid.packing(jobs), Pricing(jobs, grid), options, solver), grid


def schedule(
    jobs: ElasticJobs,
    generated: Generated,
    pricing: Pricing,
    effort: PackingOptions,
    solver: SolveOptions,
    starts: Sequence[Start] = (),
) -> Packed:
    """Return a schedule on real servers near the bound, by ruin and recreate at the bound's prices."""
    prices = pricing.grid.by_slot(generated.prices)
    if pricing.grid.machines is not jobs.machines:
        prices = prices[jobs.machines.kind]
    real = Grid(jobs.machines, jobs.slots)
    known = replace(generated, prices=prices.ravel(), columns=Columns.of(real.rows, []), x=np.zeros(0))
    matter = partial(within, jobs, known, pricing(generated.prices).most)
    return pack(real.packing(jobs), Insertion(jobs, real), known, effort, solver, starts, matter)


def within(jobs: ElasticJobs, known: Generated, most: Array, slack: float) -> list[tuple[int, Choice]] | None:
    """List the schedules that can be part of a better solution, of `most` ``(n,)`` payoffs at the bound's prices.

    See :data:`schedgap.models.columns.Within`. They have no number where a job may still end after the last slot.
    """
    least = most - slack * (1 + ROUNDING) - ROUNDING * abs(known.bound)
    if jobs.beyond is not None and (-jobs.beyond >= least).any():
        return None
    try:
        every = schedules(jobs.machines, jobs.options, jobs.earliest, jobs.slots)
    except TooManyError:
        return None
    listed = columns_of(jobs, 0, every)
    return [(job, c) for job, c in listed if c.value > -np.inf and c.value - c.cost(known.prices) >= least[job]]


def columns_of(jobs: ElasticJobs, first_slot: int, decision: Runs) -> Iterator[tuple[int, Choice]]:
    """Yield the columns of runs whose first slot has the number `first_slot`; not of those that end after the last."""
    real = Grid(jobs.machines, jobs.slots)
    order = np.argsort(decision.run, kind="stable")
    entries = np.split(order, np.searchsorted(decision.run[order], np.arange(1, max(len(decision.job), 1))))
    for i, job in enumerate(decision.job.tolist()):
        workers, ps = np.zeros(jobs.machines.size, np.int64), np.zeros(jobs.machines.size, np.int64)
        server = decision.server[entries[i]]
        workers[server], ps[server] = decision.workers[entries[i]], decision.ps[entries[i]]
        types = int(decision.worker_type[i]), int(decision.ps_type[i])
        run = Found(0.0, 0.0, -1, int(decision.start[i]) - first_slot, int(decision.slots[i]), *types, workers, ps)
        if run.end <= jobs.slots:
            taken = real.taken(jobs.machines.use(*types, workers, ps), run)
            yield job, Scheduled(-float(jobs.late[job, run.end]), *taken, run)


def runs(packed: Packed, first_slot: int) -> Runs:
    """Return the chosen schedules as a decision whose first slot has the number `first_slot`."""
    chosen = [(job, c.found) for job, c in sorted(packed.chosen.items()) if isinstance(c, Scheduled)]
    return runs_of(chosen, first_slot)


def solve(
    jobs: ElasticJobs, options: SolveOptions, sense: int, first_slot: int, seeded: bool = True
) -> tuple[Solution, Runs | None, Array]:
    """Return bound and schedule as a solution of a problem, the schedule, and the bound's prices ``(k·R, T)``.

    Parameters
    ----------
    jobs
        What is scheduled.
    options
        Limits, gap, seed, known decisions.
    sense
        1 where values are maximised, −1 where costs are minimised.
    first_slot
        Number of the first slot in decisions.
    seeded
        Whether it starts from known decisions.
    """
    grid = coarse(jobs, classes(jobs.machines))
    pricing = Pricing(jobs, grid)

    def packer(generated: Generated, effort: PackingOptions, starts: Sequence[Start]) -> Packed:
        return schedule(jobs, generated, pricing, effort, options, starts)

    problem = PackingProblem(
        packing=grid.packing(jobs),
        oracle=pricing,
        packer=packer,
        effort=PackingOptions(moves=MOVES, progress=PROGRESS),
        read=lambda decision: dict(columns_of(jobs, first_slot, decision)),
        share=BOUND_SHARE,
        sense=sense,
    )
    answer = solve_in_phases(problem, options, seeded=seeded)
    decision = answer.decision(lambda packed: runs(packed, first_slot))
    return answer.solution, decision, grid.by_slot(answer.generated.prices).reshape(-1, jobs.slots)
