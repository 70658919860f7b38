"""Index sets of the models of a round: the configurations that a gang may hold, and classes of equal jobs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from schedgap.instances.arrays import SLACK, Array, Bools, Ints
from schedgap.instances.views.synergy import SynergySchedule, SynergyView

SMALLEST = 2e-9
"""Smallest coefficient (HiGHS drops those up to 1e-9), and smallest fraction of a job on a server that counts."""

NOWHERE = -1.0
"""Rate of a configuration that a gang may not hold: lower than that of any other, even one without progress."""


@dataclass(frozen=True, eq=False)
class Configurations:
    """``q`` configurations ``[c, m]`` of CPUs and memory, ordered by kind of job and GPU type.

    Each belongs to a `kind` of job and a `gpu_type`, ``(q,)``. Its `level` ``(q, 2)`` is the pair of CPU and memory
    levels in the kind's table, which identifies the configuration. `gpus`, `cpus` and `memory_gb` ``(q,)`` are what the
    whole gang holds, `rate` ``(q,)`` its iterations per second.
    """

    kind: Ints
    gpu_type: Ints
    level: Ints
    gpus: Ints
    cpus: Array
    memory_gb: Array
    rate: Array

    @property
    def size(self) -> int:
        """Number of configurations."""
        return len(self.kind)

    def held(self) -> Array:
        """Return ``(q, 3)`` GPUs, CPUs and gigabytes of each configuration."""
        return np.column_stack((self.gpus.astype(float), self.cpus, self.memory_gb))

    def amount(self, view: SynergyView) -> Array:
        """Return :meth:`held`, with amounts that HiGHS would drop (when counted in :func:`units`) set to 0."""
        held = self.held()
        return np.where(held < SMALLEST * units(view)[self.gpu_type], 0.0, held)


def units(view: SynergyView) -> Array:
    """Return ``(k, 3)`` the units in which the solver counts GPUs, CPUs and gigabytes of each GPU type.

    GPUs are counted one by one, the others by the amount per GPU of the type's largest server. Coefficients are then
    about as large as gangs.
    """
    largest = view.pools.largest
    per_gpu = np.divide(largest, largest[:, :1], out=np.ones_like(largest), where=largest[:, :1] > 0)
    return np.where(per_gpu > 0, per_gpu, 1.0)


def capacity(view: SynergyView) -> Array:
    """Return ``(k, 3)`` the GPUs, CPUs and gigabytes of each type that models' rows allow, with slack for rounding."""
    return np.column_stack((view.pools.gpus, view.pools.cpus * (1 + SLACK), view.pools.memory_gb * (1 + SLACK)))


def fitting(view: SynergyView) -> Bools:
    """Return ``(K, k)`` whether each type has enough GPUs for a gang of each kind, which may make no progress on it."""
    return np.asarray(view.profiles.gpus[:, None] <= view.pools.gpus)


def configurations(
    view: SynergyView, where: Bools, kinds: Ints | None = None, *, pruned: bool = True, idle: bool = False
) -> Configurations:
    """Return the configurations that jobs of some `kinds` (default: all) may hold on GPU types, within ``needs.limit``.

    `where` ``(K, k)`` says which kinds may run on which types. If `pruned`, a configuration is left out if another one
    of its kind and type has no more CPUs, no more memory and at least its rate. A job that holds the former may hold
    the latter instead, so no optimum changes.

    If `idle`, configurations without progress are included. LP1 uses them: if a fraction of a job rests on few CPUs,
    another fraction of it can have many. Models in which jobs can only lose by them leave them out.
    """
    tables = view.profiles
    if kinds is not None:
        where = where & np.isin(np.arange(len(where)), kinds)[:, None]
    kind, gpu_type = np.nonzero(where)
    limit = view.needs.limit[kind, gpu_type] * (1 + SLACK)
    within = (tables.cpus[kind] <= limit[:, :1])[:, :, None] & (tables.memory_gb[kind] <= limit[:, 1:])[:, None, :]
    rate = np.where(within, tables.rate[kind, gpu_type], NOWHERE)
    kept = rate >= 0.0 if idle else rate > 0.0
    if pruned:
        best = np.maximum.accumulate(np.maximum.accumulate(rate, axis=1), axis=2)
        below = np.full_like(rate, NOWHERE)  # the best rate of smaller configurations
        below[:, 1:] = best[:, :-1]
        np.maximum(below[:, :, 1:], best[:, :, :-1], out=below[:, :, 1:])
        kept &= rate > below
    pair, a, b = np.nonzero(kept)
    kind, gpu_type = kind[pair], gpu_type[pair]
    return Configurations(
        kind=kind,
        gpu_type=gpu_type,
        level=np.column_stack((a, b)),
        gpus=tables.gpus[kind],
        cpus=tables.cpus[kind, a],
        memory_gb=tables.memory_gb[kind, b],
        rate=rate[pair, a, b],
    )


@dataclass(frozen=True, eq=False)
class RoundClasses:
    """The jobs of a round in ``e`` classes of equal jobs: same kind, weight and least rates.

    `jobs` ``(m,)`` are listed class by class, within a class in the order in which they were picked; each class has
    `count` ``(e,)`` of them. `weight` ``(e,)`` turns iterations per second into the objective; `floor` ``(e, k)`` is
    the iterations per second that a job must have on each GPU type where it runs.
    """

    jobs: Ints
    count: Ints
    kind: Ints
    weight: Array
    floor: Array


def classes(view: SynergyView, jobs: Ints, floor: Array) -> RoundClasses:
    """Return the classes of equal jobs among `jobs` ``(m,)``, whose least rates are `floor` ``(m, k)``."""
    kind, weight = view.profiles.kind[jobs], view.weight[jobs]
    alike = np.column_stack((kind, weight, floor))
    _, first, which, count = np.unique(alike, axis=0, return_index=True, return_inverse=True, return_counts=True)
    return RoundClasses(jobs[np.argsort(which.ravel(), kind="stable")], count, kind[first], weight[first], floor[first])


def one_round(view: SynergyView, job: Ints, server: Ints, amount: Array) -> SynergySchedule:
    """Return the schedule of one round in which jobs ``(x,)`` hold `amount` ``(x, 3)`` of GPUs, CPUs and gigabytes.

    All runnable jobs count as offered to the round.
    """
    offered, (gpus, cpus, memory_gb) = view.runnable, amount.T
    return SynergySchedule(np.zeros_like(job), job, server, gpus, cpus, memory_gb, np.zeros_like(offered), offered)


def ideal_schedule(view: SynergyView, job: Ints, held: Configurations, at: Ints) -> SynergySchedule:
    """Return the schedule of the round in which each job ``(x,)`` holds configuration number `at` ``(x,)``."""
    return one_round(view, job, held.gpu_type[at], held.held()[at])
