"""The instance: consistency checks across its fields, and its display in notebooks."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Self

from pydantic import model_validator

from schedgap.instances.schema import limits
from schedgap.instances.schema.base import violation
from schedgap.instances.schema.columns import JobTable
from schedgap.instances.schema.content import Content
from schedgap.instances.schema.job import DistributedProfile
from schedgap.instances.schema.summary import to_html

PLAIN = DistributedProfile()
"""Profile of a job that states none."""


class Instance(Content):
    """A cluster, its jobs and tenants, a horizon, and published numbers about them."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        check_size("cluster.servers", sum(group.count for group in self.cluster.servers))
        check_size("tenants", len(self.tenants))
        check_size("jobs", len(self.jobs))
        if self.horizon:
            check_size("horizon.slots", self.horizon.slots)
            if self.horizon.end_s > limits.MAX_HORIZON_S:
                right = f"a horizon ends at or before {limits.MAX_HORIZON_S:g} s"
                raise violation("horizon: slot_s · slots", f"{self.horizon.end_s:g}", right)
        self._check_names()
        self._check_mixed_servers()
        self._check_tenants()
        self._check_jobs()
        return self

    def __repr__(self) -> str:
        parts = {"jobs": len(self.jobs), "tenants": len(self.tenants), "GPUs": self.cluster.gpus}
        return f"Instance({self.name}: {', '.join(f'{count:,} {what}' for what, count in parts.items() if count)})"

    __str__ = __repr__

    def _repr_html_(self) -> str:
        return to_html(self)

    def _check_names(self) -> None:
        """Raise if an id occurs twice, a GPU type is unknown, or there are no GPUs, or neither jobs nor job types."""
        for path, field, parts in (
            ("cluster.gpu_types", "name", self.cluster.gpu_types),
            ("cluster.servers", "name", self.cluster.servers),
            ("tenants", "id", self.tenants),
            ("jobs", "id", self.jobs),
            ("worker_types", "name", self.worker_types),
            ("ps_types", "name", self.ps_types),
        ):
            names = parts.ids if isinstance(parts, JobTable) else [getattr(part, field) for part in parts]
            if len(set(names)) == len(names):
                continue
            seen: dict[str, int] = {}
            for i, name in enumerate(names):
                if seen.setdefault(name, i) != i:
                    right = f"already used by {path}[{seen[name]}]; each {field} occurs once"
                    raise violation(f"{path}[{i}].{field}", name, right)
        if not self.jobs and not any(tenant.job_types for tenant in self.tenants):
            raise violation("jobs", "[]", "an instance has jobs, or tenants with job types")
        types = {g.name for g in self.cluster.gpu_types}
        used = {f"cluster.servers[{i}]": group.gpu_type for i, group in enumerate(self.cluster.servers)}
        used |= {f"worker_types[{i}]": w.gpu_type for i, w in enumerate(self.worker_types) if w.gpu_type is not None}
        for where, name in used.items():
            _check_known(f"{where}.gpu_type", name, types, "GPU type")
        if self.cluster.gpus == 0:
            raise violation("cluster.servers", "0 GPUs", "a cluster has at least one GPU")

    def _check_mixed_servers(self) -> None:
        """Raise if a group's `servers_of` is unknown, has the GPU type already, or its other fields contradict it."""
        groups = {group.name: group for group in self.cluster.servers if group.servers_of is None}
        taken = {(group.name, group.gpu_type) for group in groups.values()}
        for i, group in enumerate(self.cluster.servers):
            if group.servers_of is None:
                continue
            path, own = f"cluster.servers[{i}]", group.model_dump(exclude_defaults=True).keys()
            _check_known(f"{path}.servers_of", group.servers_of, groups, "group of servers with a first GPU type")
            if group.count != groups[group.servers_of].count:
                raise violation(f"{path}.count", group.count, f"must equal the count of {group.servers_of!r}")
            if (group.servers_of, group.gpu_type) in taken:
                raise violation(f"{path}.gpu_type", group.gpu_type, f"{group.servers_of!r} has this type already")
            taken.add((group.servers_of, group.gpu_type))
            for name in own - {"name", "count", "gpu_type", "gpus", "servers_of"}:
                raise violation(f"{path}.{name}", getattr(group, name), f"leave it out: {group.servers_of!r} states it")

    def _check_tenants(self) -> None:
        """Raise if a tenant leaves before it arrives, or a job type's rates do not cover exactly the GPU types."""
        types = self.cluster.gpus_by_type
        for i, tenant in enumerate(self.tenants):
            if tenant.leave_s is not None and tenant.leave_s <= tenant.arrive_s:
                raise violation(f"tenants[{i}].leave_s", tenant.leave_s, f"after arrive_s = {tenant.arrive_s:g}")
            for t, kind in enumerate(tenant.job_types):
                for field, rates in (("rates", kind.rates), ("reported_rates", kind.reported_rates)):
                    if rates is not None and set(rates) != set(types):
                        path = f"tenants[{i}].job_types[{t}].{field}"
                        raise violation(path, ", ".join(rates), f"one rate for each GPU type: {', '.join(types)}")

    def _check_jobs(self) -> None:
        """Raise if a job could never run: unknown names, an arrival after the horizon, a gang that is too large."""
        end_s = self.horizon.end_s if self.horizon else math.inf
        totals = self.cluster.gpus_by_type
        known: dict[str, Collection[str]] = {
            "tenant": {t.id for t in self.tenants},
            "worker type": {w.name for w in self.worker_types},
            "PS type": {p.name for p in self.ps_types},
            "GPU type": totals,
        }
        doubtful: Sequence[int] = range(len(self.jobs))
        if isinstance(self.jobs, JobTable):
            doubtful = self.jobs.doubtful(self.cluster.gpus_by_type, known["tenant"], end_s)
        for i in doubtful:
            job = self.jobs[i]
            path, profile = f"jobs[{i}]", job.distributed or PLAIN
            for field, kind, names in (
                ("tenant", "tenant", [job.tenant] if self.tenants and job.tenant else []),
                ("distributed.minibatch_ms", "worker type", profile.minibatch_ms),
                ("distributed.update_ms", "PS type", profile.update_ms),
                ("rates", "GPU type", job.rates),
                ("history.gpu_type", "GPU type", [job.history.gpu_type] if job.history else []),
                ("history.durations_s", "GPU type", job.history.durations_s if job.history else []),
            ):
                for name in names:
                    _check_known(f"{path}.{field}", name, known[kind], kind)
            if job.submit_s >= end_s:
                raise violation(f"{path}.submit_s", job.submit_s, f"before the end of the horizon, {end_s:g} s")
            if job.history and job.history.runs and job.history.runs[0][0] < job.submit_s:
                raise violation(f"{path}.history.runs", job.history.runs[0], f"at or after submit_s = {job.submit_s:g}")
            if job.deadline_s is not None and job.deadline_s <= job.submit_s:
                raise violation(f"{path}.deadline_s", job.deadline_s, f"after submit_s = {job.submit_s:g}")
            if job.iterations > limits.MAX_ITERATIONS:
                right = f"at most {limits.MAX_ITERATIONS} (epochs · chunks · …)"
                raise violation(f"{path}: iterations", job.iterations, right)
            usable = [r for r, rate in job.rates.items() if rate > 0] if job.rates else list(totals)
            if not usable:
                raise violation(f"{path}.rates", dict(job.rates), "a positive rate on at least one GPU type")
            available = sum(totals[r] for r in usable)
            if job.gpus > available:
                raise violation(f"{path}.gpus", job.gpus, f"a gang fits on the {available} GPUs the job can use")


def check_size(path: str, size: int) -> None:
    """Raise if `size` exceeds :data:`limits.MAX_ITEMS`; the message says how to raise the limit."""
    if size > limits.MAX_ITEMS:
        remedy = "to raise it, set schedgap.instances.schema.limits.MAX_ITEMS in Python"
        raise violation(path, size, f"at most {limits.MAX_ITEMS}; {remedy}")


def _check_known(path: str, name: str, names: Collection[str], kind: str) -> None:
    if name not in names:
        raise violation(path, name, f"unknown {kind}; known: {', '.join(sorted(names)[:8]) or 'none'}")
