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

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from schedgap.instances.arrays import Array, Bools, Ints
from schedgap.instances.elastic import Found, Ledger, Machines, Options, Runs, classes, runs_of
from schedgap.instances.elastic.machines import ROOM
from schedgap.instances.elastic.options import ROUNDING
from schedgap.models.columns import (
    Branch,
    Choice,
    Columns,
    Domain,
    Generated,
    GenerationOptions,
    Packed,
    Packer,
    Packing,
    PackingOptions,
    PackingProblem,
    Priced,
    choose,
    generate,
    solve_in_phases,
)
from schedgap.models.elastic.placements import Placement, TooManyError, schedules
from schedgap.models.solve import Solution, SolveOptions

CELLS = 2_000_000
"""Servers times slots up to which a schedule is sought unasked: about two gigabytes of tables."""

LESS = 0.75
"""Part of the slack at which schedules were too many, from which on they are listed again."""

NODES = 1000
"""Nodes of the MILP over listed columns, where branching is another way."""

HOT, COLD = 0.5, 0.005
"""Temperatures of the search. On ``gen/50jobs`` a hundredth of them leaves 3.5 and 2.9 % open (``zhou.ps.columns``,
``admission.columns``), these 1.3 and 2.6 %: jobs that cannot be interrupted change places at a cost."""

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

    @cached_property
    def worth(self) -> Array:
        """``(n, ends)`` what ending before each slot is worth, and last ending after all slots, where jobs may."""
        return -self.late if self.beyond is None else -np.column_stack((self.late, self.beyond))


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
        rows = (capacity.ravel()[:, None] * length).ravel()
        return Packing(rows, jobs.size, jobs.beyond is not None, worth=jobs.worth)

    def by_slot(self, prices: Array) -> Array:
        """Return prices of rows as ``(h, R, T)``."""
        h, resources = self.machines.capacity.shape
        return np.repeat(prices.reshape(h, resources, self.periods), self.period, axis=2)[:, :, : self.slots]

    def expand(self, jobs: ElasticJobs, prices: Array) -> Array:
        """Return prices of rows as those of the rows of real servers in single slots."""
        found = self.by_slot(prices)
        return (found if self.machines is jobs.machines else found[jobs.machines.kind]).ravel()

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
        self.domain = Domain.of(grid.packing(jobs))
        self._asked = self.domain, jobs.late, np.array([grid.stops(late) for late in jobs.late])

    def asked(self, domain: Domain) -> tuple[Array, Bools]:
        """Return what each end costs in a domain, and between which slots runs are sought."""
        known, late, stops = self._asked
        if domain is not known:
            now = -domain.worth[:, : self.jobs.slots + 1]
            stops = stops.copy()
            for job in np.flatnonzero((now != late).any(axis=1)):
                stops[job] = self.grid.stops(now[job])
            self._asked = domain, now, stops
        return self._asked[1:]

    def __call__(self, prices: Array, domain: Domain) -> Priced:
        """Return the best schedule of every job in a domain; see :class:`schedgap.models.columns.Priced`."""
        jobs = self.jobs
        self.ledger.post(self.grid.by_slot(prices))
        late, stops = self.asked(domain)
        # Ending after all slots takes nothing; so does being rejected.
        other = np.where(domain.must, -np.inf, 0.0) if jobs.beyond is None else domain.worth[:, -1]
        most, listed, ends = other.copy(), [], []
        for job in range(jobs.size):
            asked = {"late": late[job], "stops": stops[job], "limit": -other[job]}
            found = self.ledger.find(job, int(jobs.earliest[job]), **asked)
            if found:
                most[job] = -found.total
                ends.append(found.end)
                listed.append((job, -jobs.late[job, found.end], *self.grid.taken(self.ledger.use(found), found)))
            elif jobs.beyond is not None and other[job] > -np.inf:
                ends.append(jobs.slots + 1)
                listed.append((job, -jobs.beyond[job], np.zeros(0, np.int64), np.zeros(0)))
        return Priced(most, Columns.of(self.grid.rows, listed, ends))


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
    pricing = Pricing(jobs, grid)
    return generate(pricing.domain, pricing, options, solver), grid


class Listing:
    """Closes domains in which few schedules on real servers are left, by the MILP over them.

    Parameters
    ----------
    jobs, pricing
        What is scheduled, and the relaxation's pricing.
    solver
        Gap, seed and threads.
    packer
        Takes what is found.
    """

    def __init__(self, jobs: ElasticJobs, pricing: Pricing, solver: SolveOptions, packer: Packer) -> None:
        self.jobs, self.pricing, self.solver, self.packer = jobs, pricing, solver, packer
        self.enough = np.inf

    def __call__(self, domain: Domain, found: Generated, cutoff: float, last: bool) -> tuple[float, bool]:
        """Return a bound, and whether it settles the domain; see :data:`schedgap.models.columns.Close`."""
        slack = max(found.bound - cutoff, 0.0) * (1 + ROUNDING) + ROUNDING * abs(found.bound)
        if not last and slack > self.enough:
            return np.inf, False
        listed = self.within(domain, found, slack)
        bound, done = (np.inf, False) if listed is None else self.chosen(domain, listed, last)
        self.enough = self.enough if done else LESS * slack
        return bound, done

    def chosen(self, domain: Domain, listed: list[tuple[int, Choice]], last: bool) -> tuple[float, bool]:
        """Choose among schedules for the packer; return the bound, and whether it is the value of what was chosen."""
        real = replace(domain, packing=self.packer.packing)
        if len({job for job, _ in listed} | set(np.flatnonzero(~domain.must).tolist())) < self.jobs.size:
            return -np.inf, True
        if not listed:
            return 0.0, True
        ends = [c.found.end if isinstance(c, Scheduled) else self.jobs.slots + 1 for _, c in listed]
        columns = Columns.of(len(real.packing.capacity), [(j, c.value, c.rows, c.amounts) for j, c in listed], ends)
        left, nodes = self.packer.left(), None if last else NODES
        left = left and max(left if last else left / 2, 0.1)
        limits = replace(self.solver, time_limit_s=left, nodes=nodes, cross_check=False)
        solution = choose(real, columns, limits)
        real_ones = True
        if solution.column_values is not None:
            chosen = [listed[c] for c in np.flatnonzero(solution.column_values > 0.5)]
            scheduled = {job: choice for job, choice in chosen if isinstance(choice, Scheduled)}
            real_ones = len(scheduled) == len(chosen)
            self.packer.offer(scheduled)
        if solution.status == "infeasible":
            return -np.inf, True
        return np.inf if solution.bound is None else solution.bound, solution.status == "optimal" and real_ones

    def within(self, domain: Domain, found: Generated, slack: float) -> list[tuple[int, Choice]] | None:
        """Return the schedules that pay at most `slack` less than the best of their jobs, if these are not too many.

        Ending after all slots takes nothing and counts as one of them, worth at least as much as what it stands for.
        """
        jobs, grid = self.jobs, self.pricing.grid
        prices = grid.expand(jobs, found.prices).reshape(*jobs.machines.capacity.shape, jobs.slots)
        paid = np.concatenate([np.zeros((*prices.shape[:2], 1)), prices.cumsum(axis=2)], axis=2)
        least = np.maximum(self.pricing(found.prices, domain).most - slack, -LARGE)
        o, m = jobs.options, jobs.machines

        def wanted(option: int, placement: Placement, begin: Ints) -> Bools:
            server, workers, ps = np.array(placement).T
            use = workers[:, None] * m.worker[o.worker_type[option]]
            if o.ps_type[option] >= 0:
                use = use + ps[:, None] * m.ps[o.ps_type[option]]
            end, job = begin + o.slots[option], o.job[option]
            cost = np.einsum("hr,hrt->t", use, paid[server][:, :, end] - paid[server][:, :, begin])
            return np.asarray(domain.worth[job, end] - cost >= least[job])

        try:
            kept = schedules(m, o, jobs.earliest, np.minimum(domain.last, jobs.slots), wanted)
        except TooManyError:
            return None
        nothing = np.zeros(0, np.int64), np.zeros(0)
        late = [] if jobs.beyond is None else np.flatnonzero(domain.worth[:, -1] >= least).tolist()
        return [*columns_of(jobs, 0, kept), *((j, Choice(float(jobs.worth[j, -1]), *nothing)) for j in late)]


LARGE = 1e300
"""What is worth less is not allowed."""


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
) -> tuple[Solution, Runs | None, Array, Branch | None]:
    """Return bound and schedule as a solution, the schedule, and the bound's prices ``(k·R, T)`` and tree.

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

    real = Grid(jobs.machines, jobs.slots)
    problem = PackingProblem(
        packing=grid.packing(jobs),
        oracle=pricing,
        real=real.packing(jobs),
        insert=Insertion(jobs, real),
        expand=lambda prices: grid.expand(jobs, prices),
        effort=PackingOptions(hot=HOT, cold=COLD),
        read=lambda decision: dict(columns_of(jobs, first_slot, decision)),
        share=BOUND_SHARE,
        whole=False,
        close=lambda packer: Listing(jobs, pricing, options, packer),
        sense=sense,
    )
    answer = solve_in_phases(problem, options, seeded=seeded)
    decision = answer.decision(lambda packed: runs(packed, first_slot))
    prices = grid.by_slot(answer.generated.prices).reshape(-1, jobs.slots)
    return answer.solution, decision, prices, answer.root
