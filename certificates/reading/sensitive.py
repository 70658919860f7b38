"""Reads gangs whose rates depend on CPUs and memory (Synergy), and the servers as one pool per GPU type.

A gang has *levels* of CPUs and of memory. Between levels, its rate is that of the levels below; below the lowest levels
it is 0. Its *share* is the CPUs and memory in proportion to its GPUs, and its *fair* rate is its rate with the share.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..basics import LESS, MORE, STRETCH, Array, Data
from .jobs import Jobs, jobs_of
from .servers import RawServers, servers_of


def grid(curve: Data, gang: int, rate: float, largest: Sequence[float]) -> tuple[Array, Array, Array]:
    """Return the levels of CPUs and of memory of a gang, ascending, and ``(c, m)`` its iterations per second at them.

    `curve` is the job's sensitivity and `rate` that of one GPU; `largest` has the most GPUs, CPUs and GB of any server.
    """
    if curve["kind"] == "matrix":
        cpus, memory = (gang * np.array(curve[x], float) for x in ("cpus_per_gpu", "memory_gb_per_gpu"))
        return cpus, memory, gang * rate * np.array(curve["progress"], float)
    span, levels = math.ceil(gang / largest[0]), []
    for top, least, most in zip(largest[1:], (1.0, 50.0), (48, 32), strict=True):
        unit = least * max(1, math.ceil(top / least / most))
        levels.append(span * unit * np.arange(1, int(top / unit * STRETCH) + 1))
    cpus, memory = levels
    cached = np.clip((memory - curve.get("process_memory_gb", 0)) / curve["dataset_gb"], 0, 1)
    missed = curve["item_mb_per_iteration"] * (1 - cached)
    fetched = np.divide(curve["storage_mb_per_s"], missed, out=np.full(len(memory), np.inf), where=missed > 0)
    rates = np.minimum(np.minimum(gang * rate, cpus[:, None] * curve["prep_rate_per_cpu"]), fetched)
    return cpus, memory, np.where(memory * MORE >= curve["process_memory_gb"], rates, 0.0)


class JobClasses(NamedTuple):
    """Classes of jobs with equal gangs, rates and sensitivities.

    `first` ``(K,)`` is the first job of each class, `of` ``(n,)`` the class of each job.
    """

    first: Array
    of: Array


class Sensitive:
    """Jobs whose rates depend on CPUs and memory, and the servers."""

    def __init__(self, jobs: Jobs, servers: RawServers, curves: Sequence[Data | None]) -> None:
        self.jobs, self.servers, self._curves = jobs, servers, curves
        hosts = servers.amounts[servers.gpus > 0]
        self._largest = hosts.max(axis=0).tolist()
        self._grids: dict[tuple[int, int], tuple[Array, Array, Array]] = {}

    @cached_property
    def pooled(self) -> Pooled:
        """The servers as one pool per GPU type."""
        return Pooled(self)

    @cached_property
    def classes(self) -> JobClasses:
        """Classes of jobs, in order of first appearance."""
        keys = zip(map(repr, self._curves), self.jobs.gpus.tolist(), map(tuple, self.jobs.rates.tolist()), strict=True)
        seen: dict[object, int] = {}
        of = np.array([seen.setdefault(key, len(seen)) for key in keys], np.int64)
        return JobClasses(np.unique(of, return_index=True)[1], of)

    def grid(self, job: int, gpu_type: int) -> tuple[Array, Array, Array]:
        """Return the levels of CPUs and of memory of a gang, and ``(c, m)`` its iterations per second at them."""
        key = int(self.classes.of[job]), gpu_type
        if key not in self._grids:
            curve, rate = self._curves[job], float(self.jobs.rates[job, gpu_type])
            empty = np.zeros(0), np.zeros(0), np.zeros((0, 0))
            self._grids[key] = grid(curve, int(self.jobs.gpus[job]), rate, self._largest) if curve else empty
        return self._grids[key]

    def within(self, job: int, gpu_type: int) -> tuple[Array, Array, Array]:
        """Return :meth:`grid` without the levels above the CPUs and memory that the gang may hold on this type."""
        *levels, rates = self.grid(job, gpu_type)
        fits = [axis <= most * STRETCH for axis, most in zip(levels, self.pooled.limit[job, gpu_type], strict=True)]
        cpus, memory = (axis[fit] for axis, fit in zip(levels, fits, strict=True))
        return cpus, memory, rates[np.ix_(*fits)]

    @cached_property
    def undominated(self) -> list[list[tuple[Array, Array]]]:
        """The undominated configurations of each class of jobs on each GPU type that has GPUs.

        A configuration is dominated if another one is as fast with no more CPUs and memory. For each class and type,
        there are ``(q,)`` iterations per second, at least the fair rate, and ``(q, 3)`` GPUs, CPUs and gigabytes.
        """
        types = np.flatnonzero(self.pooled.gpus > 0).tolist()
        return [[self._undominated(job, i) for i in types] for job in self.classes.first.tolist()]

    def _undominated(self, job: int, gpu_type: int) -> tuple[Array, Array]:
        if not self.pooled.able[job, gpu_type]:
            return np.zeros(0), np.zeros((0, 3))
        *levels, rate = self.within(job, gpu_type)
        c, m = (axis.ravel() for axis in np.meshgrid(*levels, indexing="ij"))
        best = np.pad(np.maximum.accumulate(np.maximum.accumulate(rate, axis=0), axis=1), ((1, 0), (1, 0)))
        below = np.maximum(best[:-1, 1:], best[1:, :-1])
        keep = ((rate > below) & (rate >= self.pooled.fair[job, gpu_type] * LESS)).ravel()
        gpus = np.full(int(keep.sum()), self.jobs.gpus[job])
        return rate.ravel()[keep], np.column_stack((gpus, c[keep], m[keep]))

    def rate(self, job: Array, gpu_type: Array, cpus: Array, memory_gb: Array) -> Array:
        """Return ``(x,)`` iterations per second of gangs with these total CPUs and memory on GPUs of one type.

        Amounts are rounded down to the next level; below the lowest level, the rate is 0.
        """
        out = np.zeros(len(job))
        kind = self.classes.of[job] * len(self.jobs.gpu_types) + gpu_type
        order = np.argsort(kind, kind="stable")
        for part in np.split(order, np.flatnonzero(np.diff(kind[order])) + 1) if len(job) else ():
            *levels, rates = self.grid(int(job[part[0]]), int(gpu_type[part[0]]))
            amounts = (amount[part] * MORE for amount in (cpus, memory_gb))
            c, m = (np.searchsorted(axis, amount, "right") for axis, amount in zip(levels, amounts, strict=True))
            out[part] = np.pad(rates, ((1, 0), (1, 0)))[c, m]
        return out


class Pooled:
    """The servers as one pool per GPU type, and the fair share of each job in each pool.

    Attributes
    ----------
    gpus, total
        ``(k,)`` GPUs, and ``(k, 3)`` GPUs, CPUs and gigabytes.
    limit, share
        ``(n, k, 2)`` a gang's largest, and its proportional, CPUs and gigabytes. If servers of a type differ, the
        smallest amount per GPU determines the share. A gang has no more than the servers that its GPUs need.
    fair
        ``(n, k)`` iterations per second with the share.
    able
        ``(n, k)`` whether the gang fits in the pool and advances with its share.
    weight
        ``(n,)`` factor from iterations per second to fractions of the fair progress on the best GPU type.
    """

    def __init__(self, read: Sensitive) -> None:
        jobs, servers, types = read.jobs, read.servers, len(read.jobs.gpu_types)
        held = servers.amounts
        self.total, least, largest = np.zeros((types, 3)), np.zeros((types, 2)), np.ones((types, 3))
        for i in range(types):
            here = held[(servers.gpu_type == i) & (servers.gpus > 0)]
            if len(here):
                self.total[i], largest[i] = here.sum(axis=0), here.max(axis=0)
                least[i] = (here[:, 1:] / here[:, :1]).min(axis=0)
        self.gpus = self.total[:, 0]
        gang = jobs.gpus[:, None]
        self.share = gang[:, :, None] * least
        self.limit = np.ceil(gang / largest[:, 0])[:, :, None] * largest[:, 1:]
        first, of = read.classes
        job, kind = np.repeat(first, types), np.tile(np.arange(types), len(first))
        fair = read.rate(job, kind, *self.share[job, kind].T).reshape(-1, types)
        self.fair = np.where(gang <= self.gpus, fair[of], 0.0)
        self.able = self.fair > 0
        best = self.fair.max(axis=1)
        self.weight: Array = np.divide(1.0, best, out=np.zeros(jobs.size), where=best > 0)


def sensitive_of(data: Data) -> Sensitive:
    """Return the jobs and servers of an instance."""
    return Sensitive(jobs_of(data), servers_of(data), [job.get("sensitivity") for job in data["jobs"]])
