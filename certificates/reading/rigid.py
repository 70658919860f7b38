"""Reads gangs of fixed duration on pools of GPUs, from a log or from rates, in integer ticks.

A log gives a job's pool, release and duration, and possibly its durations in other pools. If the log has the runs of
every job, a duration is the total length of the job's runs. A job without history runs on the fastest GPU type on which
its gang fits; its duration is its work divided by its rate there, rounded up to microseconds. A tick is a second if all
times of the instance are whole seconds, else a microsecond.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..basics import Array, Data, require
from .columns import column, numbers, pairs
from .jobs import jobs_of, types_of
from .servers import RawServers, capacities, servers_of

FINE_S = 1e-6
"""Length of a tick if not all times are whole seconds."""


SHORT_S = 10
"""Shortest run time, in seconds, by which a bounded slowdown divides."""


@dataclass(frozen=True, eq=False)
class FixedGangs:
    """``n`` gangs of fixed duration on ``P`` pools; each GPU type is a pool.

    Attributes
    ----------
    tick_s
        Length of a tick in seconds.
    release, gpus, pool, weight
        ``(n,)`` earliest start in ticks, GPUs, the pool of the log or of the fastest GPUs, and weight.
    lasts
        ``(n, P)`` ticks for which each job runs in each pool, -1 if it cannot run there.
    """

    ids: tuple[str, ...]
    pools: tuple[str, ...]
    capacity: Array
    tick_s: float
    release: Array
    gpus: Array
    pool: Array
    lasts: Array
    weight: Array
    cluster: Data

    @property
    def size(self) -> int:
        """Number of jobs."""
        return len(self.ids)

    @property
    def hour(self) -> int:
        """Ticks in an hour."""
        return 3600 if self.tick_s == 1 else 3_600_000_000

    @cached_property
    def servers(self) -> RawServers:
        """The servers, whose names a log may use."""
        return servers_of({"cluster": self.cluster})


def fixed_gangs_of(data: Data) -> FixedGangs:
    """Return the jobs of an instance as gangs of fixed duration; either all of them have a history, or none has."""
    jobs, pools = data["jobs"], types_of(data)
    logged = sum(pool is not None for pool in column(jobs, "history.gpu_type"))
    require(logged in (0, len(jobs)), "some jobs have a history and others have none")
    gpus = np.asarray(column(jobs, "gpus"), np.int64)
    capacity = np.array(list(capacities(data).values()), np.int64)
    found = _logged(jobs, pools) if logged else _rated(data, capacity)
    tick_s, release, pool, lasts = found
    lasts[gpus[:, None] > capacity] = -1
    require(bool((lasts[np.arange(len(jobs)), pool] >= 0).all()), "a gang does not fit in its pool")
    ids, weight = tuple(column(jobs, "id")), numbers(jobs, "weight", 1.0)
    return FixedGangs(ids, pools, capacity, tick_s, release, gpus, pool, lasts, weight, data["cluster"])


def _logged(jobs: Sequence[Data], pools: Sequence[str]) -> tuple[float, Array, Array, Array]:
    """Return the length of a tick, and releases, pools and durations by pool of jobs with histories."""
    index = {name: i for i, name in enumerate(pools)}
    which, ran = pairs(jobs, "history.runs")
    lasted, release = numbers(jobs, "duration_s", 0.0), numbers(jobs, "submit_s", 0.0)
    durations = enumerate(column(jobs, "history.durations_s"))
    moved = [(j, index[r], s) for j, by_type in durations if by_type for r, s in by_type.items()]
    other = np.array(moved, float).reshape(-1, 3)
    times = np.concatenate([ran.ravel(), lasted, release, other[:, 2]])
    tick_s = 1.0 if (times == np.round(times)).all() else FINE_S
    pool = np.array([index[name] for name in column(jobs, "history.gpu_type")], np.int64)
    duration = ticks(lasted, tick_s)
    if len(np.unique(which)) == len(jobs):
        duration = np.zeros(len(jobs), np.int64)
        np.add.at(duration, which, ticks(ran[:, 1], tick_s) - ticks(ran[:, 0], tick_s))
    lasts = np.full((len(jobs), len(pools)), -1)
    lasts[other[:, 0].astype(np.int64), other[:, 1].astype(np.int64)] = ticks(other[:, 2], tick_s)
    lasts[np.arange(len(jobs)), pool] = duration
    return tick_s, ticks(release, tick_s), pool, lasts


def _rated(data: Data, capacity: Array) -> tuple[float, Array, Array, Array]:
    """Return the length of a tick, and releases, pools and durations by pool of jobs with rates."""
    jobs = jobs_of(data)
    rates = np.where(jobs.gpus[:, None] <= capacity, jobs.rates, 0.0)
    best, pool = rates.max(axis=1), rates.argmax(axis=1)
    require(bool((best > 0).all()), "a gang fits on no GPU type")
    lasts = np.full(rates.shape, -1)
    lasts[np.arange(jobs.size), pool] = np.ceil(jobs.work / (jobs.gpus * best) / FINE_S)
    return FINE_S, ticks(jobs.arrival_s, FINE_S), pool, lasts


def ticks(seconds: Array, tick_s: float) -> Array:
    """Return times in seconds as whole numbers of ticks."""
    return np.asarray(np.rint(seconds / tick_s).astype(np.int64))
