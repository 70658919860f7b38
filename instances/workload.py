"""Jobs and servers of an instance as arrays."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from schedgap.instances.arrays import MBIT_PER_GBIT, MBIT_PER_MB, ROUNDING, Array, Ints
from schedgap.instances.errors import InstanceError, UsageError
from schedgap.instances.schema import Instance, Job, Tenant
from schedgap.instances.utility import Utilities, utilities

MAX_SERVERS = 100_000
"""Most servers that a simulation takes."""

NEVER = 2.0**53
"""Slot that stands for times after any horizon."""


def slots_from(times_s: Array, slot_s: float) -> Ints:
    """Return the first slots (from 0) that begin at or after these times, up to :data:`ROUNDING`."""
    with np.errstate(over="ignore"):  # infinity is after any horizon, too
        return np.minimum(np.ceil(times_s / slot_s * (1 - ROUNDING)), NEVER).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Workload:
    """``n`` jobs as arrays ``(n,)``, on ``k`` GPU types; `work` is in iterations.

    Attributes
    ----------
    tenant
        Index into `tenants`; a job without a tenant counts as its own tenant.
    leave_s
        Time when the tenant leaves (``inf`` for never).
    rates
        ``(n, k)`` iterations per second of ONE GPU of each type; 0 if the job cannot run there.
    exchange_s
        Seconds in which a gang that spans servers exchanges the gradients of an iteration (:func:`exchange_s`); NaN if
        not known.
    utilities
        Utility of completing each job, by the seconds since its arrival.
    """

    ids: tuple[str, ...]
    tenants: tuple[str, ...]
    gpu_types: tuple[str, ...]
    tenant: Ints
    arrival_s: Array
    leave_s: Array
    gpus: Ints
    work: Array
    rates: Array
    exchange_s: Array
    weight: Array
    utilities: Utilities

    @property
    def size(self) -> int:
        """Number of jobs."""
        return len(self.ids)

    def of(self, jobs: Ints) -> Workload:
        """Return the workload of the jobs with these indices."""
        by_job = ("tenant", "arrival_s", "leave_s", "gpus", "work", "rates", "exchange_s", "weight")
        own: dict[str, Any] = {name: getattr(self, name)[jobs] for name in by_job}
        ids = tuple(self.ids[j] for j in jobs.tolist())
        return replace(self, ids=ids, utilities=self.utilities.of(jobs), **own)

    def over_network(self) -> Array:
        """Return `exchange_s`; raise `UsageError` if it is not known of a job."""
        if (unknown := np.flatnonzero(np.isnan(self.exchange_s))).size:
            needs = "network needs the gradient_mb of every gang, and the bandwidth_gbps of every server with GPUs"
            raise UsageError(f"{needs}; not given for {self.ids[unknown[0]]}")
        return self.exchange_s


@dataclass(frozen=True, eq=False)
class Servers:
    """``h`` servers: GPU type (index), GPUs, CPUs and gigabytes of each, all ``(h,)``.

    A server with GPUs of several types has one entry per type (Hadar's ``c_h^r``). `host` ``(h,)`` is the number of the
    physical server of each entry, or ``None`` if every server has a single entry.
    """

    names: tuple[str, ...]
    gpu_type: Ints
    gpus: Ints
    cpus: Array
    memory_gb: Array
    host: Ints | None = None

    @property
    def size(self) -> int:
        """Number of entries."""
        return len(self.names)

    @cached_property
    def machine(self) -> Ints:
        """``(h,)`` number of the physical server of each entry, from 0."""
        return np.arange(self.size) if self.host is None else self.host

    @property
    def machines(self) -> int:
        """Number of physical servers."""
        return int(self.machine.max(initial=-1)) + 1

    @property
    def amounts(self) -> Array:
        """``(h, 3)`` GPUs, CPUs and gigabytes of each entry."""
        return np.column_stack((self.gpus, self.cpus, self.memory_gb)).astype(float)

    def with_gpus(self, types: int) -> list[Ints]:
        """Return the indices of the servers that have GPUs, for each of `types` GPU types."""
        return [np.flatnonzero((self.gpu_type == i) & (self.gpus > 0)) for i in range(types)]

    def largest(self, types: int) -> Array:
        """Return the ``(k, 3)`` most GPUs, CPUs and gigabytes of a server of each type, 0 if no server has its GPUs."""
        amounts = self.amounts
        return np.array([amounts[h].max(axis=0, initial=0.0) for h in self.with_gpus(types)]).reshape(types, 3)


@dataclass(frozen=True, eq=False, kw_only=True)
class GangView:
    """Common base of the views of gangs in slots. ``n`` jobs.

    Attributes
    ----------
    instance
        The instance of the view; policies of the simulator are built from it.
    arrival
        ``(n,)`` first slot in which each job may run.
    hopeless
        ``(n,)`` reason why a job can never complete, or ``None``. Models leave hopeless jobs out.
    """

    instance: Instance
    workload: Workload
    servers: Servers
    slot_s: float
    arrival: Ints
    hopeless: tuple[str | None, ...]

    @property
    def size(self) -> int:
        """Number of jobs."""
        return self.workload.size

    @cached_property
    def possible(self) -> Ints:
        """Indices of the jobs that can complete, ascending."""
        return np.flatnonzero([reason is None for reason in self.hopeless])


def hopeless_note(hopeless: Sequence[str | None], what: str) -> str:
    """Return the end of a caption: how many jobs can never do `what`, and the first reason; empty if all can."""
    reasons = [reason for reason in hopeless if reason]
    return f"; {len(reasons)} can never {what} ({reasons[0]}{', …' if len(reasons) > 1 else ''})" if reasons else ""


def workload(instance: Instance) -> Workload:
    """Return the jobs of `instance` as arrays.

    A job without rates takes those of its tenant's job type with the name of its model, or of the tenant's only job
    type. It raises `InstanceError` if there are no jobs, or a job has no rates either way.
    """
    if not instance.jobs:
        raise InstanceError(f"{instance.name} has no jobs")
    types = tuple(g.name for g in instance.cluster.gpu_types)
    tenants = {t.id: t for t in instance.tenants}
    for job in instance.jobs:
        tenants.setdefault(job.tenant or job.id, Tenant(id=job.tenant or job.id))
    index = {name: i for i, name in enumerate(tenants)}
    owners = [tenants[job.tenant or job.id] for job in instance.jobs]
    rows = map(_rates, instance.jobs, owners, range(len(owners)))
    rates = np.array([[row.get(r, 0.0) for r in types] for row in rows])
    arrival_s = np.array([max(job.submit_s, owner.arrive_s) for job, owner in zip(instance.jobs, owners, strict=True)])
    return Workload(
        ids=tuple(job.id for job in instance.jobs),
        tenants=tuple(tenants),
        gpu_types=types,
        tenant=np.array([index[owner.id] for owner in owners]),
        arrival_s=arrival_s,
        leave_s=np.array([math.inf if owner.leave_s is None else owner.leave_s for owner in owners]),
        gpus=np.array([job.gpus for job in instance.jobs]),
        work=np.array([job.iterations for job in instance.jobs], float),
        rates=rates,
        exchange_s=exchange_s(instance),
        weight=np.array([job.weight for job in instance.jobs]),
        utilities=utilities(instance.jobs, arrival_s, rates.max(axis=1)),
    )


def exchange_s(instance: Instance) -> Array:
    """Return the ``(n,)`` seconds in which each gang that spans servers exchanges the gradients of an iteration.

    A ring of w workers sends 2 (w − 1) / w times the gradient over the network of each server, at the bandwidth of the
    slowest server with GPUs. NaN if the job's gradient or a server's bandwidth is not given; 0 for a single GPU.
    """
    gbps = min((group.bandwidth_gbps for group in instance.cluster.servers if group.gpus > 0), default=0.0)
    gradient_mb = np.array([job.distributed.gradient_mb if job.distributed else math.nan for job in instance.jobs])
    gpus = np.array([job.gpus for job in instance.jobs])
    sent_gbit = 2 * (gpus - 1) / gpus * gradient_mb * (MBIT_PER_MB / MBIT_PER_GBIT)
    return np.where(gpus == 1, 0.0, sent_gbit / gbps if gbps > 0 else math.nan)


def _rates(job: Job, owner: Tenant, position: int) -> Mapping[str, float]:
    if job.rates:
        return job.rates
    kinds = [kind for kind in owner.job_types if kind.name == job.model] or list(owner.job_types)
    if len(kinds) != 1:
        right = "a simulated job needs rates, or a tenant with a job type named like its model"
        raise InstanceError(f"jobs[{position}].rates = {{}}: {right}")
    return kinds[0].rates


def server_names(instance: Instance) -> tuple[str, ...]:
    """Return the names of the servers, group by group: the group's name, numbered if it has several servers."""
    groups = instance.cluster.servers
    return tuple(g.name if g.count == 1 else f"{g.name}.{i}" for g in groups for i in range(g.count))


def servers(instance: Instance) -> Servers:
    """Return the servers as arrays, group by group; raise `InstanceError` for more than :data:`MAX_SERVERS`."""
    groups = instance.cluster.servers
    count = [group.count for group in groups]
    if sum(count) > MAX_SERVERS:
        raise InstanceError(f"{instance.name}: {sum(count)} servers: a simulation takes up to {MAX_SERVERS}")
    index = {g.name: i for i, g in enumerate(instance.cluster.gpu_types)}
    first = dict(zip((g.name for g in groups), np.cumsum([0, *count]).tolist(), strict=False))
    hosts = [first[g.servers_of or g.name] + i for g in groups for i in range(g.count)]
    return Servers(
        names=server_names(instance),
        gpu_type=np.repeat([index[g.gpu_type] for g in groups], count),
        gpus=np.repeat([g.gpus for g in groups], count),
        cpus=np.repeat([g.cpus for g in groups], count),
        memory_gb=np.repeat([g.memory_gb for g in groups], count),
        host=np.unique(hosts, return_inverse=True)[1] if instance.cluster.mixed else None,
    )
