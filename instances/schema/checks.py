"""Rules that concern several fields of an instance at once; each raises on the first violation."""

from __future__ import annotations

import math
from collections.abc import Iterable

from schedgap.instances.schema import limits
from schedgap.instances.schema.base import violation
from schedgap.instances.schema.cluster import Cluster
from schedgap.instances.schema.content import Content
from schedgap.instances.schema.job import Job


def check_sizes(instance: Content) -> None:
    """Raise where there is more of something than :data:`limits.MAX_ITEMS` allows."""
    sizes = {
        "cluster.servers": sum(group.count for group in instance.cluster.servers),
        "tenants": len(instance.tenants),
        "jobs": len(instance.jobs),
        "horizon.slots": instance.horizon.slots if instance.horizon else 0,
    }
    for path, size in sizes.items():
        check_size(path, size)


def check_size(path: str, size: int) -> None:
    """Raise where `size` is more than :data:`limits.MAX_ITEMS`; the message says how to raise the limit."""
    if size > limits.MAX_ITEMS:
        how = "to raise it, set instances.schema.limits.MAX_ITEMS in Python"
        raise violation(path, size, f"at most {limits.MAX_ITEMS}; {how}")


def check_horizon(instance: Content) -> None:
    """Raise where the horizon ends after :data:`limits.MAX_HORIZON_S`."""
    if instance.horizon and instance.horizon.end_s > limits.MAX_HORIZON_S:
        right = f"a horizon ends at or before {limits.MAX_HORIZON_S:g} s"
        raise violation("horizon: slot_s · slots", f"{instance.horizon.end_s:g}", right)


def check_names(instance: Content) -> None:
    """Raise where two things of one kind share an id, or where nothing asks for GPUs."""
    cluster = instance.cluster
    unique("cluster.gpu_types", "name", (g.name for g in cluster.gpu_types))
    unique("cluster.servers", "name", (s.name for s in cluster.servers))
    unique("tenants", "id", (t.id for t in instance.tenants))
    unique("jobs", "id", (j.id for j in instance.jobs))
    unique("worker_types", "name", (w.name for w in instance.worker_types))
    unique("ps_types", "name", (p.name for p in instance.ps_types))
    if not instance.jobs and not any(t.job_types for t in instance.tenants):
        raise violation("jobs", "[]", "an instance has jobs, or tenants with job types")


def unique(path: str, field: str, names: Iterable[str]) -> None:
    """Raise on the first name that occurs twice."""
    seen: dict[str, int] = {}
    for i, name in enumerate(names):
        if name in seen:
            raise violation(
                f"{path}[{i}].{field}",
                name,
                f"already used by {path}[{seen[name]}]; each {field} occurs once",
            )
        seen[name] = i


def check_cluster(instance: Content) -> None:
    """Raise where servers or worker types name an unknown GPU type, or where there is no GPU at all."""
    types = {g.name for g in instance.cluster.gpu_types}
    for i, group in enumerate(instance.cluster.servers):
        known(f"cluster.servers[{i}].gpu_type", group.gpu_type, types, "GPU type")
    for i, worker in enumerate(instance.worker_types):
        if worker.gpu_type is not None:
            known(f"worker_types[{i}].gpu_type", worker.gpu_type, types, "GPU type")
    if instance.cluster.gpus == 0:
        raise violation("cluster.servers", "0 GPUs", "a cluster has at least one GPU")


def known(path: str, name: str, names: Iterable[str], kind: str) -> None:
    """Raise where `name` is none of `names`."""
    if name not in names:
        listed = ", ".join(sorted(names)[:8]) or "none"
        raise violation(path, name, f"unknown {kind}; known: {listed}")


def check_tenants(instance: Content) -> None:
    """Raise on a tenant that leaves before it arrives, or whose job types miss a GPU type of the cluster."""
    types = instance.cluster.gpus_by_type
    for i, tenant in enumerate(instance.tenants):
        if tenant.leave_s is not None and tenant.leave_s <= tenant.arrive_s:
            raise violation(f"tenants[{i}].leave_s", tenant.leave_s, f"after arrive_s = {tenant.arrive_s:g}")
        for t, kind in enumerate(tenant.job_types):
            for field, rates in (("rates", kind.rates), ("reported_rates", kind.reported_rates)):
                if rates is not None and set(rates) != set(types):
                    path = f"tenants[{i}].job_types[{t}].{field}"
                    raise violation(path, ", ".join(rates), f"one rate for each GPU type: {', '.join(types)}")


def check_jobs(instance: Content) -> None:
    """Raise on a job that could never run: unknown names, an arrival after the horizon, too large a gang."""
    tenants = {t.id for t in instance.tenants}
    workers = {w.name for w in instance.worker_types}
    servers = {p.name for p in instance.ps_types}
    end = instance.horizon.end_s if instance.horizon else math.inf
    for i, job in enumerate(instance.jobs):
        path = f"jobs[{i}]"
        if tenants and job.tenant is not None:
            known(f"{path}.tenant", job.tenant, tenants, "tenant")
        if job.submit_s >= end:
            raise violation(f"{path}.submit_s", job.submit_s, f"before the end of the horizon, {end:g} s")
        if job.deadline_s is not None and job.deadline_s <= job.submit_s:
            raise violation(f"{path}.deadline_s", job.deadline_s, f"after submit_s = {job.submit_s:g}")
        if job.iterations > limits.MAX_ITERATIONS:
            right = f"at most {limits.MAX_ITERATIONS} (epochs · chunks · …)"
            raise violation(f"{path}: iterations", job.iterations, right)
        if job.distributed:
            for worker in job.distributed.minibatch_ms:
                known(f"{path}.distributed.minibatch_ms", worker, workers, "worker type")
            for server in job.distributed.update_ms:
                known(f"{path}.distributed.update_ms", server, servers, "PS type")
        check_gang(instance.cluster, path, job)


def check_gang(cluster: Cluster, path: str, job: Job) -> None:
    """Raise where a job's gang does not fit on the GPUs it can use."""
    totals = cluster.gpus_by_type
    for gpu_type in job.rates:
        known(f"{path}.rates", gpu_type, totals, "GPU type")
    usable = [r for r, rate in job.rates.items() if rate > 0] if job.rates else list(totals)
    if not usable:
        raise violation(f"{path}.rates", dict(job.rates), "a positive rate on at least one GPU type")
    available = sum(totals[r] for r in usable)
    if job.gpus > available:
        raise violation(f"{path}.gpus", job.gpus, f"a gang fits on the {available} GPUs the job can use")
