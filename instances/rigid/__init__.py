"""Gangs of fixed duration on pools of GPUs: common types of the rules and the search of ``rigid``."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from schedgap.instances.arrays import Array, Ints, nothing
from schedgap.instances.schema import Instance
from schedgap.instances.schema.columns import PlainJobs


@dataclass(frozen=True, eq=False)
class RigidSchedule:
    """Intervals ``(k,)`` in which jobs hold all their GPUs in a pool, from `start` to `end`, in ticks of the view.

    If placement is known, interval `run` ``(m,)`` (counted from 0) certainly holds `gpus` GPUs on `server`.
    """

    job: Ints
    start: Ints
    end: Ints
    pool: Ints
    run: Ints = field(default_factory=nothing)
    server: Ints = field(default_factory=nothing)
    gpus: Ints = field(default_factory=nothing)


@dataclass(frozen=True, eq=False, kw_only=True)
class RigidView:
    """``n`` jobs on ``P`` pools. Times are whole numbers of ticks.

    Attributes
    ----------
    tick_s
        Length of a tick in seconds.
    release, duration, gpus, pool
        ``(n,)`` earliest start of each job, its duration, its number of GPUs, and their pool.
    requested
        ``(n,)`` requested time of each job, at least its duration; the duration if no time was requested.
    weight
        ``(n,)`` weights of flow times.
    pools, capacity
        Names and ``(P,)`` numbers of GPUs.
    executed
        The schedule as executed, if it is known for all jobs.
    asked
        Number of jobs with a requested time.
    overran
        Number of jobs that ran for longer than they requested.
    moves
        ``(n, P)`` duration of each job in each pool, -1 if it cannot run there; ``None`` if jobs cannot choose their
        pools. A job that has started does not move.
    """

    instance: Instance
    tick_s: float
    release: Ints
    duration: Ints
    gpus: Ints
    pool: Ints
    requested: Ints
    weight: Array
    pools: tuple[str, ...]
    capacity: Ints
    executed: RigidSchedule | None
    asked: int
    overran: int
    moves: Ints | None = None

    @property
    def size(self) -> int:
        """Number of jobs."""
        return len(self.release)

    @cached_property
    def users(self) -> Ints:
        """``(n,)`` number of each job's tenant; jobs without one have a number in common."""
        names = PlainJobs.of(self.instance.plain.get("jobs", ())).texts("tenant")
        return np.asarray(np.unique([name or "" for name in names], return_inverse=True)[1])

    @property
    def ticks_of_hour(self) -> float:
        """Ticks in an hour."""
        return 3600 / self.tick_s

    @cached_property
    def lasts(self) -> Ints:
        """``(n, P)`` duration of each job in each pool, -1 if it cannot run there."""
        if self.moves is not None:
            return self.moves
        return np.where(self.pool[:, None] == np.arange(len(self.pools)), self.duration[:, None], -1)

    @cached_property
    def relaxed(self) -> RigidView:
        """An easier view without choices: pools that a job may choose from become one, and jobs take their least time.

        Its optimum bounds the optimum of this view.
        """
        if self.moves is None:
            return self
        from scipy.sparse.csgraph import connected_components  # here, since it takes 0.2 s and logs rarely have moves

        able = self.moves >= 0
        count, of = connected_components(able.T.astype(float) @ able, directed=False)
        return replace(
            self,
            moves=None,
            duration=np.where(able, self.moves, np.iinfo(np.int64).max).min(axis=1),
            pool=of[self.pool].astype(np.int64),
            pools=tuple("+".join(np.array(self.pools)[of == part]) for part in range(count)),
            capacity=np.bincount(of, self.capacity, count).astype(np.int64),
            executed=None,
        )

    @cached_property
    def settled(self) -> RigidView:
        """View in which each job has one pool: in the order of release, the pool in which it would end first.

        The estimate divides the work of earlier jobs in a pool by its number of GPUs.
        """
        if self.moves is None:
            return self
        pool, ahead, before = self.pool.copy(), np.zeros(len(self.pools)), 0
        for j in np.lexsort((np.arange(self.size), self.release)).tolist():
            ahead = np.maximum(ahead - (self.release[j] - before) * self.capacity, 0.0)
            before = self.release[j]
            pool[j] = np.where(self.moves[j] < 0, np.inf, ahead / self.capacity + self.moves[j]).argmin()
            ahead[pool[j]] += self.gpus[j] * self.moves[j, pool[j]]
        return self.within(pool)

    def within(self, pool: Ints) -> RigidView:
        """Return the view in which each job is assigned to its `pool` ``(n,)``."""
        lasts = self.lasts[np.arange(self.size), pool]
        return replace(self, moves=None, pool=pool, duration=lasts, requested=np.maximum(self.requested, lasts))

    def among(self, jobs: Ints) -> RigidView:
        """Return the view of some jobs only, ``(m,)`` by number, in which they have the numbers 0 to m - 1."""
        names = ("release", "duration", "gpus", "pool", "requested", "weight")
        moves = None if self.moves is None else self.moves[jobs]
        return replace(self, **{name: getattr(self, name)[jobs] for name in names}, moves=moves, executed=None)

    def by_pool(self) -> list[tuple[Ints, int]]:
        """Return the pairs ``(jobs, number of GPUs)`` of the pools that have jobs; jobs are in the order of release."""
        order = np.lexsort((np.arange(self.size), self.release))
        pools = [(order[self.pool[order] == p], int(self.capacity[p])) for p in range(len(self.pools))]
        return [(jobs, capacity) for jobs, capacity in pools if jobs.size]


SHORT_S = 10
"""Least run time in bounded slowdowns (Feitelson, Metrics for parallel job scheduling, 2001)."""

OBJECTIVES = {
    "flow": ("least mean time from submission to completion", "h"),
    "slowdown": (f"least mean slowdown, bounded at {SHORT_S} s", "1"),
    "weighted": ("least mean time from submission to completion, weighted", "h"),
    "makespan": ("least time from the first submission to the last completion", "h"),
    "idle": ("fewest GPU-hours idle while a job waits for the same pool", "GPU-h"),
}
"""Objectives to minimise: title and unit."""


def starts_of(view: RigidView, starts: Ints) -> RigidSchedule:
    """Return the schedule in which each job runs once, from its start in `starts` ``(n,)``."""
    return RigidSchedule(np.arange(view.size), starts, starts + view.duration, view.pool)


def completions(view: RigidView, schedule: RigidSchedule) -> Ints:
    """Return ``(n,)`` completion time of each job."""
    ends = np.zeros(view.size, np.int64)
    np.maximum.at(ends, schedule.job, schedule.end)
    return ends


def first_starts(view: RigidView, schedule: RigidSchedule) -> Ints:
    """Return ``(n,)`` first start of each job."""
    starts = np.full(view.size, np.iinfo(np.int64).max)
    np.minimum.at(starts, schedule.job, schedule.start)
    return starts


def steps(at: Ints, change: Ints) -> tuple[Ints, Ints]:
    """Return the distinct times of changes, and the running sum of changes after each of them."""
    times, where = np.unique(at, return_inverse=True)
    total = np.zeros(times.size, np.int64)
    np.add.at(total, where.ravel(), change)
    return times, np.cumsum(total)


def kernels() -> Any:
    """Return the module of compiled loops, which is slow to import."""
    from schedgap.instances.rigid import _kernels

    return _kernels


def priorities() -> Any:
    """Return the module of the compiled loop with priorities, which is slow to import."""
    from schedgap.instances.rigid import _priority_kernels

    return _priority_kernels
