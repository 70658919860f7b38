"""Jobs and servers of an instance as arrays."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from schedgap.instances.arrays import Array, Ints
from schedgap.instances.errors import InstanceError
from schedgap.instances.schema import Instance, Job, Tenant
from schedgap.instances.utility import Utilities, utilities

MAX_SERVERS = 100_000
"""Largest number of servers that a simulation expands an instance to."""


@dataclass(frozen=True, eq=False)
class Workload:
    """``n`` jobs as arrays.

    Attributes
    ----------
    ids, tenants, gpu_types
        Names of the jobs, of the tenants and of the ``k`` GPU types.
    tenant
        ``(n,)`` index into `tenants`; a job without tenant is a tenant of its own.
    arrival_s, leave_s
        ``(n,)`` seconds: arrival, and departure of the tenant (``inf`` for never).
    gpus
        ``(n,)`` GPUs of the gang.
    work
        ``(n,)`` iterations.
    rates
        ``(n, k)`` iterations per second of ONE GPU of each type; 0 where the job cannot run.
    weight
        ``(n,)`` weights.
    utilities
        What completing each job is worth, by the seconds since its arrival.
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
    weight: Array
    utilities: Utilities

    @property
    def size(self) -> int:
        """Number of jobs."""
        return len(self.ids)


@dataclass(frozen=True, eq=False)
class Servers:
    """``h`` servers: GPU type (index), GPUs, CPUs and gigabytes of each, all ``(h,)``."""

    names: tuple[str, ...]
    gpu_type: Ints
    gpus: Ints
    cpus: Array
    memory_gb: Array

    @property
    def size(self) -> int:
        """Number of servers."""
        return len(self.names)


def workload(instance: Instance) -> Workload:
    """Return the jobs of `instance`.

    A job without rates of its own takes those of its tenant's job type of the same name, or of the only one.

    Raises
    ------
    InstanceError
        If there are no jobs, or a job has no rates from anywhere.
    """
    if not instance.jobs:
        raise InstanceError(f"{instance.name}: a simulation needs jobs; this instance has none")
    types = tuple(g.name for g in instance.cluster.gpu_types)
    tenants = {t.id: t for t in instance.tenants}
    for job in instance.jobs:
        tenants.setdefault(job.tenant or job.id, Tenant(id=job.tenant or job.id))
    index = {name: i for i, name in enumerate(tenants)}
    owners = [tenants[job.tenant or job.id] for job in instance.jobs]
    pairs = list(zip(instance.jobs, owners, strict=True))
    given = [_rates(job, owner, i) for i, (job, owner) in enumerate(pairs)]
    rates = np.array([[row.get(r, 0.0) for r in types] for row in given])
    arrival_s = np.array([max(job.submit_s, owner.arrive_s) for job, owner in pairs])
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
        weight=np.array([job.weight for job in instance.jobs]),
        utilities=utilities(instance.jobs, arrival_s, rates.max(axis=1)),
    )


def _rates(job: Job, owner: Tenant, position: int) -> Mapping[str, float]:
    """Rates of one job, from itself or from its tenant's job types."""
    if job.rates:
        return job.rates
    kinds = [kind for kind in owner.job_types if kind.name == job.model] or list(owner.job_types)
    if len(kinds) != 1:
        wanted = "a simulated job has rates, or its tenant a job type of its model's name"
        raise InstanceError(f"jobs[{position}].rates = {{}}: {wanted}")
    return kinds[0].rates


def server_names(instance: Instance) -> tuple[str, ...]:
    """Return the names of the servers, group by group: a group's own, with a number where there are several."""
    groups = instance.cluster.servers
    return tuple(g.name if g.count == 1 else f"{g.name}.{i}" for g in groups for i in range(g.count))


def servers(instance: Instance) -> Servers:
    """Return the servers of `instance`, group by group.

    Raises
    ------
    InstanceError
        If there are more than :data:`MAX_SERVERS`.
    """
    groups = instance.cluster.servers
    count = [group.count for group in groups]
    if sum(count) > MAX_SERVERS:
        raise InstanceError(f"{instance.name}: {sum(count)} servers: a simulation takes up to {MAX_SERVERS}")
    index = {g.name: i for i, g in enumerate(instance.cluster.gpu_types)}
    return Servers(
        names=server_names(instance),
        gpu_type=np.repeat([index[g.gpu_type] for g in groups], count),
        gpus=np.repeat([g.gpus for g in groups], count),
        cpus=np.repeat([g.cpus for g in groups], count),
        memory_gb=np.repeat([g.memory_gb for g in groups], count),
    )
