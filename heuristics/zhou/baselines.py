"""The schedulers with which Zhou et al. compare A_online (§7), and the greedy algorithm of Jain et al.

FIFO, DRF, Tiresias and AntMan decide slot by slot, on the resources that are free then.

Workers and PSs have the types of each job's ideal case: the configuration that completes it first on an empty cluster.
FIFO and DRF never preempt a job. Tiresias and AntMan plan every slot anew and may preempt jobs and, if these cannot
resume where they were, migrate them; their problem is the preemptive one. "Job execution duration is lengthened due to
frequent preemption" (§7.1), but the paper does not print by how much; here, every run of a job except its first starts
with `restart_slots` slots without work. Bounds for preemptive schedules hold for any such cost. Bounds for
non-preemptive schedules hold where the cost is infinite.

The paper leaves open which jobs of AntMan are guaranteed. Here they are the jobs above the median weight, or all jobs
if all weights are equal; guaranteed jobs that have waited for :data:`PATIENCE` slots run like opportunistic ones.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from schedgap.heuristics.registry import Context
from schedgap.instances.arrays import ROUNDING, SLACK, Array, Ints, members
from schedgap.instances.moldable import FoundRun, Ledger, RunOptions, runs_of
from schedgap.instances.moldable.options import largest
from schedgap.instances.views.zhou import Architecture, ZhouSchedule

MOST_WORKERS = 30
"""Largest number of workers of a job under FIFO (§7)."""

PATIENCE = 8
"""Number of slots that a guaranteed job of AntMan waits before it runs as an opportunistic one."""


def ideal(a: Architecture) -> list[FoundRun]:
    """Return each job's fastest run on the empty cluster; of equally fast runs, the one that uses least resources."""
    longest = int(a.options.shortest.max())
    ledger = Ledger(a.classes, a.options, longest, constant=True)
    return [run for job in range(a.size) if (run := ledger.find(job, 0))]


@dataclass(frozen=True, eq=False)
class WorkerChoices:
    """The ways in which jobs can run in a slot: with 1, 2, … workers of their ideal types, on one server or on several.

    A job with N workers has the `options` ``2·(N − 1)`` and ``2·N − 1``, counted from its first; each takes one slot.
    `rate` ``(o,)`` is in mini-batches per slot of all workers together. `most` ``(n,)`` is the largest number of
    workers that fits on the empty cluster with the parameter servers that they need, `wanted` ``(n,)`` the number in
    the ideal case.
    """

    options: RunOptions
    rate: Array
    most: Ints
    wanted: Ints

    @staticmethod
    def of(a: Architecture) -> WorkerChoices:
        """Compute the configurations of all jobs of an architecture."""
        best = ideal(a)
        wanted = np.array([int(run.workers.sum()) for run in best])
        fitting = largest(a.classes, a.rates.ring, int(a.most.max())).max(axis=2)
        most = np.minimum(a.most, [fitting[run.worker_type, run.ps_type] for run in best])
        job, option = members(2 * most)
        workers, together = option // 2 + 1, option % 2 == 0
        worker_type, ps_type = np.array([(run.worker_type, run.ps_type) for run in best])[job].T.copy()
        rows = zip(*(x.tolist() for x in (job, worker_type, ps_type, workers, together)), strict=True)
        rate = workers / np.array([a.rates.slots(*row) for row in rows])
        first, slots = np.cumsum([0, *(2 * most)]), np.ones(len(job), np.int64)
        return WorkerChoices(RunOptions(first, slots, worker_type, ps_type, together, workers), rate, most, wanted)

    def among(self, job: int, workers: int) -> slice:
        """Return where the options of a job with `workers` workers are, as a slice of `options`."""
        at = int(self.options.first[job]) + 2 * (workers - 1)
        return slice(at, at + 2)


@dataclass(frozen=True, eq=False)
class _Running:
    """A job's current run: its placement, first slot and rate, and the slot in which work begins after a restart."""

    placement: FoundRun
    since: int
    rate: float
    works_from: int


class SlotCluster:
    """A cluster that a baseline fills slot by slot: running jobs, remaining work, and the finished runs so far."""

    def __init__(self, a: Architecture, restart_slots: int = 0) -> None:
        self.a, self.restart_slots = a, restart_slots
        self.started: set[int] = set()
        self.configurations = WorkerChoices.of(a)
        self.ledger = Ledger(a.machines, self.configurations.options, 1)
        self.left = a.work.copy()
        self.running: dict[int, _Running] = {}
        self.refused: dict[tuple[int, bool], frozenset[int]] = {}
        self.seen: tuple[list[int], list[int]] = ([], [])
        self.slot = 1
        self.log: list[tuple[int, FoundRun]] = []

    def waiting(self) -> list[int]:
        """Return the jobs that have arrived, are unfinished and do not run, by arrival."""
        jobs = [j for j in np.flatnonzero((self.a.arrival <= self.slot) & (self.left > 0)) if j not in self.running]
        return sorted(map(int, jobs), key=lambda j: (self.a.arrival[j], j))

    def news(self) -> bool:
        """Return whether other jobs wait or run than at the last call.

        If not, that slot's plan started none of them, and without preemption neither would the same plan now. It would
        search in vain in every slot.
        """
        now = self.waiting(), list(self.running)
        before, self.seen = self.seen, now
        return now != before

    def start(self, job: int, workers: int) -> bool:
        """Start a job with `workers` workers if they fit now, on one server if possible; return whether it started."""
        placement = self.ledger.find(job, 0, among=self.configurations.among(job, workers))
        if placement is None:
            return False
        self.ledger.book(placement)
        works_from = self.slot + self.restart_slots * (job in self.started)
        rate = float(self.configurations.rate[placement.option])
        self.running[job] = _Running(placement, self.slot, rate, works_from)
        return True

    def start_largest(self, job: int, most: int) -> bool:
        """Start a job with as many workers as fit, at most `most`; return whether it started.

        One worker is tried first; then bisection finds the number.
        """
        low, high = 0, most
        while low < high:
            middle = (low + high + 1) // 2 if low else 1
            if self.ledger.find(job, 0, among=self.configurations.among(job, middle)):
                low = middle
            else:
                high = middle - 1
        return low > 0 and self.start(job, low)

    def record(self, job: int, run: _Running) -> None:
        """Add a run that ends before this slot to the log, unless it did not last a slot."""
        if self.slot > run.since:
            self.log.append((job, replace(run.placement, start=run.since - 1, slots=self.slot - run.since)))

    def replan(self, order: Iterable[tuple[int, bool]]) -> None:
        """Plan this slot anew: in `order`, running jobs stay where they are if there is still room; others are started.

        A job starts with the workers of its ideal case or, if its flag in `order` is set, with as many of them as fit.
        A job that occurs again is tried again only if it was not started.
        """
        order = list(order)
        if self.settled(order):
            return
        previous, self.running, self.refused = self.running, {}, {}
        for run in previous.values():
            self.ledger.book(run.placement, -1)
        for job, fewer in order:
            if job in self.running:
                continue
            kept, wanted = previous.get(job), int(self.configurations.wanted[job])
            if kept:
                touched = np.flatnonzero(kept.placement.workers + kept.placement.ps)
                free = self.ledger.free[touched, :, 0] + SLACK * self.a.machines.capacity[touched]
                kept = kept if (self.ledger.use(kept.placement)[touched] <= free).all() else None
            if kept:
                self.ledger.book(kept.placement)
                self.running[job] = kept
            elif not (self.start_largest(job, wanted) if fewer else self.start(job, wanted)):
                self.refused[job, fewer] = frozenset(self.running)
        for job, run in previous.items():
            if self.running.get(job) is not run:
                self.record(job, run)

    def settled(self, order: Iterable[tuple[int, bool]]) -> bool:
        """Return whether planning in this order would change nothing, so that a slot without news costs no search.

        No run has ended since the last plan (:meth:`advance`), all running jobs fit together, and every other job was
        refused when the jobs placed before it were among those that are placed before it now.
        """
        placed: set[int] = set()
        for job, fewer in order:
            if job in self.running:
                placed.add(job)
            elif (others := self.refused.get((job, fewer))) is None or not others <= placed:
                return False
        return True

    def advance(self) -> None:
        """Let all placed jobs work for this slot; then go to the next slot with a running or waiting job."""
        self.started |= self.running.keys()
        for job, run in self.running.items():
            self.left[job] -= run.rate * (self.slot >= run.works_from)
        self.slot += 1
        for job in list(self.running):
            if self.left[job] <= ROUNDING * self.a.work[job]:
                self.left[job] = 0.0
                self.refused.clear()
                run = self.running.pop(job)
                self.ledger.book(run.placement, -1)
                self.record(job, run)
        if not self.running and not self.waiting():
            later = self.a.arrival[self.left > 0]
            self.slot = int(later.min()) if later.size else self.slot

    def run(self, plan: Callable[[SlotCluster], None]) -> ZhouSchedule:
        """Return the schedule until all jobs are done; `plan` is called at the start of every slot."""
        self.slot = int(self.a.arrival.min())
        while (self.left > 0).any():
            plan(self)
            self.advance()
        return ZhouSchedule(**vars(runs_of(self.log, 1)))


def fifo(a: Architecture, context: Context) -> ZhouSchedule:
    """Return FIFO's schedule: strictly by arrival, each job with a fixed random number of workers.

    The number is at most the largest that fits on the empty cluster. Otherwise the job would block the head of the
    queue forever.
    """
    cluster = SlotCluster(a)
    drawn = np.minimum(context.rng.integers(1, MOST_WORKERS + 1, a.size), cluster.configurations.most)

    def plan(cluster: SlotCluster) -> None:
        for job in cluster.waiting() if cluster.news() else ():
            if not cluster.start(job, int(drawn[job])):
                break

    return cluster.run(plan)


def drf(a: Architecture, context: Context) -> ZhouSchedule:
    """Return DRF's schedule: workers go one by one to the waiting job with the smallest dominant share."""

    def plan(cluster: SlotCluster) -> None:
        for job, number in _fair(cluster, cluster.waiting() if cluster.news() else []).items():
            cluster.start_largest(job, number)

    return SlotCluster(a).run(plan)


def _fair(cluster: SlotCluster, waiting: list[int]) -> dict[int, int]:
    """Share the free resources among waiting jobs by progressive filling; return each job's number of workers.

    Jobs that get no worker are left out.
    """
    a, configurations = cluster.a, cluster.configurations
    total = np.maximum(a.machines.total, 1e-300)
    free = cluster.ledger.free[:, :, 0].sum(axis=0)
    row = [configurations.options.first[job] for job in waiting]
    need = a.machines.worker[configurations.options.worker_type[row]]
    ps_type = configurations.options.ps_type[row]
    first = need + (a.machines.ps[ps_type] if a.id == "ps" else 0.0)
    workers: dict[int, int] = {}
    queue = [(0.0, i) for i in range(len(waiting))]
    while queue:
        _, i = heapq.heappop(queue)
        job = waiting[i]
        number = workers.get(job, 0)
        more = need[i] if number else first[i]
        if number >= configurations.most[job] or (more > free * (1 + SLACK)).any():
            continue
        free = free - more
        workers[job] = number + 1
        held = first[i] + number * need[i]
        heapq.heappush(queue, (float((held / total).max()), i))
    return workers


def tiresias(a: Architecture, context: Context, *, restart_slots: int = 0, know_remaining: bool = True) -> ZhouSchedule:
    """Return Tiresias's schedule: in every slot, jobs by remaining time times GPUs, with preemption.

    Without `know_remaining`, jobs are ordered by their attained GPU slots, rounded down to a power of two, then by
    arrival; with the exact service, two equal jobs would preempt each other in every slot.
    """
    cluster = SlotCluster(a, restart_slots)
    configurations = cluster.configurations
    option = [configurations.among(job, int(configurations.wanted[job])) for job in range(a.size)]
    worker_type = configurations.options.worker_type[[o.start for o in option]]
    gpus = a.machines.worker[worker_type, 0] * configurations.wanted
    speed = np.array([configurations.rate[o].max() for o in option])
    attained = np.zeros(a.size)

    def plan(cluster: SlotCluster) -> None:
        active = [*cluster.running, *cluster.waiting()]
        remaining = cluster.left / speed * np.maximum(gpus, 1)
        first = remaining if know_remaining else np.floor(np.log2(1 + attained))
        cluster.replan((job, False) for job in sorted(active, key=lambda j: (first[j], a.arrival[j], j)))
        running = list(cluster.running)
        attained[running] += np.maximum(gpus, 1)[running]

    return cluster.run(plan)


def antman(a: Architecture, context: Context, *, restart_slots: int = 0) -> ZhouSchedule:
    """Return AntMan's schedule: guaranteed jobs, then opportunistic ones with as many workers as fit, each by arrival.

    A running guaranteed job is never preempted for a waiting one.
    """
    guaranteed = a.weight > np.median(a.weight)
    if not guaranteed.any():
        guaranteed[:] = True

    def plan(cluster: SlotCluster) -> None:
        active = sorted([*cluster.running, *cluster.waiting()], key=lambda j: (a.arrival[j], j))
        first = [j for j in active if guaranteed[j]]
        patient = {j for j in first if cluster.slot - a.arrival[j] < PATIENCE}
        running_first = sorted(first, key=lambda j: j not in cluster.running)
        cluster.replan([*((j, False) for j in running_first), *((j, True) for j in active if j not in patient)])

    return SlotCluster(a, restart_slots).run(plan)


def jain(a: Architecture, context: Context, *, types: Literal["any", "ideal"] = "any") -> ZhouSchedule:
    """Return the schedule of the greedy algorithm of Jain et al.: jobs by weight per resources used, highest first.

    Each job takes the schedule that completes first, in any configuration of workers and PSs (``any``) or in that of
    its ideal case (``ideal``), as all other baselines do.
    """
    options = a.options
    if types == "ideal":
        best = options.take(np.array([run.option for run in ideal(a)]))
        fields = ("worker_type", "ps_type", "workers")
        same = [getattr(options, name) == getattr(best, name)[options.job] for name in fields]
        options = options.take(np.flatnonzero(np.all(same, axis=0)))
    ledger = Ledger(a.machines, options, a.deadline - 1)
    plan = []
    for job in np.argsort(-a.weight / a.relative_consumption, kind="stable").tolist():
        run = ledger.find(job, 0)
        if run:
            ledger.book(run)
            plan.append((job, run))
    return ZhouSchedule(**vars(runs_of(plan, 1)))
