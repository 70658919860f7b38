"""Simulated annealing of moldable schedules on real servers, with compiled moves."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from schedgap.instances.arrays import Array, Ints
from schedgap.instances.moldable import FoundRun, Ledger
from schedgap.models.engine.columns import Packer, PackingOptions, Start
from schedgap.models.engine.moldable.jobs import CapacityGrid, MoldableJobs, Scheduled

NOISE = (0.5, 0.8, 1.0, 1.2)
"""Factors on the prices at which removed jobs are inserted again."""

BEFORE = (0.5, 1.0, 0.0)
"""Orders of list heuristics: a job's key is its mean end in the relaxation minus this multiple of its shortest run.

With the factor 1, the key is roughly when the job begins."""

SOME = 20
"""Number of jobs inserted between two checks of the time limit."""

FEWEST, OFTEN = 5, 50
"""How many jobs a move may remove: one for every OFTEN times that each job can be moved within the time limit, but at
least FEWEST. Large moves gain more if jobs can be moved often, and less otherwise."""

CHANGE = 15, 8.0, 0.3
"""What changes in a list at once: most jobs next to each other, noise on their positions, share of other factors."""

CHANGES = 20
"""Most changes of the best list, per job."""

QUICK = 0.1
"""Work of inserting a job in compiled moves. Pricing it and solving the master count 2, and take 15 times as long."""


class Annealer(Packer):
    """Ruin and recreate on real servers.

    Parameters
    ----------
    jobs
        Jobs and servers.
    priced
        Capacities of the relaxation, which have prices.
    bound, prices, options
        Bound of column generation, its prices by row of `priced`, and options of the search.
    """

    def __init__(
        self,
        jobs: MoldableJobs,
        priced: CapacityGrid,
        bound: float,
        prices: Array,
        options: PackingOptions | None = None,
    ) -> None:
        from schedgap.models.engine.moldable import _moves as kernels

        self.jobs, self.priced, self.grid = jobs, priced, CapacityGrid(jobs.machines, jobs.slots)
        super().__init__(self.grid.packing(jobs), bound, options)
        self.kernels, self.ledger = kernels, Ledger(jobs.machines, jobs.options, jobs.slots)
        self.guided(prices)
        ends, changed = np.zeros(jobs.slots + 1, np.int64), np.zeros((2, jobs.machines.size), np.int64)
        self.cluster = kernels.SearchServers(*(*self.ledger.parts, ends > 0, ends, changed))
        o, free = jobs.options, jobs.beyond is None
        none = np.zeros(jobs.size) if free else np.full(jobs.size, self.reward)
        # Scaling prices by a factor is the same as dividing the costs of ends by it.
        asked = np.stack([jobs.late / factor for factor in NOISE])
        most = np.full((len(NOISE), jobs.size), 0.0 if free else np.inf)
        kinds = o.slots, o.worker_type, o.ps_type, o.together, o.workers
        costs = jobs.late, none, asked, most
        self.problem = kernels.AnnealedJobs(o.first, *kinds, jobs.earliest, *costs, self.ranks(), np.empty((0, 0)))
        self.runs, self.kept = self.nothing(), self.nothing()
        self.inserted, self.moving_s = 0, 0.0
        self.list: tuple[float, Ints, Ints] | None = None

    def nothing(self) -> Any:
        """Return the state in which no job has a run."""
        n, h = self.jobs.size, self.jobs.machines.size
        m, p, begin, end, host, ps = (np.full(n, first) for first in (-1, -1, 0, 0, 0, 0))
        workers = np.zeros((n, h), np.int64)
        return self.kernels.RunArrays(m, p, begin, end, host, ps, self.problem.none.copy(), workers)

    def guided(self, prices: Array) -> None:
        """Insert runs at other prices from now on, by row of the relaxation."""
        self.ledger.post(self.priced.expand(self.jobs, prices).reshape(self.ledger.price.shape))

    def ranks(self) -> Array:
        """Return three orders of insertion ``(3, n)``: by gain per size, by gain, and by size, largest first.

        The gain of a job is what its earliest end saves; its size is the least product of slots and workers.
        """
        jobs, o = self.jobs, self.jobs.options
        runnable = np.diff(o.first) > 0
        none = np.zeros(jobs.size) if jobs.beyond is None else jobs.late[:, -1]
        first = np.minimum(jobs.earliest + o.shortest, jobs.slots)
        gain = none - jobs.late[np.arange(jobs.size), first]
        gain = np.where(runnable & np.isfinite(gain), gain, 0.0)
        size = np.ones(jobs.size)
        if runnable.any():
            size[runnable] = np.minimum.reduceat(o.slots * o.workers, o.first[:-1][runnable])
        return np.stack([-gain / size, -gain, -size])

    @property
    def best(self) -> Start:
        """The columns of the best solution, by job."""
        return {job: self.choice(job) for job in np.flatnonzero(self.kept.worker_type >= 0).tolist()}

    def choice(self, job: int) -> Scheduled:
        """Return the column of a job's run in the best solution."""
        kept = self.kept
        begin, end = int(kept.begin[job]), int(kept.end[job])
        types = int(kept.worker_type[job]), int(kept.ps_type[job])
        ps = np.zeros(self.jobs.machines.size, np.int64)
        if kept.ps[job]:
            ps[kept.host[job]] = kept.ps[job]
        run = FoundRun(0.0, 0.0, -1, begin, end - begin, *types, kept.workers[job].copy(), ps)
        return Scheduled(-float(self.jobs.late[job, end]), *self.grid.taken(self.ledger.use(run), run), run)

    def load(self, known: Start) -> None:
        """Replace the current solution by the columns in `known`, without those that do not fit."""
        runs = self.nothing()
        for job, choice in known.items():
            if isinstance(choice, Scheduled):
                run = choice.found
                runs.worker_type[job], runs.ps_type[job] = run.worker_type, run.ps_type
                runs.begin[job], runs.end[job], runs.workers[job] = run.start, run.end, run.workers
                runs.host[job], runs.ps[job] = run.ps.argmax(), run.ps.max(initial=0)
                runs.cost[job] = -choice.value
        self._begin(runs, np.array(list(known), np.int64))

    def back(self) -> None:
        """Return to the best solution."""
        self._begin(self.kept, np.arange(self.jobs.size))

    def _begin(self, runs: Any, order: Ints) -> None:
        self.kernels.load(self.runs, runs, order, self.problem, self.cluster)
        self._count(self.runs)

    def _count(self, runs: Any) -> None:
        scheduled = runs.worker_type >= 0
        self.value, self.covered = -float(runs.cost[scheduled].sum()), int(scheduled.sum())

    def complete(self) -> None:
        """Insert the jobs that have no run, by decreasing gain per size."""
        self._list(self.problem.rank[0], len(NOISE) // 2)

    def _list(self, rank: Array, way: int) -> None:
        """Insert the jobs that have no run in order of `rank`, at prices times factor number `way`."""
        whole = bool((self.runs.worker_type < 0).all())
        order, ways = np.argsort(rank, kind="stable"), np.full(self.jobs.size, way)
        self._insert(order, ways)
        if whole and self.covered == self.jobs.size and (self.list is None or self.value > self.list[0]):
            self.list = self.value, order, ways

    def _insert(self, order: Ints, ways: Ints) -> None:
        """Insert the jobs that have no run in an order, at prices times their factors number `ways` ``(n,)``."""
        for batch in np.split(order, np.arange(SOME, len(order), SOME)):
            if not self.late():
                self.kernels.complete(self.runs, batch, ways, self.problem, self.cluster)
        self._count(self.runs)

    def lists(self, ends: Array) -> Iterator[Callable[[], None]]:
        """Yield list heuristics for every order of the jobs and every factor on prices.

        The orders are by likely begin (the given ends and :data:`BEFORE`), and by each rank.
        """
        begins = (ends - factor * self.jobs.options.shortest for factor in BEFORE)
        ways = product((*begins, *self.problem.rank), range(len(NOISE)))
        return (partial(self._list, rank, way) for rank, way in ways)

    def keep(self) -> None:
        """Store the current solution as the best."""
        for current, best in zip(self.runs, self.kept, strict=True):
            best[:] = current

    def arrange(self, seconds: float | None) -> None:
        """Improve the best list, in its order and in its factors on prices, :data:`CHANGES` times per job at most."""
        if self.list is None:
            return
        _, order, ways = self.list
        self.load({})
        self._insert(order, ways)
        left = max(self.budget.left_s - (math.inf if seconds is None else seconds), 0.0)
        for _ in range(CHANGES * self.jobs.size):
            if self.budget.left_s <= left:
                break
            self.kernels.arrange(self.rng, CHANGE, order, ways, self.runs, self.kept, self.problem, self.cluster)
            self._count(self.kept)
            self.note(self.value, self.covered)

    def run(self, moves: int, temperature: float) -> None:
        """Make ruin-and-recreate moves, at a temperature proportional to the number of jobs that they may remove."""
        began = self.budget.spent_s
        ruined = self.ruined()
        heat, state = temperature * ruined / self.options.ruined, (self.runs, self.kept, self.problem, self.cluster)
        inserted = self.kernels.anneal(self.rng, moves, heat, ruined, *state)
        self.moving_s += self.budget.spent_s - began
        self.inserted += inserted
        self.work += QUICK * inserted
        self.moves += moves
        self._count(self.kept)
        self.note(self.value, self.covered)

    def ruined(self) -> int:
        """Return how many jobs a move may remove: fewer if the time limit allows few moves per job."""
        most, limit = self.options.ruined, self.options.time_limit_s
        if limit is None or not self.inserted:
            return most
        often = limit * self.inserted / max(self.moving_s, 1e-9) / self.jobs.size
        return int(min(max(often / OFTEN, FEWEST), most))
