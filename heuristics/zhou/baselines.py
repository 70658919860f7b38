"""Schedulers that Zhou et al. compare A_online with (§7), slot by slot on what is free now.

Workers and PSs are of the types of each job's ideal case: the configuration that completes it first on the empty
cluster. FIFO and DRF never interrupt a job. Tiresias and AntMan plan every slot anew and may interrupt jobs and, where
these cannot go on where they were, move them; their problem is that of interrupted jobs.

The paper leaves open which jobs of AntMan are guaranteed: here the heavier half of the waiting time's weight, that is
the jobs above the median weight (or at it, where all are alike); those that have waited for :data:`PATIENCE` slots run
like opportunistic ones.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from schedgap.heuristics.registry import Context
from schedgap.instances.arrays import Array, Bools, Ints
from schedgap.instances.elastic import Found, Ledger, Options, runs_of
from schedgap.instances.elastic.options import largest
from schedgap.instances.views.zhou import Architecture, Schedule

MOST_WORKERS = 30
"""FIFO's jobs have at most so many workers (§7)."""

PATIENCE = 8
"""Slots that a guaranteed job of AntMan waits before it runs as an opportunistic one."""

ROUNDING = 1e-9


def ideal(a: Architecture) -> list[Found]:
    """Return each job's fastest run on the empty cluster; of equally fast ones the one that takes least."""
    longest = int(a.options.shortest.max())
    ledger = Ledger(a.classes, a.options, longest, constant=True)
    found = [ledger.find(job, 0) for job in range(a.size)]
    return [f for f in found if f]


@dataclass(frozen=True, eq=False)
class Configurations:
    """Every job with 1, 2, … workers of its ideal types, on one server or on several.

    Attributes
    ----------
    options
        Of one slot each; of job j with N workers: ``2·(N − 1)`` and the next one.
    rate
        ``(o,)`` mini-batches per slot of all workers together.
    most
        ``(n,)`` largest number of workers that fits on the empty cluster, with the parameter servers that they need.
    wanted
        ``(n,)`` workers of the ideal case.
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
        rows = [_rows(a, j, f, int(most[j])) for j, f in enumerate(best)]
        first = np.cumsum([0, *(2 * most)])
        worker_type, ps_type, together, workers, rate = (np.concatenate([row[i] for row in rows]) for i in range(5))
        kept = (worker_type.astype(np.int64), ps_type.astype(np.int64), together.astype(bool), workers.astype(np.int64))
        return Configurations(Options(first, np.ones(len(rate), np.int64), *kept), rate, most, wanted)

    def among(self, job: int, workers: int) -> slice:
        """Return the options of a job with so many workers."""
        at = int(self.options.first[job]) + 2 * (workers - 1)
        return slice(at, at + 2)


def _rows(a: Architecture, job: int, found: Found, most: int) -> tuple[NDArray[Any], ...]:
    """Return types, togetherness, workers and rates of one job with 1 to `most` workers."""
    number = np.repeat(np.arange(1, most + 1), 2)
    together = np.tile([True, False], most)
    m, p = found.worker_type, found.ps_type
    slots = [a.rates.slots(job, m, p, int(k), bool(q)) for k, q in zip(number, together, strict=True)]
    return np.full(2 * most, m), np.full(2 * most, p), together, number, number / np.array(slots)


@dataclass(frozen=True, eq=False)
class _Placed:
    """A running job: where, since which slot, and how fast."""

    found: Found
    since: int
    rate: float


class Cluster:
    """What runs now, what is left of every job, and the runs so far."""

    def __init__(self, a: Architecture) -> None:
        self.a = a
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
        self.running[job] = _Placed(found, self.slot, float(self.known.rate[found.option]))
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

    def stop(self, job: int) -> None:
        """Take a job off its servers and note its run."""
        placed = self.running.pop(job)
        self.ledger.book(placed.found, -1)
        self.note(job, placed)

    def note(self, job: int, placed: _Placed) -> None:
        """Note a run that ends before this slot."""
        if self.slot > placed.since:
            fields = {**vars(placed.found), "start": placed.since - 1, "slots": self.slot - placed.since}
            self.log.append((job, Found(**fields)))

    def replan(self, order: Iterable[tuple[int, Callable[[int], bool]]]) -> None:
        """Plan this slot anew: jobs in order stay where they are, if nobody before them needs it, or are started.

        Parameters
        ----------
        order
            Jobs, and how each is started where it cannot stay.
        """
        before, self.running = self.running, {}
        for placed in before.values():
            self.ledger.book(placed.found, -1)
        for job, begin in order:
            stays = before.get(job)
            if stays and self._free(stays.found):
                self.ledger.book(stays.found)
                self.running[job] = stays
            else:
                begin(job)
        for job, placed in before.items():
            if self.running.get(job) is not placed:
                self.note(job, placed)

    def _free(self, found: Found) -> bool:
        touched = np.flatnonzero(found.workers + found.ps)
        slack = ROUNDING * self.a.machines.capacity[touched]
        return bool((self.ledger.use(found)[touched] <= self.ledger.free[touched, :, 0] + slack).all())

    def advance(self) -> None:
        """Run everything for this slot; go to the next slot in which something can happen."""
        self.slot += 1
        for job, placed in list(self.running.items()):
            self.left[job] -= placed.rate
            if self.left[job] <= ROUNDING * self.a.work[job]:
                self.left[job] = 0.0
                self.stop(job)
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
    return Cluster(a).run(_fill)


def _fill(cluster: Cluster) -> None:
    """Start the waiting jobs that progressive filling of what is free gives workers."""
    waiting = cluster.waiting()
    for job, number in _fair(cluster, waiting).items():
        cluster.start_largest(job, number)


def _fair(cluster: Cluster, waiting: list[int]) -> dict[int, int]:
    """Return the number of workers of each waiting job that gets some."""
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


def tiresias(a: Architecture, context: Context) -> Schedule:
    """Return Tiresias's schedule: every slot, the least remaining work times GPUs first, with interruptions."""
    cluster = Cluster(a)
    option = [cluster.known.among(job, int(cluster.known.wanted[job])) for job in range(a.size)]
    gpus = a.machines.worker[cluster.known.options.worker_type[[o.start for o in option]], 0] * cluster.known.wanted
    speed = np.array([cluster.known.rate[o].max() for o in option])

    def plan(cluster: Cluster) -> None:
        active = [*cluster.running, *cluster.waiting()]
        remaining = cluster.left / speed * np.maximum(gpus, 1)
        order = sorted(active, key=lambda j: (remaining[j], j))
        cluster.replan((job, partial(_as_wanted, cluster)) for job in order)

    return cluster.run(plan)


def _as_wanted(cluster: Cluster, job: int) -> bool:
    """Start a job as in its ideal case, which fits on the empty cluster."""
    return cluster.start(job, int(cluster.known.wanted[job]))


def antman(a: Architecture, context: Context) -> Schedule:
    """Return AntMan's schedule: guaranteed jobs by arrival, then opportunistic ones with as many workers as fit."""
    guaranteed = a.weight > np.median(a.weight)
    if not guaranteed.any():
        guaranteed[:] = True
    cluster = Cluster(a)
    return cluster.run(lambda c: c.replan(_by_class(c, guaranteed)))


def _by_class(cluster: Cluster, guaranteed: Bools) -> Iterator[tuple[int, Callable[[int], bool]]]:
    """Yield the active jobs in AntMan's order, and how they are started."""
    a = cluster.a
    active = sorted([*cluster.running, *cluster.waiting()], key=lambda j: (a.arrival[j], j))
    held = dict(cluster.running)
    first = [j for j in active if guaranteed[j]]
    # A guaranteed job that already runs goes before those that wait.
    for job in sorted(first, key=lambda j: j not in held):
        yield job, partial(_as_wanted, cluster)
    patient = {j for j in first if cluster.slot - a.arrival[j] < PATIENCE}
    for job in active:
        if job not in cluster.running and job not in patient:
            yield job, partial(_as_fits, cluster)


def _as_fits(cluster: Cluster, job: int) -> bool:
    return cluster.start_largest(job, int(cluster.known.wanted[job]))
