"""Schedulers that Zhou et al. compare A_online with (§7), slot by slot on what is free now; and Jain et al.'s greedy.

Workers and PSs are of the types of each job's ideal case: the configuration that completes it first on the empty
cluster. FIFO and DRF never interrupt a job. Tiresias and AntMan plan every slot anew and may interrupt jobs and, where
these cannot go on where they were, move them; their problem is that of interrupted jobs. "Job execution duration is
lengthened due to frequent preemption" (§7.1), but the paper does not print by how much: with `restart_slots`, all runs
of a job but its first begin with so many slots without work. Bounds on interrupted jobs hold for any such cost, and so
do those on jobs that never are for an endless one.

The paper leaves open which jobs of AntMan are guaranteed: here the heavier half of the waiting time's weight, that is
the jobs above the median weight (or at it, where all are alike); those that have waited for :data:`PATIENCE` slots run
like opportunistic ones.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from schedgap.heuristics.registry import Context
from schedgap.instances.arrays import Array, Ints, members
from schedgap.instances.elastic import Found, Ledger, Options, runs_of
from schedgap.instances.elastic.options import ROUNDING, largest
from schedgap.instances.views.zhou import Architecture, Schedule

MOST_WORKERS = 30
"""FIFO's jobs have at most so many workers (§7)."""

PATIENCE = 8
"""Slots that a guaranteed job of AntMan waits before it runs as an opportunistic one."""


def ideal(a: Architecture) -> list[Found]:
    """Return each job's fastest run on the empty cluster; of equally fast ones the one that takes least."""
    longest = int(a.options.shortest.max())
    ledger = Ledger(a.classes, a.options, longest, constant=True)
    found = [ledger.find(job, 0) for job in range(a.size)]
    return [f for f in found if f]


@dataclass(frozen=True, eq=False)
class Configurations:
    """Every job with 1, 2, … workers of its ideal types, on one server or on several.

    The `options` are of one slot each; ``2·(N − 1)`` and the next one are those of a job with N workers. `rate`
    ``(o,)`` is in mini-batches per slot of all workers together, `most` ``(n,)`` the largest number of workers that
    fits on the empty cluster with the parameter servers that they need, `wanted` ``(n,)`` that of the ideal case.
    """

    options: Options
    rate: Array
    most: Ints
    wanted: Ints

    @staticmethod
    def of(a: Architecture) -> Configurations:
        """Return the configurations of all jobs."""
        best = ideal(a)
        wanted = np.array([int(f.workers.sum()) for f in best])
        fitting = largest(a.classes, a.rates.ring, int(a.most.max())).max(axis=2)
        most = np.minimum(a.most, [fitting[f.worker_type, f.ps_type] for f in best])
        job, option = members(2 * most)
        workers, together = option // 2 + 1, option % 2 == 0
        worker_type, ps_type = np.array([(f.worker_type, f.ps_type) for f in best])[job].T
        each = zip(*(x.tolist() for x in (job, worker_type, ps_type, workers, together)), strict=True)
        rate = workers / np.array([a.rates.slots(*one) for one in each])
        first, slots = np.cumsum([0, *(2 * most)]), np.ones(len(job), np.int64)
        return Configurations(Options(first, slots, worker_type, ps_type, together, workers), rate, most, wanted)

    def among(self, job: int, workers: int) -> slice:
        """Return the options of a job with so many workers."""
        at = int(self.options.first[job]) + 2 * (workers - 1)
        return slice(at, at + 2)


@dataclass(frozen=True, eq=False)
class _Placed:
    """A running job: where, since which slot, how fast, and from which slot on it works."""

    found: Found
    since: int
    rate: float
    works: int


class Cluster:
    """What runs now, what is left of every job, and the runs so far."""

    def __init__(self, a: Architecture, restart_slots: int = 0) -> None:
        self.a, self.restart_slots = a, restart_slots
        self.begun: set[int] = set()
        self.known = Configurations.of(a)
        self.ledger = Ledger(a.machines, self.known.options, 1)
        self.left = a.work.copy()
        self.running: dict[int, _Placed] = {}
        self.slot = 1
        self.log: list[tuple[int, Found]] = []

    def waiting(self) -> list[int]:
        """Return the jobs that have arrived, are not done and do not run, by arrival."""
        jobs = [j for j in np.flatnonzero((self.a.arrival <= self.slot) & (self.left > 0)) if j not in self.running]
        return sorted(map(int, jobs), key=lambda j: (self.a.arrival[j], j))

    def start(self, job: int, workers: int) -> bool:
        """Start a job with so many workers, if they fit now; everything on one server where that is possible."""
        found = self.ledger.find(job, 0, among=self.known.among(job, workers))
        if found is None:
            return False
        self.ledger.book(found)
        works = self.slot + self.restart_slots * (job in self.begun)
        self.running[job] = _Placed(found, self.slot, float(self.known.rate[found.option]), works)
        return True

    def start_largest(self, job: int, most: int) -> bool:
        """Start a job with as many workers as fit, at most so many; what fits is sought by bisection, after one."""
        low, high = 0, most
        while low < high:
            middle = (low + high + 1) // 2 if low else 1
            if self.ledger.find(job, 0, among=self.known.among(job, middle)):
                low = middle
            else:
                high = middle - 1
        return low > 0 and self.start(job, low)

    def note(self, job: int, placed: _Placed) -> None:
        """Note a run that ends before this slot."""
        if self.slot > placed.since:
            since = placed.since
            self.log.append((job, replace(placed.found, start=since - 1, slots=self.slot - since)))

    def replan(self, order: Iterable[tuple[int, bool]]) -> None:
        """Plan this slot anew: jobs in order stay where they are, if nobody before them needs it, or are started.

        They start as in the ideal case, or, as `order` says of each, with as many workers of that as fit. A job
        that occurs again is asked for again only where it was not started.
        """
        before, self.running = self.running, {}
        for placed in before.values():
            self.ledger.book(placed.found, -1)
        for job, fewer in order:
            if job in self.running:
                continue
            stays, wanted = before.get(job), int(self.known.wanted[job])
            if stays:
                touched = np.flatnonzero(stays.found.workers + stays.found.ps)
                free = self.ledger.free[touched, :, 0] + ROUNDING * self.a.machines.capacity[touched]
                stays = stays if (self.ledger.use(stays.found)[touched] <= free).all() else None
            if stays:
                self.ledger.book(stays.found)
                self.running[job] = stays
            elif fewer:
                self.start_largest(job, wanted)
            else:
                self.start(job, wanted)
        for job, placed in before.items():
            if self.running.get(job) is not placed:
                self.note(job, placed)

    def advance(self) -> None:
        """Run everything for this slot; go to the next slot in which something can happen."""
        self.begun |= self.running.keys()
        for job, placed in self.running.items():
            self.left[job] -= placed.rate * (self.slot >= placed.works)
        self.slot += 1
        for job in list(self.running):
            if self.left[job] <= ROUNDING * self.a.work[job]:
                self.left[job] = 0.0
                placed = self.running.pop(job)
                self.ledger.book(placed.found, -1)
                self.note(job, placed)
        if not self.running and not self.waiting():
            later = self.a.arrival[self.left > 0]
            self.slot = int(later.min()) if later.size else self.slot

    def run(self, plan: Callable[[Cluster], None]) -> Schedule:
        """Run until all jobs are done; `plan` decides at the beginning of every slot."""
        self.slot = int(self.a.arrival.min())
        while (self.left > 0).any():
            plan(self)
            self.advance()
        return Schedule(**vars(runs_of(self.log, 1)))


def fifo(a: Architecture, context: Context) -> Schedule:
    """Return FIFO's schedule: strictly by arrival, each job with a random number of workers that is kept.

    A number that could never start is cut to the largest that fits on the empty cluster. Otherwise a job would wait at
    the head of the queue until everything has drained.
    """
    cluster = Cluster(a)
    drawn = np.minimum(context.rng.integers(1, MOST_WORKERS + 1, a.size), cluster.known.most)

    def plan(cluster: Cluster) -> None:
        for job in cluster.waiting():
            if not cluster.start(job, int(drawn[job])):
                break

    return cluster.run(plan)


def drf(a: Architecture, context: Context) -> Schedule:
    """Return DRF's schedule: waiting jobs get workers one by one, always the one of the least dominant share."""

    def plan(cluster: Cluster) -> None:
        for job, number in _fair(cluster, cluster.waiting()).items():
            cluster.start_largest(job, number)

    return Cluster(a).run(plan)


def _fair(cluster: Cluster, waiting: list[int]) -> dict[int, int]:
    """Return the number of workers of each waiting job that gets some, by progressive filling of what is free."""
    a, known = cluster.a, cluster.known
    total = np.maximum(a.machines.total, 1e-300)
    free = cluster.ledger.free[:, :, 0].sum(axis=0)
    row = [known.options.first[job] for job in waiting]
    need = a.machines.worker[known.options.worker_type[row]]
    server = known.options.ps_type[row]
    first = need + (a.machines.ps[server] if a.id == "ps" else 0.0)
    given: dict[int, int] = {}
    queue = [(0.0, i) for i in range(len(waiting))]
    while queue:
        _, i = heapq.heappop(queue)
        job = waiting[i]
        number = given.get(job, 0)
        more = need[i] if number else first[i]
        if number >= known.most[job] or (more > free * (1 + ROUNDING)).any():
            continue
        free = free - more
        given[job] = number + 1
        held = first[i] + number * need[i]
        heapq.heappush(queue, (float((held / total).max()), i))
    return given


def tiresias(a: Architecture, context: Context, *, restart_slots: int = 0, know_remaining: bool = True) -> Schedule:
    """Return Tiresias's schedule: every slot, the least remaining work times GPUs first, with interruptions.

    Without knowledge of what remains, jobs go by the power of two below the GPU slots that they have had, then by
    arrival: with the service itself, two equal jobs would interrupt each other in every slot.
    """
    cluster = Cluster(a, restart_slots)
    option = [cluster.known.among(job, int(cluster.known.wanted[job])) for job in range(a.size)]
    gpus = a.machines.worker[cluster.known.options.worker_type[[o.start for o in option]], 0] * cluster.known.wanted
    speed = np.array([cluster.known.rate[o].max() for o in option])
    attained = np.zeros(a.size)

    def plan(cluster: Cluster) -> None:
        active = [*cluster.running, *cluster.waiting()]
        remaining = cluster.left / speed * np.maximum(gpus, 1)
        first = remaining if know_remaining else np.floor(np.log2(1 + attained))
        cluster.replan((job, False) for job in sorted(active, key=lambda j: (first[j], a.arrival[j], j)))
        running = list(cluster.running)
        attained[running] += np.maximum(gpus, 1)[running]

    return cluster.run(plan)


def antman(a: Architecture, context: Context, *, restart_slots: int = 0) -> Schedule:
    """Return AntMan's schedule: guaranteed jobs, then opportunistic ones with as many workers as fit, each by arrival.

    What is guaranteed is kept: a guaranteed job that runs is not interrupted for one that waits.
    """
    guaranteed = a.weight > np.median(a.weight)
    if not guaranteed.any():
        guaranteed[:] = True

    def plan(cluster: Cluster) -> None:
        active = sorted([*cluster.running, *cluster.waiting()], key=lambda j: (a.arrival[j], j))
        first = [j for j in active if guaranteed[j]]
        patient = {j for j in first if cluster.slot - a.arrival[j] < PATIENCE}
        kept = sorted(first, key=lambda j: j not in cluster.running)
        cluster.replan([*((j, False) for j in kept), *((j, True) for j in active if j not in patient)])

    return Cluster(a, restart_slots).run(plan)


def jain(a: Architecture, context: Context, *, types: Literal["any", "ideal"] = "any") -> Schedule:
    """Return what a greedy by weight density (Jain et al.) completes by τ.

    Jobs go by weight per consumption; each takes the schedule that completes first: in any configuration, or in that of
    its ideal case, as all other baselines have it. On ``gen/zhou-ra?capacity=0.2`` that is a weight of 359 or 187
    thousand, beside A_maxweight's 261.
    """
    options = a.options
    if types == "ideal":
        chosen = options.take(np.array([f.option for f in ideal(a)]))
        alike = (chosen.worker_type, chosen.ps_type, chosen.workers)
        every = (options.worker_type, options.ps_type, options.workers)
        same = [mine == theirs[options.job] for mine, theirs in zip(every, alike, strict=True)]
        options = options.take(np.flatnonzero(np.all(same, axis=0)))
    ledger = Ledger(a.machines, options, a.deadline - 1)
    plan = []
    for job in np.argsort(-a.weight / a.relative_consumption, kind="stable").tolist():
        found = ledger.find(job, 0)
        if found:
            ledger.book(found)
            plan.append((job, found))
    return Schedule(**vars(runs_of(plan, 1)))
