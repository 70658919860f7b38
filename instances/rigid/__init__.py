"""Gangs of fixed duration on pools of GPUs: what the rules, the search and the checker of ``rigid`` share."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from schedgap.instances.arrays import Array, Ints, nothing
from schedgap.instances.schema import Instance


@dataclass(frozen=True, eq=False)
class Schedule:
    """Intervals ``(k,)`` in which jobs hold all their GPUs in a pool, from `start` to `end`, in ticks of the view.

    Where it is known, `run` ``(m,)`` holds so many `gpus` for certain on a `server`; runs count from 0.
    """

    job: Ints
    start: Ints
    end: Ints
    pool: Ints
    run: Ints = field(default_factory=nothing)
    server: Ints = field(default_factory=nothing)
    gpus: Ints = field(default_factory=nothing)


@dataclass(frozen=True, eq=False, kw_only=True)
class View:
    """``n`` jobs on ``P`` pools. Times are whole numbers of ticks.

    Attributes
    ----------
    tick_s
        Length of a tick in seconds.
    release, duration, gpus, pool
        ``(n,)`` when each job may start, how long it holds how many GPUs, and of which pool.
    requested
        ``(n,)`` how long it asked to run, no less than it did; its duration where nobody said.
    weight
        ``(n,)`` weights of flow times.
    pools, capacity
        Names and ``(P,)`` numbers of GPUs.
    executed
        What really ran, if that is known of all jobs.
    asked
        Whether the instance knows requested times.
    moves
        ``(n, P)`` how long each job runs in each pool, -1 where it cannot, if jobs may choose; one that starts stays.
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
    executed: Schedule | None
    asked: bool
    moves: Ints | None = None

    @property
    def size(self) -> int:
        """Number of jobs."""
        return len(self.release)

    @property
    def ticks_of_hour(self) -> float:
        """Ticks in an hour."""
        return 3600 / self.tick_s

    @cached_property
    def lasts(self) -> Ints:
        """``(n, P)`` how long each job runs in each pool, -1 where it cannot."""
        if self.moves is not None:
            return self.moves
        return np.where(self.pool[:, None] == np.arange(len(self.pools)), self.duration[:, None], -1)

    @cached_property
    def relaxed(self) -> View:
        """Jobs at their fastest, on pools that are one where a job may choose between them: its bounds bound this."""
        if self.moves is None:
            return self
        from scipy.sparse.csgraph import connected_components  # takes each process 0.2 s, and logs seldom say moves

        able = self.moves >= 0
        count, of = connected_components(able.T.astype(float) @ able, directed=False)
        return replace(
            self,
            moves=None,
            duration=np.where(able, self.moves, np.iinfo(np.int64).max).min(axis=1),
            pool=of[self.pool].astype(np.int64),
            pools=tuple("+".join(np.array(self.pools)[of == one]) for one in range(count)),
            capacity=np.bincount(of, self.capacity, count).astype(np.int64),
            executed=None,
        )

    @cached_property
    def settled(self) -> View:
        """Each job in the pool where it would end first, at its release, after the area that is there."""
        if self.moves is None:
            return self
        pool, ahead, before = self.pool.copy(), np.zeros(len(self.pools)), 0
        for j in np.lexsort((np.arange(self.size), self.release)).tolist():
            ahead = np.maximum(ahead - (self.release[j] - before) * self.capacity, 0.0)
            before = self.release[j]
            pool[j] = np.where(self.moves[j] < 0, np.inf, ahead / self.capacity + self.moves[j]).argmin()
            ahead[pool[j]] += self.gpus[j] * self.moves[j, pool[j]]
        return self.within(pool)

    def within(self, pool: Ints) -> View:
        """Return the view in which the pool ``(n,)`` of each job is settled."""
        lasts = self.lasts[np.arange(self.size), pool]
        return replace(self, moves=None, pool=pool, duration=lasts, requested=np.maximum(self.requested, lasts))

    def by_pool(self) -> list[tuple[Ints, int]]:
        """Return the jobs of each pool that has some, in the order of their release, and its number of GPUs."""
        order = np.lexsort((np.arange(self.size), self.release))
        found = [(order[self.pool[order] == p], int(self.capacity[p])) for p in range(len(self.pools))]
        return [(jobs, capacity) for jobs, capacity in found if jobs.size]


SHORT_S = 10
"""Runs shorter than this count as this long in slowdowns (Feitelson, Metrics for parallel job scheduling, 2001)."""

OBJECTIVES = {
    "flow": ("least mean time from submission to completion", "h"),
    "slowdown": (f"least mean slowdown, bounded at {SHORT_S} s", "1"),
    "weighted": ("least mean time from submission to completion, weighted", "h"),
    "makespan": ("least time from the first submission to the last completion", "h"),
    "idle": ("fewest GPU-hours idle while a job waits for the same pool", "GPU-h"),
}
"""What is minimised: title and unit."""


def starts_of(view: View, starts: Ints) -> Schedule:
    """Return the schedule in which each job runs once, from its start ``(n,)`` on."""
    return Schedule(np.arange(view.size), starts, starts + view.duration, view.pool)


def completions(view: View, schedule: Schedule) -> Ints:
    """Return ``(n,)`` when each job completes."""
    found = np.zeros(view.size, np.int64)
    np.maximum.at(found, schedule.job, schedule.end)
    return found


def first_starts(view: View, schedule: Schedule) -> Ints:
    """Return ``(n,)`` when each job first starts."""
    found = np.full(view.size, np.iinfo(np.int64).max)
    np.minimum.at(found, schedule.job, schedule.start)
    return found


def steps(at: Ints, change: Ints) -> tuple[Ints, Ints]:
    """Return the times at which a sum of changes has a new value, and these values; changes at one time are one."""
    times, where = np.unique(at, return_inverse=True)
    total = np.zeros(times.size, np.int64)
    np.add.at(total, where.ravel(), change)
    return times, np.cumsum(total)


def kernels() -> Any:
    """Return the compiled loops, which take a while to import."""
    from schedgap.instances.rigid import _kernels

    return _kernels
